"""What is read from a completion besides its format: its answer, a stated percentage, and where its tokens are."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from dualread.grading.canonical import canonical
from dualread.grading.parse import Parsed


def why_no_answer(answer: str | None, canonical_answer: str | None, parse_status: str = "") -> str | None:
    """Return why a completion is wrong whatever the reference answer is; None if there is an answer to be judged.

    No method has a confidence in an answer that does not exist, and it is never kept. The arguments are those of
    `graded_answer`; the status is "" where it is not known.
    """
    if parse_status == "no_end_of_thinking":
        return "the thinking of the completion never ends"
    if answer is None:
        return "the completion has no valid answer block"
    return None if canonical_answer else "the answer is nothing but punctuation"


def graded_answer(parsed: Parsed) -> dict[str, Any]:
    """Return the answer, its canonical form (None if it is empty), the stated confidence, and the status of both.

    The keys are columns of the graded table.
    """
    return {
        "answer": parsed.answer,
        "canonical_answer": (canonical(parsed.answer) or None) if parsed.answer is not None else None,
        "verbalized_confidence": parsed.confidence,
        "parse_status": parsed.status,
    }


def graded_claim(text: str, stated: float | None) -> dict[str, Any]:
    """Return the same of a claim, whose answer is its text; its report has `stated` a confidence, or None."""
    status = "invalid_confidence" if stated is None else "valid"
    return graded_answer(Parsed(answer=text, confidence=stated, status=status))


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


_STATED = re.compile(r"<confidence>\s*([0-9]{1,3})\s*</confidence>")
# One to three ASCII digits with no letter, digit, sign or decimal point next to them; "-" after a number is no sign.
_INTEGER = re.compile(r"(?:(?<![^\W_])(?<![.+\u2212-])(?<![0-9],)|(?<=[0-9%]-))([0-9]{1,3})(?![^\W_])(?![.,][0-9])")


def stated_percent(text: str) -> int | None:
    """Return the integer from 0 to 100 that a reply states as its percentage, or None; no text raises an error.

    The paper's rule (app:prompts): the number in a valid explicit `<confidence>NN</confidence>` block, otherwise the
    last integer in [0, 100]. The rule is followed to the letter: "70 out of 100" states 100.

    The paper leaves some cases open. These are the decisions:

    - Several valid blocks contradict each other, so the last integer counts. A block that holds anything but an integer
      in range is not valid.
    - An integer is one to three ASCII digits that stand alone: "95%" and "(95)" hold one; "T2", "90th", "10²" do not.
    - A number with a decimal point, or with a comma between digits, is not an integer, and neither are its parts: "0.8"
      and "95.0" state nothing. A full stop after a number is not a decimal point.
    - A sign directly before a number belongs to it: "-5" states nothing. In a range such as "80-90" it is a dash.
    """
    blocks = [value for value in map(int, _STATED.findall(text)) if value <= 100]
    integers = [value for value in map(int, _INTEGER.findall(text)) if value <= 100]
    stated = blocks if len(blocks) == 1 else integers
    return stated[-1] if stated else None
