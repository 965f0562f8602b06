"""People's own confidences and own images: evaluate, score and export, for the program and for Python.

`evaluation` is the way from tables to every metric, and is `dualread.evaluate` in Python. It has one file per step:

1. `tables` reads what the user gives. `given` is one table, `inputs` and `log` are the places it may come from.
2. `cells` converts the rows to the form from which the workflow computes metrics; `grades` says which answers are
   right, and `scale` which confidences are probabilities.
3. `metrics` computes every metric, and the differences between methods.
4. `thresholds` finds from which confidence on an answer can be kept.

`scoring/` asks an actor about the next image, and says how far its answer can be trusted.
"""
