"""Convert a table of answers, and one of donor pairs, to the joined rows from which the workflow computes metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from dualread.commands.evaluate.given import Given, read_given
from dualread.evaluation.join import Evaluated, evaluate
from dualread.grading.canonical import canonical, is_correct, question_key

NO_PAIRS = "no pairs (--pairs)"
_IMAGE = "image_id"
_KEY = ["method", "sample_id"]


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The contents of the files.

    Attributes:
        source: The file of answers.
        methods: One `Evaluated` per method, sorted by name. Its `image_id` is the cluster, whatever the column's name.
        cluster: The column whose values are resampled; None if every row is a cluster by itself.
        subsets: "all"; also "open" and "closed" if there are answer types.
        withheld: {beginning of a metric's name: why it has no value}, for metrics whose columns are missing.
    """

    source: Path
    methods: Mapping[str, Evaluated]
    cluster: str | None
    subsets: tuple[str, ...]
    withheld: Mapping[str, str]


def read_cells(predictions: Path, *, pairs: Path | None = None, cluster: str | None = None) -> Cells:
    """Read the answers of every method, and their donor pairs.

    Args:
        predictions: The table of answers; `dualread evaluate --help` lists its columns.
        pairs: The table of donor pairs.
        cluster: The column whose values are resampled; by default `image_id`, if there is one.

    Raises:
        DataError: A file, a column or a value is missing or wrong; the message names the file and the rows.
    """
    given = read_given(predictions)
    if cluster is not None:
        given.need(cluster, "which --cluster names")
    elif given.has(_IMAGE):
        cluster = _IMAGE
    answers = _answers(given, cluster)
    withheld = {} if given.has("question") else {"within_question_auroc": f"no column 'question' in {predictions}"}
    donors = None
    if pairs is not None:
        if cluster is None:
            given.need(_IMAGE, "which --pairs needs because a donor must be on another image")
        given.need("sample_id", "which --pairs needs to find the questions")
        donors = _donors(read_given(pairs), answers, given, cluster or _IMAGE)
        for frame, path, column in ((answers, predictions, "answer"), (donors, pairs, "donor_answer")):
            if "canonical_answer" not in frame.columns:
                withheld["strict_"] = f"no column {column!r} in {path}"
    return Cells(
        source=predictions,
        methods={name: _evaluated(name, answers, donors) for name in sorted(set(answers["method"]))},
        cluster=cluster,
        subsets=("all", "open", "closed") if given.has("answer_type") else ("all",),
        withheld=withheld,
    )


def _answers(given: Given, cluster: str | None) -> pl.DataFrame:
    given.need("confidence", "the probability that the answer is correct")
    columns = {
        "method": given.text("method") if given.has("method") else [given.path.stem] * len(given.rows),
        "confidence": given.probability("confidence"),
        **_graded(given, ""),
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
        answers = pl.DataFrame(columns).sort(list(columns))
        answers = answers.with_columns(sample_id=pl.int_range(pl.len()).over("method").cast(pl.String).str.zfill(12))
    own = {name: "sample_id" for name in ("question_key", "image_id") if name not in answers.columns}
    return answers.with_columns(imputed=pl.lit(False), **{name: pl.col(column) for name, column in own.items()})


def _graded(given: Given, prefix: str) -> dict:
    """Return the column `correct`, and `canonical_answer` if the file has answers."""
    answer, reference = f"{prefix}answer", f"{prefix}reference_answer"
    columns = {}
    texts = given.optional_text(answer).to_list() if given.has(answer) else None
    if texts is not None:
        forms = [canonical(text or "") or None for text in texts]
        columns["canonical_answer"] = pl.Series(forms, dtype=pl.String)
    if given.has(f"{prefix}correct"):
        return {**columns, "correct": given.truth(f"{prefix}correct")}
    if texts is None or not given.has(reference):
        given.need(f"{prefix}correct", f"and not both {answer!r} and {reference!r}, from which it could be graded")
    references = given.alternatives(reference)
    empty = pl.Series([not any(map(canonical, row)) for row in references], dtype=pl.Boolean)
    shown = pl.Series([" | ".join(row) for row in references], dtype=pl.String)
    given.refuse(
        reference,
        shown,
        empty,
        "expected an answer that is not empty after normalization; give 'correct' or drop the rows",
    )
    correct = [is_correct(text, row) for text, row in zip(texts or (), references, strict=True)]
    return {**columns, "correct": correct}


def _donors(given: Given, answers: pl.DataFrame, source: Given, cluster: str) -> pl.DataFrame:
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
            "confidence": given.probability("donor_confidence"),
            **_graded(given, "donor_"),
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
    donors = donors.join(answers.select(*_KEY, source_image_id="image_id"), on=_KEY, how="left", validate="1:1")
    # If patients are resampled, a pair may consist of two images of one patient, but never of one image.
    if cluster == _IMAGE and (own := donors.filter(pl.col("source_image_id") == pl.col("donor_image_id"))["row"]).len():
        raise given.error(f"row {own.min()}: the donor's image is that of the question; expected another image.")
    return donors


def _refuse_twice(given: Given, frame: pl.DataFrame) -> None:
    if not (twice := frame.filter(frame.select(_KEY).is_duplicated()).sort("row")).is_empty():
        row = twice.row(0, named=True)
        rows = twice.filter(method=row["method"], sample_id=row["sample_id"])["row"].to_list()
        raise given.error(
            f"sample_id {row['sample_id']!r} is in rows {', '.join(map(str, rows[:5]))}; expected one row per method."
            " If several methods answer the question, name them in a column 'method'."
        )


def _evaluated(method: str, answers: pl.DataFrame, donors: pl.DataFrame | None) -> Evaluated:
    """Join the rows as the workflow does, as if the tables were artifacts."""
    mine = _with_canonical(answers.filter(method=method))
    if donors is None or (pairs := donors.filter(method=method)).is_empty():
        alone = {"original": mine}
        return replace(
            evaluate(where=method, manifest=mine, pairs=None, predictions=alone, graded=alone), pairs=NO_PAIRS
        )
    other = _with_canonical(pairs).with_columns(image_id="donor_image_id", imputed=pl.lit(False))
    both = {"original": mine, "donor": other}
    return evaluate(where=method, manifest=mine, pairs=pairs, predictions=both, graded=both)


def _with_canonical(frame: pl.DataFrame) -> pl.DataFrame:
    if "canonical_answer" in frame.columns:
        return frame
    return frame.with_columns(canonical_answer=pl.lit(None, dtype=pl.String))
