"""Read the answer and the stated confidence out of a completion.

The contracts:
- `single`: exactly one non-empty `<answer>` block and exactly one `<confidence>` block with one integer 0..100.
- `dual` (VL-Calibration): the confidence block holds `<vision_confidence>` and `<reasoning_confidence>`, in this order,
  each with one integer 0..10; the confidence is their harmonic mean divided by 10, and 0 when either is 0.

What the paper leaves open, decided here:
- Tags are matched byte for byte: lower case, no white space inside the angle brackets.
- An integer is one to three ASCII digits (one or two in `dual`) whose value is in range; white space around it is
  allowed, a sign is not. `007` is therefore 7.
- A block is its one opening tag before its one closing tag. A tag of any contract inside the answer makes the answer
  invalid; a confidence block inside the answer block, or around it, is invalid together with the answer.
- The reasoning block and the order of the blocks are not checked: the paper requires an answer and a confidence only.

`stated_percent` reads the free reply to a prompt that asks for an integer; it has rules of its own.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dualread.errors import did_you_mean

Status = Literal["valid", "invalid_confidence", "invalid_answer", "invalid_both"]

STATUSES: tuple[Status, ...] = ("valid", "invalid_confidence", "invalid_answer", "invalid_both")

_TAG = re.compile(r"</?(?:vision|reasoning|answer|analysis|confidence|vision_confidence|reasoning_confidence)>")
_SINGLE = re.compile(r"\s*([0-9]{1,3})\s*")
_DUAL = re.compile(
    r"\s*<vision_confidence>\s*([0-9]{1,2})\s*</vision_confidence>"
    r"\s*<reasoning_confidence>\s*([0-9]{1,2})\s*</reasoning_confidence>\s*"
)

_STATED = re.compile(r"<confidence>\s*([0-9]{1,3})\s*</confidence>")
# One to three ASCII digits that no letter, digit, sign or decimal point touches; "-" after a number is not a sign.
_INTEGER = re.compile(r"(?:(?<![^\W_])(?<![.+\u2212-])(?<![0-9],)|(?<=[0-9%]-))([0-9]{1,3})(?![^\W_])(?![.,][0-9])")


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What a completion says: its answer (white space stripped), its confidence in [0, 1], and which of them hold.

    `parts` are the (vision, reasoning) confidences in [0, 1] that a `dual` confidence was made of; None otherwise.
    """

    answer: str | None
    confidence: float | None
    status: Status
    parts: tuple[float, float] | None = None


def parse(text: str, contract: str = "single") -> Parsed:
    """Parse a completion; no string raises.

    Raises:
        ValueError: `contract` is not a known contract.
    """
    if contract not in _CONFIDENCE:
        meant = did_you_mean(contract, _CONFIDENCE)
        raise ValueError(f"parse: no contract named {contract!r}. Known: {', '.join(sorted(_CONFIDENCE))}.{meant}")
    span = answer_span(text)
    answer = None if span is None else text[span[0] : span[1]]
    confidence, parts = None, None
    block, answer_block = block_span(text, "confidence"), block_span(text, "answer")
    if block is not None and not _within(block, answer_block) and not _within(answer_block, block):
        confidence, parts = _CONFIDENCE[contract](text[block[0] : block[1]])
    status = _status(answer is not None, confidence is not None)
    return Parsed(answer=answer, confidence=confidence, status=status, parts=parts)


def answer_span(text: str) -> tuple[int, int, int] | None:
    """Return (start, end, close_end) of the valid answer in characters, or None where `parse` finds no answer.

    `text[start:end]` is the answer without surrounding white space; `close_end` is just past `</answer>`.
    """
    block = block_span(text, "answer")
    if block is None or _within(block, block_span(text, "confidence")):
        return None
    inside = text[block[0] : block[1]]
    if not inside.strip() or _TAG.search(inside):
        return None
    start = block[0] + len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip()), block[1] + len("</answer>")


def stated_percent(text: str) -> int | None:
    """Return the integer from 0 to 100 that a reply states as its percentage, or None; no string raises.

    The paper's rule (app:prompts): a valid explicit `<confidence>NN</confidence>` block, otherwise the last integer in
    [0, 100]. It is followed to the letter: "70 out of 100" states 100.

    What it leaves open, decided here:
    - Of several valid blocks none is explicit: the last integer counts. A block of anything else is no block.
    - An integer is one to three ASCII digits that stand alone: "95%" and "(95)" hold one; "T2", "90th", "10²" do not.
    - A number with a decimal point, or a comma between digits, is not an integer, and neither are its parts: "0.8" and
      "95.0" state nothing. A full stop after it is no decimal point.
    - A sign directly before it makes it another number: "-5" states nothing. In a range, "80-90", it is a dash.
    """
    blocks = [value for value in map(int, _STATED.findall(text)) if value <= 100]
    integers = [value for value in map(int, _INTEGER.findall(text)) if value <= 100]
    stated = blocks if len(blocks) == 1 else integers
    return stated[-1] if stated else None


def block_span(text: str, tag: str) -> tuple[int, int] | None:
    """Return the characters between the only `<tag>` and the only `</tag>` after it, as (start, end); None without."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    start, end = text.index(opening) + len(opening), text.index(closing)
    return (start, end) if start <= end else None


def _within(inner: tuple[int, int] | None, outer: tuple[int, int] | None) -> bool:
    """Tell whether `inner` lies inside `outer`; blocks that only overlap fail by the tags inside them."""
    return inner is not None and outer is not None and outer[0] < inner[0] and inner[1] < outer[1]


def _single(inside: str) -> tuple[float | None, None]:
    match = _SINGLE.fullmatch(inside)
    if match is None or int(match[1]) > 100:
        return None, None
    return int(match[1]) / 100, None


def _dual(inside: str) -> tuple[float | None, tuple[float, float] | None]:
    match = _DUAL.fullmatch(inside)
    if match is None or max(int(match[1]), int(match[2])) > 10:
        return None, None
    vision, reasoning = int(match[1]), int(match[2])
    # 2 / (1/v + 1/r) / 10 as one quotient of integers: nothing is divided by 0, and of 2 and 10 it is the float 1/3.
    confidence = 0.0 if 0 in (vision, reasoning) else vision * reasoning / (5 * (vision + reasoning))
    return confidence, (vision / 10, reasoning / 10)


# What is inside a confidence block -> (confidence, its parts).
_CONFIDENCE: dict[str, Callable[[str], tuple[float | None, tuple[float, float] | None]]] = {
    "single": _single,
    "dual": _dual,
}


def _status(has_answer: bool, has_confidence: bool) -> Status:
    if has_answer:
        return "valid" if has_confidence else "invalid_confidence"
    return "invalid_answer" if has_confidence else "invalid_both"
