"""The format of VL-Calibration: as `single`, but with two confidences.

The `<confidence>` block holds `<vision_confidence>` and then `<reasoning_confidence>`, each with one integer from 0 to
10, of one or two ASCII digits. The confidence is their harmonic mean divided by 10; it is 0 if either is 0.
"""

import re

from dualread.grading.parse import Parsed, Parts, parse_blocks

_INTEGERS = re.compile(
    r"\s*<vision_confidence>\s*([0-9]{1,2})\s*</vision_confidence>"
    r"\s*<reasoning_confidence>\s*([0-9]{1,2})\s*</reasoning_confidence>\s*"
)


def parse(text: str) -> Parsed:
    """Return the answer and the stated confidence of a completion."""
    return parse_blocks(text, _confidence)


def _confidence(inside: str) -> tuple[float | None, Parts | None]:
    match = _INTEGERS.fullmatch(inside)
    if match is None or max(int(match[1]), int(match[2])) > 10:
        return None, None
    vision, reasoning = int(match[1]), int(match[2])
    # 2 / (1/v + 1/r) / 10, as one quotient of integers: rounded only once, so that 2 and 10 give the float 1/3.
    confidence = 0.0 if 0 in (vision, reasoning) else vision * reasoning / (5 * (vision + reasoning))
    return confidence, (vision / 10, reasoning / 10)
