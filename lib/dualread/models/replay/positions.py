"""The completion tokens that are read: the token that ends the answer block, and the answer's tokens.

The rules for straddling tokens and missing blocks: docs/choices.md, "Positions".
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

from dualread.grading.answers import character_spans, tokens_within
from dualread.grading.parse import answer_span, text_after_thinking


@dataclass(frozen=True, kw_only=True)
class Positions:
    """Positions within a completion, 0-based.

    Attributes:
        close: t_close, the token that holds the last character of `</answer>`; the last token if there is no valid
            answer block.
        answer: A, the answer's tokens in ascending order, never empty; all tokens if there is no valid answer block.
        last: The last token that is not a stop token; the last token if all are stop tokens.
        has_answer_block: Whether there is a valid answer block.
        think: The token that holds the last character of what ends the thinking; -1 if thinking never ends, None where
            completions do not think.
        first: The token before which h_pre is read: 0, so that it is that of the prompt, but for a claim.
    """

    close: int
    answer: tuple[int, ...]
    last: int
    has_answer_block: bool
    think: int | None = None
    first: int = 0

    def of_claim(self, tokens: tuple[int, ...]) -> "Positions":
        """Return the positions to read of a claim of the completion, which has at least one token."""
        return replace(self, first=tokens[0], answer=tokens, close=tokens[-1], last=tokens[-1])


def locate(
    token_ids: Sequence[int], decode: Callable[[Sequence[int]], str], stop: Set[int], thinking_ends: str | None = None
) -> Positions:
    """Find the positions to read in one completion of at least one id; `stop` are the ids that end a turn.

    `thinking_ends` is what ends the thinking before an answer; None where completions do not think.
    """
    text, spans = character_spans(token_ids, decode)
    n, think, first = len(token_ids), None, 0
    last = max((t for t, token in enumerate(token_ids) if token not in stop), default=n - 1)

    def token_before(end: int) -> int:
        return next(t for t, (_, right) in enumerate(spans) if right >= end)

    if thinking_ends is not None:
        after = text_after_thinking(text, thinking_ends)
        think = -1 if after is None else token_before(len(text) - len(after))
        first = n - 1 if after is None else min(think + 1, n - 1)
    block = answer_span(text, thinking_ends)
    if block is None:
        return Positions(close=n - 1, answer=tuple(range(first, n)), last=last, has_answer_block=False, think=think)
    start, end, close_end = block
    close, answer = token_before(close_end), tokens_within(spans, start, end)
    return Positions(close=close, answer=answer, last=last, has_answer_block=True, think=think)
