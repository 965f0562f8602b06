"""Step 2, the grades: which answers are right, and in which tables that cannot be told from the texts.

An answer is right if it equals an accepted answer in canonical form, as in the paper. Where answers and reference
answers are written in two ways (True and yes, the letter of an option and its text, ...), all of them would count as
wrong: such tables are refused by name.
"""

from collections.abc import Sequence
from itertools import product

import polars as pl

from dualread.commands.evaluate.given import Given, short, some
from dualread.commands.evaluate.texts import form_of
from dualread.grading.canonical import canonical, is_correct

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
_MANY = 20  # answers of which not all are alike by chance
_FEW = 3  # rows of a clash that are worth a word: one or two answers may just be wrong


def graded(given: Given, prefix: str = "") -> dict[str, pl.Series]:
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
    given: Given, reference: str, texts: Sequence[str | None], references: Sequence[Sequence[str]]
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
    given: Given, answer: str, reference: str, texts: Sequence[str | None], references: Sequence[Sequence[str]]
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


def mixed_forms(given: Given, prefix: str = "") -> str | None:
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


def all_alike(given: Given, answers: pl.DataFrame) -> list[str]:
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


def disagreement(given: Given, prefix: str = "") -> str | None:
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


def empty(given: Given, prefix: str = "") -> str | None:
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
