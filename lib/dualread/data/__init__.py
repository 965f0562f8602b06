"""Data: data sets and phantoms, the table of questions made of them, and the donor image of each question."""
