"""Contracts: one file per format of completions that a prompt asks for.

Entry point of a plugin:
    parse(text) -> Parsed: The answer, the stated confidence in [0, 1], and which of them are valid
        (`grading.parse.parse_blocks` finds the blocks).
    THINKING_ENDS: str. Only where completions think first: what ends the thinking. The replay reads the answer after
        the last of it, and its state; `parse` has to search what follows it alone (`parse_blocks(..., THINKING_ENDS)`).

A contract with the name of a prompt is the format of that prompt, unless the config names another one.
"""
