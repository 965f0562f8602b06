"""The usual format: exactly one non-empty `<answer>` block, and one `<confidence>` block with an integer of 0 to 100.

An integer is one to three ASCII digits whose value is in range. White space around it is allowed, a sign is not.
Leading zeros are allowed: `007` is 7.
"""

import re

from dualread.grading.parse import Parsed, parse_blocks

_INTEGER = re.compile(r"\s*([0-9]{1,3})\s*")


def parse(text: str) -> Parsed:
    """Return the answer and the stated confidence of a completion."""
    return parse_blocks(text, read_confidence)


def read_confidence(inside: str) -> tuple[float | None, None]:
    """Return the confidence that a block states, or None."""
    match = _INTEGER.fullmatch(inside)
    if match is None or int(match[1]) > 100:
        return None, None
    return int(match[1]) / 100, None
