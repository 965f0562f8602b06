"""Several guesses: `<confidence>` holds one to ten integers from 0 to 100, separated by commas, the best guess first.

The confidence is the first of them; where they add up to more than 100, it is divided by their sum, because no two
guesses are right together. The answer is the best guess alone.
"""

import re

from dualread.grading.parse import Parsed, parse_blocks

_INTEGERS = re.compile(r"\s*[0-9]{1,3}(?:\s*,\s*[0-9]{1,3}){0,9}\s*")


def parse(text: str) -> Parsed:
    """Return the best guess, and its confidence."""
    return parse_blocks(text, _confidence)


def _confidence(inside: str) -> tuple[float | None, None]:
    if _INTEGERS.fullmatch(inside) is None:
        return None, None
    stated = [int(number) for number in inside.split(",")]
    if max(stated) > 100:
        return None, None
    return stated[0] / max(100, sum(stated)), None
