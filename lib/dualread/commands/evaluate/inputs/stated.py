"""The confidences that the completions of another harness's log state, and the scale on which they are stated.

The paper's own contract is a whole number from 0 to 100, which `dualread.grading.parse` reads. Other people also ask
for numbers from 0 to 1 or from 0 to 10, with decimals or with a percent sign. The scale of the numbers without one is a
fact about the whole log: it is found once, from all of them, and where two scales fit, it is asked for.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from dualread.commands.evaluate.inputs.statements import statements_in
from dualread.data.logs.base import Sample, Score
from dualread.errors import ConfigError
from dualread.grading.parse import block_span
from dualread.grading.typography import untyped

SCALES = (1, 10, 100)
_NUMBER = re.compile(
    r"[*_]*(?P<number>[0-9]{1,9}(?:[.,][0-9]{1,20})?|[.,][0-9]{1,20})\s*"
    r"(?P<unit>%|percent|per cent|(?:/|out of)\s*(?P<scale>[1-9][0-9]{0,2})(?:\.0)?)?\.?[*_]*",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?confidence>")
_THOUGHT = re.compile(r"</think(?:ing)?>")
_SHOWN = 5  # texts that a sentence names
_LONGEST = 30  # characters of each


def spoken_from(completion: str) -> int:
    """Return where the reply begins in a completion, in characters: behind its reasoning, if that is marked as such."""
    return max((found.end() for found in _THOUGHT.finditer(completion)), default=0)


def stated_text(sample: Sample, score: Score | None) -> str | None:
    """Return the text of the confidence that the first completion states; None if it states none.

    This is what stands in its only `<confidence>` block; without any such tag, what `statements` finds. Reasoning in
    `<think>` does not count. None if the score judges something else than the first completion.
    """
    if not sample.completions or (score is not None and not score.of_first):
        return None
    reply = sample.completions[0][spoken_from(sample.completions[0]) :]
    if not _TAG.search(reply):
        return statements_in(reply).confidence
    block, answer = block_span(reply, "confidence"), block_span(reply, "answer")
    if block is None or (answer is not None and (answer[0] < block[0] < answer[1] or block[0] < answer[0] < block[1])):
        return None
    return reply[block[0] : block[1]].strip()


@dataclass(frozen=True, kw_only=True)
class Stated:
    """How the stated confidences of one log are read.

    Attributes:
        scale: What stands for certainty in a number without a unit: 1, 10 or 100; None if no number needs it.
        note: A sentence about it; None if the log states nothing.
    """

    scale: int | None
    note: str | None

    def confidence(self, text: str | None) -> float | None:
        """Return the confidence in [0, 1] that a text states; None if it states none on this scale."""
        if (found := None if text is None else _read(text)) is None:
            return None
        number, own = found
        if number == 0:
            return 0.0
        scale = own or self.scale
        return None if scale is None or number > scale else float(number / scale)


def stated_of(path: Path, texts: Iterable[str | None], asked: int | None) -> Stated:
    """Find the scale on which a log states its confidences.

    Args:
        path: The log, for messages.
        texts: What stands in the confidence block of each question; None where there is none.
        asked: The scale that the user names; None to find it.

    Raises:
        ConfigError: `asked` is no scale, or is None and several scales fit, or numbers contradict each other.
    """
    if asked is not None and asked not in SCALES:
        raise ConfigError(f"--stated-scale {asked}: expected {', '.join(map(str, SCALES[:-1]))} or {SCALES[-1]}.")
    counts = Counter(text for text in texts if text is not None)
    if not counts:
        return Stated(scale=None, note=None)
    read = {text: found for text in counts if (found := _read(text)) is not None}
    plain = {text: number for text, (number, own) in read.items() if own is None}
    scale = asked if asked is not None else _scale(path, plain)
    stated = Stated(scale=scale, note=None)
    unread = [text for text in counts if stated.confidence(text) is None]
    return Stated(scale=scale, note=_note(scale, asked, plain, read, unread, counts))


def _read(text: str) -> tuple[Decimal, int | None] | None:
    """Return a number and what stands for certainty beside it ("95%": 100; "8/10": 10), None where nothing says it."""
    if len(text) > 4 * _LONGEST or (found := _NUMBER.fullmatch(untyped(text).strip())) is None:
        return None
    scale = int(found["scale"]) if found["scale"] else 100 if found["unit"] else None
    number = Decimal(found["number"].replace(",", "."))
    return None if number > (scale or max(SCALES)) else (number, scale)


def _scale(path: Path, plain: Mapping[str, Decimal]) -> int | None:
    """Return the only scale that fits numbers without a unit; None if there are none, or only zeros."""
    largest = max(plain.values(), default=Decimal(0))
    parts = [text for text, number in plain.items() if 0 < number < 1]
    if largest == 0:
        return None
    if largest <= 1 and parts:
        return 1
    if largest > 10 and not parts:
        return 100
    what, fitting = "may be on several scales", [scale for scale in SCALES if largest <= scale]
    if largest > 1 and parts:
        what, fitting = "are on several scales", [1, *fitting]
    others = [text for text, number in plain.items() if not 0 < number < 1]
    raise ConfigError(
        f"{path}: its stated confidences {what}: {_shown([*parts[:2], *others])}."
        f" Say what stands for certainty: --stated-scale {', '.join(map(str, fitting[:-1]))} or {fitting[-1]}. What is"
        " above it is left out."
    )


def _note(
    scale: int | None,
    asked: int | None,
    plain: Mapping[str, Decimal],
    read: Mapping[str, object],
    unread: Sequence[str],
    counts: Mapping[str, int],
) -> str:
    said = []
    if scale is not None and plain:
        why = "as --stated-scale says" if asked is not None else f"for example {_shown(plain)}"
        said.append(f"stated confidences are read on the scale 0 to {scale} ({why})")
    if own := [text for text in read if text not in plain]:
        said.append(
            f"those with a unit by that unit ({_shown(own)})"
            if said
            else f"stated confidences are read by their unit ({_shown(own)})"
        )
    if unread:
        said.append(f"{sum(counts[text] for text in unread)} cannot be read: {_shown(unread)}")
    return "; ".join(said) or "all stated confidences are 0"


def _shown(texts: Iterable[str]) -> str:
    """Return a few of these texts."""
    ordered = list(texts)
    short = [repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...") for text in ordered[:_SHOWN]]
    return ", ".join(short) + (", ..." if len(ordered) > _SHOWN else "")
