"""Whether each answer of a table is correct: as a column says, or graded as in the paper."""

from collections.abc import Sequence

import polars as pl

from dualread.commands.evaluate.given import Given, some
from dualread.grading.canonical import canonical, is_correct


def graded(given: Given, prefix: str = "") -> dict[str, pl.Series]:
    """Return what is known of the answers of each row.

    The columns are `correct` (bool); `canonical_answer` (text, null if empty), if the table has answers; and `golds`
    (list of text), the canonical forms of the gold answers, if it has these.

    Args:
        given: The table.
        prefix: What the names of its columns begin with.

    Raises:
        DataError: Neither `correct` nor answers with gold answers are there, or a value is wrong.
    """
    answer, reference = f"{prefix}answer", f"{prefix}reference_answer"
    columns = {}
    if texts := _texts(given, answer):
        forms = [canonical(text or "") or None for text in texts]
        columns["canonical_answer"] = pl.Series(forms, dtype=pl.String)
    references = given.alternatives(reference) if given.has(reference) else None
    if references is not None:
        golds = [sorted(set(map(canonical, row)) - {""}) for row in references]
        columns["golds"] = pl.Series(golds, dtype=pl.List(pl.String))
    if given.has(f"{prefix}correct"):
        return {**columns, "correct": given.truth(f"{prefix}correct")}
    if texts is None or references is None:
        given.need(f"{prefix}correct", f"and not both {answer!r} and {reference!r}, from which it could be graded")
    assert references is not None
    given.refuse(
        reference,
        pl.Series([" | ".join(row) for row in references], dtype=pl.String),
        columns["golds"].list.len() == 0,
        "expected an answer that is not empty after normalization; give 'correct' or drop the rows",
    )
    return {**columns, "correct": _grades(texts or (), references)}


def disagreement(given: Given, prefix: str = "") -> str | None:
    """Return a sentence about the rows in which `correct` is not what the answers give; None if there are none.

    Rows without a gold answer are not compared.
    """
    correct, answer, reference = (f"{prefix}{name}" for name in ("correct", "answer", "reference_answer"))
    if not all(map(given.has, (correct, answer, reference))):
        return None
    references = given.alternatives(reference)
    other = _grades(_texts(given, answer) or (), references) != given.truth(correct)
    has_gold = pl.Series([any(map(canonical, row)) for row in references], dtype=pl.Boolean)
    rows = given.rows.filter(other & has_gold).to_list()
    if not rows:
        return None
    return (
        f"warning: {given.path}: in {len(rows)} of {len(given.rows)} rows, {correct!r} is not what grading {answer!r}"
        f" by {reference!r} gives: {some(rows)}. What counts is {correct!r}; without this column, answers are"
        " graded as in the paper."
    )


def _texts(given: Given, column: str) -> list[str | None] | None:
    return given.optional_text(column).to_list() if given.has(column) else None


def _grades(texts: Sequence[str | None], references: Sequence[Sequence[str]]) -> pl.Series:
    grades = [is_correct(text, row) for text, row in zip(texts, references, strict=True)]
    return pl.Series(grades, dtype=pl.Boolean)
