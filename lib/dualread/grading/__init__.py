"""Grading: one parser and one grader for rewards, labels, replay and metrics.

`parse` reads the answer and the stated confidence of a completion, `stated` the percentage of a free reply. `canonical`
decides which answers are equal, and `typography` which characters; `options` finds which of several options a text
names. `spans` finds the tokens that hold a stretch of text.
"""
