"""How the gold answers of a user's table are written: as texts, or by the letter or the number of an option.

The prompt of a multiple-choice question asks for the text of an option, so a gold answer "A" would count every answer
as wrong. A table names the options of all its rows in one way. Where only one way fits, it is taken and counted; where
several do, the setting `gold` has to say which, because "1" may be the first option, the second, or the text of one.
True and False may stand for yes and no, or for themselves, which the setting `booleans` says.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dualread.data.datasets.own_tables import OwnRow
from dualread.errors import DataError, refuse
from dualread.grading.canonical import canonical
from dualread.grading.options import WAYS

GOLDS = tuple(WAYS)
BOOLEANS = ("yes/no", "true/false")
_SHOWN = 60  # characters of a value in a message
_NAMED = {
    "text": "by its text",
    "letter": "by its letter",
    "number from 0": "by its number, from 0",
    "number from 1": "by its number, from 1",
}


def gold_way(lines: Sequence[OwnRow]) -> str | None:
    """Return the way in `GOLDS` by which the rows with options name the gold one; None if there are no such rows.

    Args:
        lines: Rows whose `reference_answers` are lists, and whose `options` are lists or None.

    Raises:
        DataError: No way fits all rows, or several do and name different options; rows are listed, up to ten.
    """
    rows = [line for line in lines if line.record.get("options")]
    if not rows:
        return None
    fits = {way: [_places(line, way) for line in rows] for way in GOLDS}
    fitting = [way for way, places in fits.items() if all(places)]
    if not fitting:
        counts = {way: sum(1 for place in places if place) for way, places in fits.items()}
        counted = "; ".join(f"{n} of {len(rows)} rows name an option {_NAMED[way]}" for way, n in counts.items() if n)
        most = max(counts, key=lambda way: counts[way])
        best = most if counts[most] > len(rows) / 2 else "text"
        refuse(_misfits(rows, fits[best], best, counted or f"none of the {len(rows)} rows names an option in any way"))
    first = fits[fitting[0]]
    asked = [way for way in fitting[1:] if fits[way] != first]
    # A letter or a number that is also the text of an option of its row may mean either.
    texts = [] if fitting[0] == "text" else [i for i, place in enumerate(fits["text"]) if place and place != first[i]]
    if asked or texts:
        way, i = (asked[0], _differ(first, fits[asked[0]])) if asked else ("text", texts[0])
        raise DataError(
            f"{rows[i].place}: the gold answer {_shown(_answers(rows[i])[0])} names {_option(rows[i], first[i])}"
            f" {_NAMED[fitting[0]]}, and {_option(rows[i], fits[way][i])} {_NAMED[way]}. Say which is meant, by `gold`"
            " in the settings of the data set (dualread new: --gold):"
            f" {', '.join([*fitting, *({way} - set(fitting))])}."
        )
    return fitting[0]


def with_texts(lines: Sequence[OwnRow], way: str | None, booleans: str | None) -> list[OwnRow]:
    """Return the rows with gold answers that grading compares: the texts of options, and no booleans.

    Args:
        lines: As for `gold_way`; booleans among the reference answers are still Python's.
        way: The setting `gold`; None to find it.
        booleans: The setting `booleans`; None if no table has any.

    Raises:
        DataError: As `gold_way`; a gold answer is no option; or there are booleans, and no setting.
    """
    lines = without_booleans(lines, booleans)
    way = gold_way(lines) if way is None else way
    rows = [line for line in lines if line.record.get("options")]
    places = [_places(line, way) for line in rows] if way else []
    refuse(_misfits(rows, places, str(way), f"the setting `gold` is {way!r}"))
    refuse(
        f"{line.place}: the gold option {_option(line, place)} has no canonical form, so that no answer could be found"
        " right. Correct the row."
        for line, place in zip(rows, places, strict=True)
        if not any(canonical(line.record["options"][i]) for i in place)
    )
    if way in (None, "text"):
        return list(lines)
    texts = iter(places)
    return [
        _answered(line, next(texts), f"the gold answer names an option {_NAMED[str(way)]}: its text is taken")
        if line.record.get("options")
        else line
        for line in lines
    ]


def _answered(line: OwnRow, places: Sequence[int], note: str) -> OwnRow:
    texts = [line.record["options"][place] for place in places]
    return replace(line, record={**line.record, "reference_answers": texts}, notes=(*line.notes, note))


def _answers(line: OwnRow) -> Sequence[str]:
    return line.record["reference_answers"]


def _places(line: OwnRow, way: str) -> tuple[int, ...]:
    """Return the places of the options that the gold answers of a row name in a way; () if this way does not fit."""
    # Synonyms may stand beside the text of an option; a letter or a number has none.
    named_places = [WAYS[way](answer, line.record["options"]) for answer in _answers(line)]
    named = tuple(place for place in named_places if place is not None)
    return named if way == "text" or len(named) == len(named_places) else ()


def _misfits(rows: Sequence[OwnRow], places: Sequence[Sequence[int]], way: str, why: str) -> Iterator[str]:
    for line, place in zip(rows, places, strict=True):
        if not place:
            options = line.record["options"]
            stated = " or ".join(_shown(answer) for answer in _answers(line)) or "missing"
            yield (
                f"{line.place}: the gold answer is {stated}, which names none of the {len(options)} options"
                f" {_NAMED[way]}, or two: {_shown('; '.join(options))}. {why[0].upper()}{why[1:]}. Correct the row, or"
                " write all rows in one way."
            )


def _differ(first: Sequence[Any], second: Sequence[Any]) -> int:
    return next(i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)


def _option(line: OwnRow, places: Sequence[int]) -> str:
    return " and ".join(_shown(line.record["options"][place]) for place in places)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def without_booleans(lines: Sequence[OwnRow], booleans: str | None) -> list[OwnRow]:
    """Return the rows with texts in place of True and False, as the setting `booleans` says.

    Raises:
        DataError: There is no setting, and True or False is the gold answer of a question that asks for neither.
    """
    are_booleans = [_is_boolean(line) for line in lines]
    if booleans is None:
        refuse(
            f"{line.place}: the gold answer is {_shown(str(_answers(line)[0]))}, and the question asks for neither"
            f" true nor false: {_shown(line.record['question'])}. Say what it means, by `booleans` in the settings of"
            f" the data set (dualread new: --booleans): {' or '.join(BOOLEANS)}."
            for line, is_one in zip(lines, are_booleans, strict=True)
            if is_one
        )
        return [_as_texts(line, _TRUE_FALSE) for line in lines]
    texts: dict[str, str] = dict(zip(("true", "false"), booleans.split("/"), strict=True))
    return [_as_texts(line, texts if is_one else _TRUE_FALSE) for line, is_one in zip(lines, are_booleans, strict=True)]


_TRUE_FALSE = {"true": "true", "false": "false"}


def _is_boolean(line: OwnRow) -> bool:
    """Return whether True or False is a gold answer of a question that does not ask for them."""
    if not any(str(answer).strip().lower() in _TRUE_FALSE for answer in _answers(line)):
        return False
    offered = " ".join([str(line.record.get("question")), *(line.record.get("options") or ())])
    return re.search(r"\b(true|false)\b", offered, re.IGNORECASE) is None


def _as_texts(line: OwnRow, texts: Mapping[str, str]) -> OwnRow:
    answers = [_text(answer, texts) for answer in _answers(line)]
    if answers == list(_answers(line)):
        return line
    note = f"the gold answer is True or False: {'yes or no' if 'yes' in texts.values() else 'its text'} is taken"
    return replace(line, record={**line.record, "reference_answers": answers}, notes=(*line.notes, note))


def _text(answer: Any, texts: Mapping[str, str]) -> str:
    plain = str(answer).strip().lower()
    return texts[plain] if isinstance(answer, bool) or (plain in texts and texts is not _TRUE_FALSE) else answer
