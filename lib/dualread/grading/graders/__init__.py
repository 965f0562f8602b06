"""Graders that ask a language model whether an answer is right: one file each, what it is asked and how it replies.

A grader is a module with `question(question, answer, references) -> str`, the text that the model gets, and
`verdict(reply) -> bool | None`, what its reply says; None if it says neither. It sees no image. Exact match
(`grading.canonical`) is no plugin: it grades everything, and a grader is beside it where one is asked for.
"""
