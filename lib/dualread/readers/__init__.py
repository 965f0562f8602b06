"""Confidence readers: one file per method.

A reader gets an actor's answers, the hidden states of their replay, and what else the actor was asked or shown. It
gives every answer a score and a confidence, and never sees whether the answer is correct. `base` says what a reader
has to define. Methods that need no training are ordinary members.
"""
