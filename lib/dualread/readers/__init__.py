"""Confidence readers: one file a reader, each with `fit` and `score` (see `_interface`).

A reader sees an actor's committed answers and the hidden states of their replay, and gives every answer a score and a
confidence. Training-free readers are ordinary members. `score` never sees whether an answer is correct.
"""
