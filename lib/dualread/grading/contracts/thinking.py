"""The usual format (`single`) after thinking: what comes up to the last `</think>` is not searched.

It is that of models that think first, such as Qwen3-VL-Thinking, whose chat template begins the thinking itself. A
completion whose thinking never ends has no answer.
"""

from dualread.grading.contracts.single import read_confidence
from dualread.grading.parse import Parsed, parse_blocks

THINKING_ENDS = "</think>"


def parse(text: str) -> Parsed:
    """Return the answer and the stated confidence of a completion."""
    return parse_blocks(text, read_confidence, THINKING_ENDS)
