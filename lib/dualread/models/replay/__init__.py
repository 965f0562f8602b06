"""Natural-response replay: one teacher-forced pass over the exact generated ids, read at given positions (paper, 3.1).

`positions` finds the tokens to read, `forward` runs the pass and computes the paper's vectors from states.
"""
