"""Find the answer and the stated confidence in a completion: what the formats of completions have in common.

A format is a plugin of `dualread.grading.contracts`. In each of them the answer is an `<answer>` block, whose tokens
the replay reads, and what is stated about it is a `<confidence>` block; what this block holds is up to the contract.

The paper leaves some cases open. These are the decisions:

- Tags have to match exactly: lower case, no white space inside the angle brackets.
- A block starts at the only opening tag and ends at the only closing tag after it. With a second tag of either kind,
  there is no block.
- Any tag inside the answer, of either contract of the paper, makes the answer invalid. If one of the two blocks
  encloses the other, both are invalid.
- Neither the reasoning block nor the order of the blocks is checked, because the paper requires an answer and a
  confidence only.
- Where completions think first, what ends the thinking is looked for, and nothing up to the last of it is searched.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Status = Literal["valid", "invalid_confidence", "invalid_answer", "invalid_both", "no_end_of_thinking"]

_TAG = re.compile(r"</?(?:vision|reasoning|answer|analysis|confidence|vision_confidence|reasoning_confidence)>")
Parts = tuple[float, float]
# From the text inside a confidence block to the confidence in [0, 1] and its parts; None for what is invalid.
ReadConfidence = Callable[[str], tuple[float | None, Parts | None]]


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """The answer and the stated confidence of one completion, and which of them are valid.

    Attributes:
        answer: Text of the answer block without white space at the ends, otherwise verbatim; None if it is invalid.
        confidence: Stated confidence in [0, 1]; None if it is invalid. An invalid answer does not make it None unless
            one of the two blocks encloses the other.
        status: "valid" if both hold, "invalid_confidence" if the answer alone holds, "invalid_answer" if the confidence
            alone holds, "invalid_both" if neither does, "no_end_of_thinking" if that is why neither does.
        parts: The vision and the reasoning confidence, each in [0, 1], whose harmonic mean is `confidence`, under the
            contract `dual`; None under `single` and if the confidence is invalid.
    """

    answer: str | None
    confidence: float | None
    status: Status
    parts: Parts | None = None


def text_after_thinking(text: str, thinking_ends: str | None) -> str | None:
    """Return what comes after the last of what ends the thinking; None if thinking never ends.

    It is the whole text where completions do not think, and so nothing ends their thinking (`thinking_ends` is None).
    """
    if thinking_ends is None:
        return text
    return text.rpartition(thinking_ends)[2] if thinking_ends in text else None


def parse_blocks(text: str, read_confidence: ReadConfidence, thinking_ends: str | None = None) -> Parsed:
    """Return the answer and the stated confidence of a completion.

    Args:
        text: The completion. Any text can be parsed; what does not follow the contract is invalid and raises nothing.
        read_confidence: Reads what a confidence block holds.
        thinking_ends: What ends the thinking before an answer; None where completions do not think.
    """
    if (after := text_after_thinking(text, thinking_ends)) is None:
        return Parsed(answer=None, confidence=None, status="no_end_of_thinking")
    text = after
    span = answer_span(text)
    answer = None if span is None else text[span[0] : span[1]]
    confidence, parts = None, None
    block, answer_block = block_span(text, "confidence"), block_span(text, "answer")
    if block is not None and not _within(block, answer_block) and not _within(answer_block, block):
        confidence, parts = read_confidence(text[block[0] : block[1]])
    status: Status = "valid" if confidence is not None else "invalid_confidence"
    if answer is None:
        status = "invalid_answer" if confidence is not None else "invalid_both"
    return Parsed(answer=answer, confidence=confidence, status=status, parts=parts)


def answer_span(text: str, thinking_ends: str | None = None) -> tuple[int, int, int] | None:
    """Return where the valid answer is, as (start, end, close_end) in characters; None where there is none.

    `text[start:end]` is the answer without white space at the ends. `close_end` is the character after `</answer>`.
    """
    after = text_after_thinking(text, thinking_ends) or ""
    before, text = len(text) - len(after), after
    block = block_span(text, "answer")
    if block is None or _within(block, block_span(text, "confidence")):
        return None
    inside = text[block[0] : block[1]]
    if not inside.strip() or _TAG.search(inside):
        return None
    start = before + block[0] + len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip()), before + block[1] + len("</answer>")


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
