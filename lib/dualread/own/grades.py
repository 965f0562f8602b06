"""Step 2, the grades: which answers are right, and in which tables that cannot be told from the texts.

An answer is right if it equals an accepted answer in canonical form, as in the paper. Where answers and reference
answers are written in two ways (True and yes, the letter of an option and its text, ...), all of them would count as
wrong: such tables are refused by name. With the options of multiple-choice questions, letters and numbers become texts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import polars as pl

from dualread.errors import ConfigError
from dualread.grading.canonical import canonical, is_correct
from dualread.grading.options import WAYS, option_of, ways_of
from dualread.own.given import UserTable, short, some

_ASKED = ("|", " / ")  # what may separate alternatives, or be a part of one answer
_NAMES = {
    "truth": "True or False",
    "yes": "yes or no",
    "letter": "the letter of an option",
    "number": "a number",
    "bit": "a number",  # 0 or 1, which alone may stand for no and yes
    "text": "a text",
}
_WORDS = ("truth", "yes", "bit")
_CLASHES = (
    *(("truth", "yes"), ("yes", "truth"), ("bit", "yes"), ("yes", "bit")),
    *(("bit", "truth"), ("truth", "bit")),
    *(("letter", "text"), ("text", "letter"), ("number", "text"), ("text", "number")),
    *(("letter", "number"), ("number", "letter")),
)
_LETTER = re.compile(r"(?:[(\[{] ?)?[A-J](?: ?[)\]}])?[.:]?|[(\[{] ?[a-j] ?[)\]}]")
_NUMBER = re.compile(r"[0-9]{1,2}")
_MANY = 20  # answers of which not all are alike by chance
_FEW = 3  # rows of a clash that are worth a word: one or two answers may just be wrong


def graded(given: UserTable, prefix: str = "") -> dict[str, pl.Series]:
    """Return what is known of the answers of each row.

    The columns are `correct` (bool); `canonical_answer` (text, null if empty), if the table has answers; and `golds`
    (list of text), the canonical forms of the gold answers, if it has these.

    Args:
        given: The table.
        prefix: What the names of its columns begin with.

    Raises:
        DataError: Neither `correct` nor answers with gold answers are there, a value is wrong, or answers and gold
            answers cannot be compared as they are written.
    """
    answer, reference = f"{prefix}answer", f"{prefix}reference_answer"
    columns = {}
    texts = given.wholes(answer).to_list() if given.has(answer) else None
    if texts is not None:
        forms = [canonical(text or "") or None for text in texts]
        columns["canonical_answer"] = pl.Series(forms, dtype=pl.String)
    references = given.alternatives(reference) if given.has(reference) else None
    if references is not None:
        distinct: dict[tuple[str, ...], int] = {}  # many rows have the same ones, and lists take long to make
        places = [distinct.setdefault(tuple(row), len(distinct)) for row in references]
        golds = [sorted(set(map(canonical, row)) - {""}) for row in distinct]
        columns["golds"] = pl.Series(golds, dtype=pl.List(pl.String)).gather(places)
    if given.has(f"{prefix}correct"):
        return {**columns, "correct": given.truth(f"{prefix}correct")}
    if texts is None or references is None:
        given.need(f"{prefix}correct", f"and not both {answer!r} and {reference!r}, from which it could be graded")
    assert texts is not None
    assert references is not None
    given.refuse(
        reference,
        pl.Series([" | ".join(row) for row in references], dtype=pl.String),
        columns["golds"].list.len() == 0,
        f"expected an answer that is not empty after normalization; give '{prefix}correct' or drop the rows",
    )
    _refuse_doubtful_alternatives(given, reference, texts, references)
    _refuse_clashes(given, answer, reference, texts, references)
    return {**columns, "correct": _grades(texts, references)}


def _grades(texts: Sequence[str | None], references: Sequence[Sequence[str]]) -> pl.Series:
    grades = [is_correct(text, row) for text, row in zip(texts, references, strict=True)]
    return pl.Series(grades, dtype=pl.Boolean)


def _refuse_doubtful_alternatives(
    given: UserTable, reference: str, texts: Sequence[str | None], references: Sequence[Sequence[str]]
) -> None:
    """Refuse `a|b` and `a / b` where the grade depends on whether they are alternatives, unless the user said so."""
    if given.separator is not None:
        return
    for separator in _ASKED:
        found = [
            (row, " ".join(golds))
            for row, text, golds in zip(given.rows, texts, references, strict=True)
            if any(separator in gold for gold in golds)
            and not is_correct(text, golds)
            and is_correct(text, [part for gold in golds for part in gold.split(separator)])
        ]
        if found:
            raise given.error(
                f"{given.column(reference)} holds texts with {separator.strip()!r}, such as {short(found[0][1])} in row"
                f" {found[0][0]}. If these are alternatives, {len(found)} more answers are right: add --alternatives"
                f" {separator!r} (in Python alternatives={separator!r}). If they are one answer, add"
                " --alternatives '#'."
            )


def _clashes(
    texts: Sequence[str | None], references: Sequence[Sequence[str]], rows: Sequence[int]
) -> tuple[dict[tuple[str, str], list[int]], dict[str, int], int]:
    """Return the rows of each clash of forms, how many gold answers have each form, and the number of answers."""
    found: dict[tuple[str, str], list[int]] = {}
    golds_of: dict[str, int] = {}
    n = 0
    known: dict[str, tuple[str, ...]] = {}
    for row, text, golds in zip(rows, texts, references, strict=True):
        if not text or not golds:
            continue
        n += 1
        forms = {form for gold in golds for form in known.get(gold) or known.setdefault(gold, _forms(gold))}
        of_answer = known.get(text) or known.setdefault(text, _forms(text))
        for form in forms:
            golds_of[form] = golds_of.get(form, 0) + 1
        if forms.isdisjoint(of_answer):
            for clash in product(of_answer, forms):
                found.setdefault(clash, []).append(row)
    return found, golds_of, n


def _forms(text: str) -> tuple[str, ...]:
    form = form_of(text)
    return (form, "bit") if form == "number" and canonical(text) in ("0", "1") else (form,)


def _refuse_clashes(
    given: UserTable, answer: str, reference: str, texts: Sequence[str | None], references: Sequence[Sequence[str]]
) -> None:
    """Refuse a table whose answers and gold answers are written in two ways that never agree.

    A clash of True, False, yes, no, 1 and 0 is refused if it concerns at least half of the gold answers of its form,
    and three of them or half of all rows; one of options (letters, numbers, texts) if it concerns at least half of all
    rows, because one "A" among others may just be wrong.
    """
    rows_of = given.rows.to_list()
    found, golds_of, n = _clashes(texts, references, rows_of)
    for one, other in _CLASHES:
        rows = found.get((one, other), [])
        words = {one, other} <= set(_WORDS)
        few = not words or len(rows) < _FEW
        if not rows or 2 * len(rows) < (n if few else golds_of[other]):
            continue
        row = rows[0]
        place = rows_of.index(row)
        what = f"{short(texts[place])} against {short(' or '.join(references[place]))}"
        advice = "Write both in the same way"
        if not words:
            advice = "Name the columns that hold the options (--options A B C D), or write both as texts"
        raise given.error(
            f"in {len(rows)} of {n} rows, {given.column(answer)} is {_NAMES[one]} and {given.column(reference)} is"
            f" {_NAMES[other]}: {what} in row {row}. These answers would all count as wrong. {advice}, or give a"
            " column 'correct'."
        )


def mixed_forms(given: UserTable, prefix: str = "") -> str | None:
    """Return a sentence about options that are a letter on one side and a text on the other in some rows; None if none.

    Tables in which most rows are so were refused.
    """
    answer, reference = f"{prefix}answer", f"{prefix}reference_answer"
    if given.has(f"{prefix}correct") or not (given.has(answer) and given.has(reference)):
        return None
    found, _, n = _clashes(given.wholes(answer).to_list(), given.alternatives(reference), given.rows.to_list())
    rows = sorted({*found.get(("letter", "text"), []), *found.get(("text", "letter"), [])})
    if len(rows) < _FEW or len(rows) * _MANY < n:
        return None
    return (
        f"warning: {given.path}: in {len(rows)} of {n} rows, one of {given.column(answer)} and"
        f" {given.column(reference)} is the letter of an option and the other a text; these answers count as"
        f" wrong: {some(rows)}"
    )


def all_alike(given: UserTable, answers: pl.DataFrame) -> list[str]:
    """Return sentences about methods all of whose answers are right, or all wrong, if these are many.

    Args:
        given: The table, for messages.
        answers: Its rows, with the columns method, correct and row.
    """
    found = []
    for method, n, right in answers.group_by("method").agg(n=pl.len(), right=pl.sum("correct")).sort("method").rows():
        if n >= _MANY and right in (0, n):
            kind = "wrong" if right == 0 else "right"
            graded_by = "'correct' says so" if given.has("correct") else "they are graded by their reference answers"
            found.append(
                f"warning: {given.path}: all {n} answers of {method} are {kind} ({graded_by}). Is that what you expect?"
                " Look at a few rows; if answers and reference answers are written in two ways, none is right."
            )
    return found


def disagreement(given: UserTable, prefix: str = "") -> str | None:
    """Return a sentence about the rows in which `correct` cannot be what the answers say; None if there are none.

    An answer that equals its gold answer counts as wrong there, or yes counts as right where no is. That other words
    than those of the gold answer count as right is what a judge is for, and is not remarked.
    """
    correct, answer, reference = (f"{prefix}{name}" for name in ("correct", "answer", "reference_answer"))
    if not all(map(given.has, (correct, answer, reference))):
        return None
    texts, references = given.wholes(answer).to_list(), given.alternatives(reference)
    equal, right = _grades(texts, references), given.truth(correct)
    opposite = pl.Series(
        [
            form_of(text or "") == "yes" and bool(golds) and "yes" in map(form_of, golds)
            for text, golds in zip(texts, references, strict=True)
        ],
        dtype=pl.Boolean,
    )
    if not (rows := given.rows.filter((equal & ~right) | (opposite & ~equal & right)).to_list()):
        return None
    return (
        f"warning: {given.path}: in {len(rows)} of {len(given.rows)} rows, {correct!r} is not what grading {answer!r}"
        f" by {reference!r} gives: {some(rows)}. What counts is {correct!r}; without this column, answers are"
        " graded as in the paper."
    )


def empty(given: UserTable, prefix: str = "") -> str | None:
    """Return a sentence about the answers that are graded though they are empty; None if there are none."""
    answer = f"{prefix}answer"
    if given.has(f"{prefix}correct") or not given.has(answer):
        return None
    if not (rows := given.rows.filter(given.optional_text(answer).is_null()).to_list()):
        return None
    return (
        f"warning: {given.path}: {given.column(answer)} is empty in {len(rows)} of {len(given.rows)} rows, which count"
        f" as wrong answers: {some(rows)}"
    )


def without_confidence(given: UserTable, column: str, grades: Mapping[str, pl.Series]) -> pl.Series:
    """Return bool [n]: the answers that do not exist, and have no confidence, as those of `dualread score` have none.

    Args:
        given: The table.
        column: Its column of confidences.
        grades: From `graded`.
    """
    if "canonical_answer" not in grades or not given.has(column):
        return pl.repeat(False, len(given.rows), eager=True)
    text = given.optional_text(column)
    missing = text.is_null() | (text.str.to_lowercase() == "nan").fill_null(False)
    return missing & grades["canonical_answer"].is_null() & ~grades["correct"]


def unjudged(given: UserTable, prefix: str = "") -> str | None:
    """Return a sentence about the answers that do not exist and have no confidence; None if there are none."""
    column = f"{prefix}confidence"
    if not given.has(column) or not given.optional_text(column).str.to_lowercase().replace("nan", None).has_nulls():
        return None
    n = int(without_confidence(given, column, graded(given, prefix)).sum())
    return (
        f"warning: {given.path}: {n} of {len(given.rows)} rows have no answer and no value in {given.column(column)}."
        " They count as wrong, and as less certain than all others: with 0 among probabilities."
    )


_NUMBERS = ("number from 0", "number from 1")


def with_options(given: UserTable, columns: Sequence[str]) -> UserTable:
    """Return the table with the text of an option in place of its letter or number.

    An answer that names no option stays as it is, and is graded as it is.

    Args:
        given: The table.
        columns: The columns that hold the options A, B, ..., or one column that holds lists of them.

    Raises:
        ConfigError: A column is missing.
        DataError: Gold answers name options in no way, or in several; or answers do so by numbers from 0 or 1 alike.
    """
    for column in columns:
        if not given.has(column):
            raise ConfigError(
                f"--options {column}: {given.path} has no such column. Found: {', '.join(given.frame.columns)}."
            )
    options = _options(given, columns)
    notes = []
    for prefix in ("", "donor_"):
        answer, reference = f"{prefix}answer", f"{prefix}reference_answer"
        if given.has(reference):
            golds = given.alternatives(reference)
            way = _way(given, reference, golds, options)
            named = [
                [_text(WAYS[way](gold, own), gold, own) for gold in row]
                for row, own in zip(golds, options, strict=True)
            ]
            given = _with(given, pl.Series(reference, named, dtype=pl.List(pl.String)))
            notes.append(f"{given.column(reference)} names options by {way}")
        if given.has(answer):
            texts = given.wholes(answer).to_list()
            way = _way_of_answers(given, answer, texts, options)
            found = [
                None if text is None else _text(_place(text, own, way), text, own)
                for text, own in zip(texts, options, strict=True)
            ]
            given = _with(given, pl.Series(answer, found, dtype=pl.String))
    return replace(given, notes=(*given.notes, *notes))


def _options(given: UserTable, columns: Sequence[str]) -> list[list[str]]:
    """Return the options of every row, in their order; "" where there is none."""
    if len(columns) == 1:
        return given.alternatives(columns[0])
    texts = [[text or "" for text in given.wholes(column)] for column in columns]
    return [list(row) for row in zip(*texts, strict=True)]


def _way(given: UserTable, column: str, golds: Sequence[Sequence[str]], options: Sequence[Sequence[str]]) -> str:
    """Return the one way in which all gold answers name options; their texts come first."""
    flat = [(gold, own) for row, own in zip(golds, options, strict=True) for gold in row]
    ways = ways_of([gold for gold, _ in flat], [own for _, own in flat])
    if "text" in ways or len(ways) == 1:
        return ways[0]
    if ways:
        raise given.error(
            f"{given.column(column)} names options by {' or '.join(ways)}, and nothing tells which. Write their letters"
            " or texts."
        )
    wrong = next((gold for gold, own in flat if not any(way(gold, own) is not None for way in WAYS.values())), None)
    shown = "in several ways" if wrong is None else f"{wrong!r} names none"
    raise given.error(
        f"{given.column(column)} does not name an option in one way in all rows ({shown}). Expected the text, the"
        " letter or the number of an option."
    )


def _way_of_answers(
    given: UserTable, column: str, texts: Sequence[str | None], options: Sequence[Sequence[str]]
) -> str | None:
    """Return how answers name options by numbers; None if they name them by text or letter, if at all."""
    pairs = [(text, own) for text, own in zip(texts, options, strict=True) if text is not None]
    ways = ways_of([text for text, _ in pairs], [own for _, own in pairs])
    numbers = [way for way in _NUMBERS if way in ways]
    if not numbers or "text" in ways:
        return None
    if len(numbers) > 1:
        raise given.error(
            f"{given.column(column)} names options by {' or '.join(numbers)}, and nothing tells which. Write their"
            " letters or texts."
        )
    return numbers[0]


def _place(text: str, options: Sequence[str], way: str | None) -> int | None:
    return option_of(text, options) if way is None else WAYS[way](text, options)


def _text(place: int | None, otherwise: str, options: Sequence[str]) -> str:
    return otherwise if place is None else options[place]


def _with(given: UserTable, column: pl.Series) -> UserTable:
    return replace(given, frame=given.frame.with_columns(column))


def form_of(text: str) -> str:
    """Return what an answer looks like: "truth" (True, False), "yes" (yes, no), "letter", "number" or "text"."""
    if _LETTER.fullmatch(text.strip()):
        return "letter"
    plain = canonical(text)
    if plain in ("true", "false"):
        return "truth"
    if plain in ("yes", "no"):
        return "yes"
    return "number" if _NUMBER.fullmatch(plain) else "text"
