"""Score the next image: a fitted reader and its actor, in one call, without the workflow.

`scorer` answers and scores, `loading` loads reader and actor and refuses what does not fit, `answering` asks the actor
and reads its states, and `results` are a question and its result. `bundle` says where readers lie, and `export` writes
what `dualread export` writes.
"""
