"""Which characters of a decoded completion each of its tokens holds, and which tokens a stretch of text needs."""

from collections.abc import Callable, Sequence
from itertools import pairwise


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


def tokens_within(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, ...]:
    """Return the tokens with any character inside [start, end), ascending; one that straddles a boundary belongs."""
    return tuple(t for t, (left, right) in enumerate(spans) if max(left, start) < min(right, end))
