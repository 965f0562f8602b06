"""Contracts: one file per format of completions that a prompt asks for.

Entry point of a plugin:
    parse(text) -> Parsed: The answer, the stated confidence in [0, 1], and which of them are valid
        (`grading.parse.parse_blocks` finds the blocks).

A contract with the name of a prompt is the format of that prompt, unless the config names another one.
"""
