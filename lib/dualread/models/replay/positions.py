"""The completion tokens that are read: the token that ends the answer block, and the answer's tokens.

The rules for straddling tokens and missing blocks: docs/choices.md, "Positions".
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from dualread.grading.parse import answer_span
from dualread.grading.spans import character_spans, tokens_within

# Stored with every feature artifact and every reader, for users who have to read states at the same positions.
RULES = {
    "t_prompt": "last non-padding prompt token",
    "t_close": "completion token that holds the last character of </answer>; the last token where there is no block",
    "answer": "completion tokens with any character inside the answer, tags and outer white space excluded; all tokens "
    "where there is no block",
    "image": "image placeholder tokens",
    "last": "last completion token that is not a stop token; the last token where there is no other",
}


@dataclass(frozen=True, kw_only=True)
class Positions:
    """Positions within a completion, 0-based.

    Attributes:
        close: t_close, the token that holds the last character of `</answer>`; the last token if there is no valid
            answer block.
        answer: A, the answer's tokens in ascending order, never empty; all tokens if there is no valid answer block.
        last: The last token that is not a stop token; the last token if all are stop tokens.
        has_answer_block: Whether there is a valid answer block.
    """

    close: int
    answer: tuple[int, ...]
    last: int
    has_answer_block: bool


def locate(token_ids: Sequence[int], decode: Callable[[Sequence[int]], str], stop: Set[int]) -> Positions:
    """Find the positions to read in one completion of at least one id; `stop` are the ids that end a turn."""
    text, spans = character_spans(token_ids, decode)
    last = max((t for t, token in enumerate(token_ids) if token not in stop), default=len(token_ids) - 1)
    block = answer_span(text)
    if block is None:
        return Positions(
            close=len(token_ids) - 1, answer=tuple(range(len(token_ids))), last=last, has_answer_block=False
        )
    start, end, close_end = block
    return Positions(
        close=next(t for t, (_, right) in enumerate(spans) if right >= close_end),
        answer=tokens_within(spans, start, end),
        last=last,
        has_answer_block=True,
    )
