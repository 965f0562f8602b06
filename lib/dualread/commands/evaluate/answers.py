"""Convert a table of answers, and one of donor pairs, to rows of the form that the workflow evaluates."""

from pathlib import Path

import polars as pl

from dualread.commands.evaluate.counterfactual import refuse_same_gold
from dualread.commands.evaluate.given import Given
from dualread.commands.evaluate.grades import graded
from dualread.grading.canonical import question_key

IMAGE = "image_id"
_KEY = ["method", "sample_id"]


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
        **graded(given),
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
        answers = pl.DataFrame(columns).sort([name for name in columns if name != "golds"])
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
            **graded(given, "donor_"),
            "row": given.rows,
        }
    )
    _refuse_twice(given, donors)
    if not (unknown := donors.join(answers, on=_KEY, how="anti").sort("row")).is_empty():
        row = unknown.row(0, named=True)
        raise given.error(
            f"{len(unknown)} of {len(donors)} pairs have no answer in {source.path}, the first in row {row['row']}:"
            f" sample_id {row['sample_id']!r}, method {row['method']!r}. Known methods: {', '.join(methods)}."
            " Add the answers or drop the pairs."
        )
    sources = answers.select(*_KEY, source_image_id="image_id")
    donors = donors.join(sources, on=_KEY, how="left", validate="1:1")
    # If patients are resampled, a pair may consist of two images of one patient, but never of one image.
    if cluster == IMAGE and (own := donors.filter(pl.col("source_image_id") == pl.col("donor_image_id"))["row"]).len():
        raise given.error(f"row {own.min()}: the donor's image is that of the question; expected another image.")
    refuse_same_gold(given, donors, answers)
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
