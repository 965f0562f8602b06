"""Step 2: convert a table of answers, and one of donor pairs, to rows of the form that the workflow evaluates."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from dualread.commands.evaluate.given import Given, some
from dualread.grading.canonical import canonical, is_correct, question_key

IMAGE = "image_id"
_KEY = ["method", "sample_id"]
_PLACE = ["question_key", "image_id"]


def answers_of(given: Given, cluster: str | None) -> pl.DataFrame:
    """Return one row per method and question, as a graded table and predictions together have them.

    Args:
        given: The answers to one data set.
        cluster: The column that becomes `image_id`; None if every row is a cluster by itself.

    Raises:
        DataError: A column or a value is missing or wrong.
    """
    columns = {
        "method": given.text("method") if given.has("method") else [_name(given.path)] * len(given.rows),
        "confidence": given.number("confidence"),
        **_graded(given),
        "answer_type": given.one_of("answer_type", ("open", "closed")) if given.has("answer_type") else "",
    }
    if given.has("question"):
        columns["question_key"] = [question_key(text) for text in given.text("question")]
    if cluster is not None:
        columns["image_id"] = given.text(cluster)
    if given.has("sample_id"):
        answers = pl.DataFrame({"sample_id": given.text("sample_id"), **columns, "row": given.rows})
        _refuse_twice(given, answers)
    else:  # number the sorted rows, so that the order of the file does not matter
        answers = pl.DataFrame({**columns, "row": given.rows}).sort([name for name in columns if name != "golds"])
        answers = answers.with_columns(sample_id=pl.int_range(pl.len()).over("method").cast(pl.String).str.zfill(12))
    own = {name: "sample_id" for name in ("question_key", "image_id") if name not in answers.columns}
    return answers.with_columns(imputed=pl.lit(False), **{name: pl.col(column) for name, column in own.items()})


def donors_of(given: Given, answers: pl.DataFrame, source: Given, cluster: str) -> pl.DataFrame:
    """Return one row per method and donor pair.

    Args:
        given: The pairs of one data set.
        answers: From `answers_of`, for the same data set.
        source: The table of answers, for messages.
        cluster: The column whose values are resampled.

    Raises:
        DataError: A column or a value is missing or wrong, a pair has no answer, or the donor's image is that of the
            question or has the same gold answer.
    """
    for column in ("sample_id", f"donor_{cluster}", "donor_confidence"):
        given.need(column, "which a table of pairs needs (dualread evaluate --help)")
    methods = sorted(set(answers["method"]))
    if len(methods) > 1:
        given.need("method", f"which is needed because {source.path} has {len(methods)} methods")
    donors = pl.DataFrame(
        {
            "method": given.text("method") if given.has("method") else methods * len(given.rows),
            "sample_id": given.text("sample_id"),
            "donor_image_id": given.text(f"donor_{cluster}"),
            "confidence": given.number("donor_confidence"),
            **_graded(given, "donor_"),
            "row": given.rows,
        }
    )
    _refuse_twice(given, donors)
    if not (unknown := donors.join(answers, on=_KEY, how="anti").sort("row")).is_empty():
        row = unknown.row(0, named=True)
        ids = sorted(answers.filter(method=row["method"])["sample_id"])
        raise given.error(
            f"{len(unknown)} of {len(donors)} pairs have no answer in {source.path}, the first in row {row['row']}:"
            f" sample_id {row['sample_id']!r}, method {row['method']!r}. Known"
            + (f" sample_ids of this method: {some(ids)}." if ids else f" methods: {', '.join(methods)}.")
            + " Add the answers or drop the pairs."
        )
    sources = answers.select(*_KEY, source_image_id="image_id")
    donors = donors.join(sources, on=_KEY, how="left", validate="1:1")
    # If patients are resampled, a pair may consist of two images of one patient, but never of one image.
    if cluster == IMAGE and (own := donors.filter(pl.col("source_image_id") == pl.col("donor_image_id"))["row"]).len():
        raise given.error(f"row {own.min()}: the donor's image is that of the question; expected another image.")
    _refuse_same_gold(given, donors, answers)
    return donors


def _refuse_twice(given: Given, frame: pl.DataFrame) -> None:
    if not (twice := frame.filter(frame.select(_KEY).is_duplicated()).sort("row")).is_empty():
        row = twice.row(0, named=True)
        rows = twice.filter(method=row["method"], sample_id=row["sample_id"])["row"].to_list()
        raise given.error(
            f"sample_id {row['sample_id']!r} is in rows {', '.join(map(str, rows[:5]))}; expected one row per method."
            " If several methods answer the question, name them in a column 'method'."
        )


def _name(path: Path | str) -> str:
    return path.stem if isinstance(path, Path) else path


def _graded(given: Given, prefix: str = "") -> dict[str, pl.Series]:
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
        f"expected an answer that is not empty after normalization; give '{prefix}correct' or drop the rows",
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


def _texts(given: Given, column: str) -> list[str | None] | None:
    return given.optional_text(column).to_list() if given.has(column) else None


def _grades(texts: Sequence[str | None], references: Sequence[Sequence[str]]) -> pl.Series:
    grades = [is_correct(text, row) for text, row in zip(texts, references, strict=True)]
    return pl.Series(grades, dtype=pl.Boolean)


def _refuse_same_gold(given: Given, donors: pl.DataFrame, answers: pl.DataFrame) -> None:
    """Refuse pairs whose two gold answers are equal, or have to be because one answer is right on both images.

    The donor's gold answer is that of the table of pairs, or else that of the same question about the donor's image in
    the table of answers. Gold answers are equal if they have a canonical form in common, as for the workflow's own
    donors. Where neither is known, nothing is refused.

    Args:
        given: The table of pairs, for messages.
        donors: Its rows, with the columns of `_graded` and donor_image_id.
        answers: All answers, with the columns of `_graded`.

    Raises:
        DataError: There is such a pair; the message names the first.
    """
    own = [name for name in ("golds", "question_key", "canonical_answer", "correct") if name in answers.columns]
    pairs = donors.join(answers.select(*_KEY, *own), on=_KEY, how="left", suffix="_source", maintain_order="left")
    if "golds" in own:
        if "golds" not in donors.columns:
            pairs = _with_golds(pairs.rename({"golds": "golds_source"}), answers)
        same = pl.col("golds").list.set_intersection("golds_source").list.len() > 0
        _refuse(given, pairs.filter(same), "the gold answer on the donor's image is that of the question", "golds")
    if "canonical_answer" in own and "canonical_answer" in donors.columns:
        same = pl.col("correct") & pl.col("correct_source")
        same &= pl.col("canonical_answer") == pl.col("canonical_answer_source")
        _refuse(given, pairs.filter(same), "one answer is marked as right on both images", "canonical_answer")


def _with_golds(pairs: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Add the gold answers of the same question about the donor's image; null where the answers do not tell them."""
    known = pl.DataFrame(schema={**dict.fromkeys(_PLACE, pl.String), "golds": pl.List(pl.String)})
    if "question_key" in pairs.columns:
        known = answers.select(*_PLACE, "golds").unique().unique(_PLACE, keep="none")
    else:
        pairs = pairs.with_columns(question_key=pl.lit(None, dtype=pl.String))
    return pairs.join(known, left_on=["question_key", "donor_image_id"], right_on=_PLACE, how="left")


def _refuse(given: Given, wrong: pl.DataFrame, problem: str, shown: str) -> None:
    if wrong.is_empty():
        return
    row = wrong.sort("row").row(0, named=True)
    value = row[shown] if isinstance(row[shown], str) else " | ".join(row[shown])
    raise given.error(
        f"{len(wrong)} of {len(given.rows)} pairs are no counterfactual, the first in row {row['row']}, sample_id"
        f" {row['sample_id']!r}: {problem} ({value!r}). CCG-AUC needs an image on which the same question has another"
        " gold answer. Drop these pairs."
    )
