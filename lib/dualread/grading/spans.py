"""Map the tokens of a completion to the characters of its text, and a stretch of text back to its tokens."""

from collections.abc import Callable, Sequence
from itertools import pairwise


def character_spans(
    token_ids: Sequence[int], decode: Callable[[Sequence[int]], str]
) -> tuple[str, list[tuple[int, int]]]:
    """Return the decoded text and, for each token, the range [left, right) of its characters.

    Tokens are decoded one by one. If the pieces do not add up to the whole text (because several tokens share a
    character), growing prefixes are decoded instead, and a character belongs to the token that completes it.
    """
    text = decode(token_ids)
    pieces = [decode([token]) for token in token_ids]
    if "".join(pieces) == text:
        ends = [0]
        for piece in pieces:
            ends.append(ends[-1] + len(piece))
    else:
        # An unfinished character decodes to U+FFFD at the end of a prefix; it does not count yet.
        ends = [0, *(len(decode(token_ids[: t + 1]).rstrip("\ufffd")) for t in range(len(token_ids)))]
        ends[-1] = len(text)
    return text, list(pairwise(ends))


def tokens_within(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, ...]:
    """Return the tokens with at least one character in [start, end), ascending; they may reach beyond the range."""
    return tuple(t for t, (first, last) in enumerate(spans) if max(first, start) < min(last, end))
