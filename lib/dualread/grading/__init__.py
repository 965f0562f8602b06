"""One parser and one grader for rewards, labels, replay and metrics.

`parse` reads a completion's blocks, `canonical` brings answers to the form in which they are compared.
"""
