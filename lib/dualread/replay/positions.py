"""Which completion tokens are read: the token that ends the answer block, and the tokens of the answer (PROTOCOL 3)."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from dualread.grading.parse import answer_span

# Written into every feature artifact and every reader, for whoever has to read a state at the same place.
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
        close: t_close.
        answer: A, ascending; never empty.
        last: Last token that is not a stop token (the last token if all are).
        has_answer_block: False where `close` and `answer` are fallbacks.
    """

    close: int
    answer: tuple[int, ...]
    last: int
    has_answer_block: bool


def locate(token_ids: Sequence[int], decode: Callable[[Sequence[int]], str], stop: Set[int]) -> Positions:
    """Find the positions of one completion.

    Args:
        token_ids: Generated ids, at least one.
        decode: Ids to text, special tokens left out.
        stop: Ids that end a turn.
    """
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
        answer=tuple(t for t, (left, right) in enumerate(spans) if max(left, start) < min(right, end)),
        last=last,
        has_answer_block=True,
    )


def character_spans(
    token_ids: Sequence[int], decode: Callable[[Sequence[int]], str]
) -> tuple[str, list[tuple[int, int]]]:
    """Return the decoded text and, for each token, the characters [left, right) it is responsible for.

    Tokens are decoded one by one. Where that does not give the text of the whole (a character split over several
    tokens), prefixes are decoded instead, and the token that completes a character owns it.
    """
    text = decode(token_ids)
    pieces = [decode([token]) for token in token_ids]
    if "".join(pieces) == text:
        ends = [0]
        for piece in pieces:
            ends.append(ends[-1] + len(piece))
    else:
        # An unfinished character decodes to U+FFFD at the end of a prefix; it is not there yet.
        ends = [0, *(len(decode(token_ids[: t + 1]).rstrip("\ufffd")) for t in range(len(token_ids)))]
        ends[-1] = len(text)
    return text, list(pairwise(ends))
