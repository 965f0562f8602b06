"""A confidence in words: one of seven expressions in the `<confidence>` block, in any case, with or without a stop.

Each stands for the probability that people take it for, about the medians of published surveys.
"""

from dualread.grading.parse import Parsed, parse_blocks

PROBABILITIES = {
    "almost certain": 0.95,
    "highly likely": 0.9,
    "likely": 0.7,
    "about even": 0.5,
    "unlikely": 0.2,
    "highly unlikely": 0.05,
    "almost no chance": 0.02,
}


def parse(text: str) -> Parsed:
    """Return the answer, and the probability that its words stand for."""

    def confidence(inside: str) -> tuple[float | None, None]:
        return PROBABILITIES.get(" ".join(inside.lower().split()).rstrip(" .,;:!")), None

    return parse_blocks(text, confidence)
