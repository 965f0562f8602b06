"""The verbs of the program `dualread`, each in the module or folder of its own name."""
