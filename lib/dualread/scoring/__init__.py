"""Score the next image: a fitted reader and its actor, in one call, without the workflow.

`scorer` answers and scores, `answering` asks the actor and reads its states, `sources` finds readers, and `agreement`
compares what a reader was fitted on with what is used now. `bundle` and `card` are what `dualread export` writes.
"""
