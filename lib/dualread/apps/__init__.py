"""The verbs of the program `dualread`, each in the module or folder of its name; `main` parses the command line."""
