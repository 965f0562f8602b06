"""`dualread explain TABLE --cell WORDS`: from a printed number down to the questions, and to what made every step.

`cells` finds the printed number, `runs` what it is a mean of, `chain` the artifacts below a run, `samples` the rows of
single questions in them; `report` is all of it as text. Everything is read from the store alone, by the names that
artifacts have for their inputs.
"""
