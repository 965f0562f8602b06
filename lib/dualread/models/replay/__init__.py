"""Natural-response replay: one teacher-forced pass over the exact generated ids, read at chosen positions (paper 3.1).

`positions` finds the tokens to read, `pooling` turns states into the paper's vectors, `forward` runs the pass.
"""
