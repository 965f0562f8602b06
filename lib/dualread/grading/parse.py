"""Read the answer and the stated confidence of a completion.

A contract is the format that the prompt asks for:

- `single`: exactly one non-empty `<answer>` block, and exactly one `<confidence>` block with one integer from 0 to 100.
- `dual` (VL-Calibration): the same, but the `<confidence>` block holds `<vision_confidence>` and then
  `<reasoning_confidence>`, each with one integer from 0 to 10. The confidence is their harmonic mean divided by 10; it
  is 0 if either is 0.

The paper leaves some cases open. These are the decisions:

- Tags have to match exactly: lower case, no white space inside the angle brackets.
- An integer is one to three ASCII digits (one or two in `dual`) whose value is in range. White space around it is
  allowed, a sign is not. Leading zeros are allowed: `007` is 7.
- A block starts at the only opening tag and ends at the only closing tag after it. With a second tag of either kind,
  there is no block.
- Any tag inside the answer, of either contract, makes the answer invalid. If one of the two blocks encloses the other,
  both are invalid.
- Neither the reasoning block nor the order of the blocks is checked, because the paper requires an answer and a
  confidence only.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Parsed", "parse"]

Status = Literal["valid", "invalid_confidence", "invalid_answer", "invalid_both"]

STATUSES: tuple[Status, ...] = ("valid", "invalid_confidence", "invalid_answer", "invalid_both")

_TAG = re.compile(r"</?(?:vision|reasoning|answer|analysis|confidence|vision_confidence|reasoning_confidence)>")
_SINGLE = re.compile(r"\s*([0-9]{1,3})\s*")
_DUAL = re.compile(
    r"\s*<vision_confidence>\s*([0-9]{1,2})\s*</vision_confidence>"
    r"\s*<reasoning_confidence>\s*([0-9]{1,2})\s*</reasoning_confidence>\s*"
)


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """The answer and the stated confidence of one completion, and which of them are valid.

    Attributes:
        answer: Text of the answer block without white space at the ends, otherwise verbatim; None if it is invalid.
        confidence: Stated confidence in [0, 1]; None if it is invalid. An invalid answer does not make it None unless
            one of the two blocks encloses the other.
        status: "valid" if both hold, "invalid_confidence" if the answer alone holds, "invalid_answer" if the confidence
            alone holds, "invalid_both" if neither does.
        parts: The vision and the reasoning confidence, each in [0, 1], whose harmonic mean is `confidence`, under the
            contract `dual`; None under `single` and if the confidence is invalid.
    """

    answer: str | None
    confidence: float | None
    status: Status
    parts: tuple[float, float] | None = None


def parse(text: str, contract: str = "single") -> Parsed:
    """Return the answer and the stated confidence of a completion.

    Args:
        text: The completion. Any text can be parsed; what does not follow the contract is invalid and raises nothing.
        contract: "single" or "dual", as described above.

    Raises:
        ValueError: `contract` is neither "single" nor "dual".
    """
    if contract not in _CONFIDENCE:
        raise ValueError(f"parse: no contract named {contract!r}. Known: {', '.join(sorted(_CONFIDENCE))}.")
    span = answer_span(text)
    answer = None if span is None else text[span[0] : span[1]]
    confidence, parts = None, None
    block, answer_block = block_span(text, "confidence"), block_span(text, "answer")
    if block is not None and not _within(block, answer_block) and not _within(answer_block, block):
        confidence, parts = _CONFIDENCE[contract](text[block[0] : block[1]])
    status = _status(answer is not None, confidence is not None)
    return Parsed(answer=answer, confidence=confidence, status=status, parts=parts)


def answer_span(text: str) -> tuple[int, int, int] | None:
    """Return where the valid answer is, as (start, end, close_end) in characters; None where `parse` finds no answer.

    `text[start:end]` is the answer without white space at the ends. `close_end` is the character after `</answer>`.
    """
    block = block_span(text, "answer")
    if block is None or _within(block, block_span(text, "confidence")):
        return None
    inside = text[block[0] : block[1]]
    if not inside.strip() or _TAG.search(inside):
        return None
    start = block[0] + len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip()), block[1] + len("</answer>")


def block_span(text: str, tag: str) -> tuple[int, int] | None:
    """Return what lies between the only `<tag>` and the only `</tag>`, as (start, end) in characters, or None."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    start, end = text.index(opening) + len(opening), text.index(closing)
    return (start, end) if start <= end else None


def _within(inner: tuple[int, int] | None, outer: tuple[int, int] | None) -> bool:
    """Return whether `inner` lies inside `outer`. Blocks that only overlap are invalid for the tags inside them."""
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
    # 2 / (1/v + 1/r) / 10, as one quotient of integers: rounded only once, so that 2 and 10 give the float 1/3.
    confidence = 0.0 if 0 in (vision, reasoning) else vision * reasoning / (5 * (vision + reasoning))
    return confidence, (vision / 10, reasoning / 10)


# The reader of each contract: from the text inside a confidence block to (confidence, parts).
_CONFIDENCE: dict[str, Callable[[str], tuple[float | None, tuple[float, float] | None]]] = {
    "single": _single,
    "dual": _dual,
}


def _status(has_answer: bool, has_confidence: bool) -> Status:
    if has_answer:
        return "valid" if has_confidence else "invalid_confidence"
    return "invalid_answer" if has_confidence else "invalid_both"
