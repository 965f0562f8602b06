"""How the gold answers of a user's table are written: as texts, or by the letter or the number of an option.

The prompt of a multiple-choice question asks for the text of an option, so a gold answer "A" would count every answer
as wrong. A table names the options of all its rows in one way. Where only one way fits, it is taken and counted; where
several do, the setting `gold` has to say which, because "1" may be the first option, the second, or the text of one.
True and False may stand for yes and no, or for themselves, which the setting `booleans` says.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dualread.data.datasets.source_rows import SourceRow
from dualread.errors import DataError, refuse
from dualread.grading.canonical import canonical
from dualread.grading.options import WAYS

GOLDS = tuple(WAYS)
BOOLEANS = ("yes/no", "true/false")
_TRUTHS = ("true", "false")
_SHOWN = 60  # characters of a value in a message
_NAMED = {
    "text": "by its text",
    "letter": "by its letter",
    "number from 0": "by its number, from 0",
    "number from 1": "by its number, from 1",
}


def gold_way(lines: Sequence[SourceRow]) -> str | None:
    """Return the way in `GOLDS` by which the rows with options name the gold one; None if there are no such rows.

    Rows, whose `reference_answers` and `options` are lists, are refused if no way fits all, or if several do and name
    different options.
    """
    rows = [line for line in lines if line.record.get("options")]
    if not rows:
        return None
    fits = {way: [_places(line, way) for line in rows] for way in GOLDS}
    counts = {way: sum(map(bool, places)) for way, places in fits.items()}
    fitting = [way for way in GOLDS if counts[way] == len(rows)]
    if not fitting:
        counted = "; ".join(f"{n} of {len(rows)} rows name an option {_NAMED[way]}" for way, n in counts.items() if n)
        most = max(counts, key=lambda way: counts[way])
        best = most if counts[most] > len(rows) / 2 else "text"
        refuse(_misfits(rows, fits[best], best, counted or f"none of the {len(rows)} rows names an option in any way"))
    first = fits[fitting[0]]
    for way in (*fitting[1:], "text"):  # a letter or a number that is also the text of an option may mean either
        for line, place, other in zip(rows, first, fits[way], strict=True):
            if other and other != place:
                options = (" and ".join(_shown(line.record["options"][i]) for i in places) for places in (place, other))
                names = [f"{option} {_NAMED[by]}" for option, by in zip(options, (fitting[0], way), strict=True)]
                raise DataError(
                    f"{line.place}: the gold answer {_shown(_answers(line)[0])} names {', and '.join(names)}. Say which"
                    " is meant, by `gold` in the settings of the data set (dualread new: --gold):"
                    f" {', '.join(dict.fromkeys([*fitting, way]))}."
                )
    return fitting[0]


def with_texts(lines: Sequence[SourceRow], way: str | None, booleans: str | None) -> list[SourceRow]:
    """Return the rows with gold answers that grading compares: the texts of options, and no booleans.

    `way` and `booleans` are the settings `gold` and `booleans`; without a way, it is found. Booleans among the
    reference answers are still Python's.
    """
    lines = without_booleans(lines, booleans)
    way = gold_way(lines) if way is None else way
    rows = [line for line in lines if line.record.get("options")]
    places = [_places(line, way) for line in rows] if way else []
    refuse(_misfits(rows, places, str(way), f"the setting `gold` is {way!r}"))
    texts = [[line.record["options"][i] for i in place] for line, place in zip(rows, places, strict=True)]
    refuse(
        f"{line.place}: the gold option {_shown(' and '.join(golds))} has no canonical form, so that no answer could be"
        " found right. Correct the row."
        for line, golds in zip(rows, texts, strict=True)
        if not any(map(canonical, golds))
    )
    if way in (None, "text"):
        return list(lines)
    following, note = iter(texts), f"the gold answer names an option {_NAMED[str(way)]}: its text is taken"
    return [
        replace(line, record={**line.record, "reference_answers": next(following)}, notes=(*line.notes, note))
        if line.record.get("options")
        else line
        for line in lines
    ]


def _answers(line: SourceRow) -> Sequence[str]:
    return line.record["reference_answers"]


def _places(line: SourceRow, way: str) -> tuple[int, ...]:
    """Return the places of the options that the gold answers of a row name in a way; () if this way does not fit."""
    # Synonyms may stand beside the text of an option; a letter or a number has none.
    named_places = [WAYS[way](answer, line.record["options"]) for answer in _answers(line)]
    named = tuple(place for place in named_places if place is not None)
    return named if way == "text" or len(named) == len(named_places) else ()


def _misfits(rows: Sequence[SourceRow], places: Sequence[Sequence[int]], way: str, why: str) -> Iterator[str]:
    for line, place in zip(rows, places, strict=True):
        if not place:
            options = line.record["options"]
            stated = " or ".join(_shown(answer) for answer in _answers(line)) or "missing"
            yield (
                f"{line.place}: the gold answer is {stated}, which names none of the {len(options)} options"
                f" {_NAMED[way]}, or two: {_shown('; '.join(options))}. {why[0].upper()}{why[1:]}. Correct the row, or"
                " write all rows in one way."
            )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def without_booleans(lines: Sequence[SourceRow], booleans: str | None) -> list[SourceRow]:
    """Return the rows with texts in place of True and False, as the setting `booleans` says.

    Without it, they are refused where the question asks for neither.
    """
    texts: dict[str, str] = dict(zip(_TRUTHS, (booleans or "true/false").split("/"), strict=True))
    words = "yes or no" if booleans == "yes/no" else "its text"
    made, problems = [], []
    for line in lines:
        offered = " ".join([str(line.record.get("question")), *(line.record.get("options") or ())])
        asks = re.search(r"\b(true|false)\b", offered, re.IGNORECASE) is not None
        answers = _answers(line)
        if not asks and booleans is None and any(str(answer).strip().lower() in _TRUTHS for answer in answers):
            problems.append(
                f"{line.place}: the gold answer is {_shown(str(answers[0]))}, and the question asks for neither true"
                f" nor false: {_shown(line.record['question'])}. Say what it means, by `booleans` in the settings of"
                f" the data set (dualread new: --booleans): {' or '.join(BOOLEANS)}."
            )
            continue
        plain = [str(answer).strip().lower() for answer in answers]
        if asks:  # texts stay as they are
            golds = [word if isinstance(answer, bool) else answer for answer, word in zip(answers, plain, strict=True)]
        else:
            golds = [texts.get(word, answer) for answer, word in zip(answers, plain, strict=True)]
        if golds != list(answers):
            note = f"the gold answer is True or False: {'its text' if asks else words} is taken"
            line = replace(line, record={**line.record, "reference_answers": golds}, notes=(*line.notes, note))
        made.append(line)
    refuse(problems)
    return made
