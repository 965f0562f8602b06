"""Claims of reports in `dualread.confidences`: where their labels come from, and the frame with one row per claim.

People label the claims of a first call, its frame with the column `correct` filled in, and hand this frame over as
`labels`. A claim of the part `test` whose label nobody knows is scored, too: inside the study it counts as unsupported,
which changes no confidence, and the frame has a null in place of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.apps.answer.examples import PARTS, UserExample, other_columns
from dualread.apps.answer.study import DATASET
from dualread.data.tables.contract import WIDE, WIDE_SCORE
from dualread.data.tables.files import read_file
from dualread.data.tables.memory import read_frame
from dualread.digests import digest_of
from dualread.errors import DataError
from dualread.grading.claim_labels.table import label_of
from dualread.schema.columns import CLAIMS
from dualread.store.digest import replace_text

_OF_CLAIMS = (*CLAIMS.columns, "claim", "cluster_id", "correct", "is_known")
_NOTHING_IS_KNOWN = ["-"]  # a reference report of which nothing is read, because labels are in a table


# A plugin that knows labels, or those that people know.
Labels = str | pl.DataFrame


def with_references(examples: Sequence[UserExample], labels: Labels | None) -> list[UserExample]:
    """Return the examples, of which those without a reference report need none if a table has their labels."""
    if isinstance(labels, str):
        return list(examples)
    return [
        example
        if example.has_reference
        else replace(
            example,
            record={**example.record, "reference_answers": _NOTHING_IS_KNOWN},
            has_reference=example.part != "test" and labels is not None,
        )
        for example in examples
    ]


def entry_of(spans: Any, labels: Labels | None, folder: Path) -> dict[str, Any]:
    """Return the entry `claims` of the data set; a table of labels is written into `folder`."""
    if isinstance(labels, str):
        return {"spans": spans, "labels": labels}
    settings: dict[str, Any] = {"assumed": {"test": False}}
    if labels is not None:
        rows = [
            {"question": f"{DATASET}/{split}/{report}", "text": text, "label": label}
            for report, text, label in labels.iter_rows()
            for split in PARTS.values()
        ]
        path = folder / f"{digest_of(rows)[:32]}.csv"
        folder.mkdir(parents=True, exist_ok=True)
        replace_text(path, pl.DataFrame(rows).write_csv())
        settings["path"] = str(path)
    return {"spans": spans, "labels": {"table": settings}}


def known_labels(labels: Any) -> Labels | None:
    """Return the name of a plugin; or the labels of a frame or file: report (the example's id), text, and bool correct.

    Raises DataError if a column is missing, a label is none, a claim has two, or there is no label at all.
    """
    if labels is None or (isinstance(labels, str) and labels in plugins.known("claim_labels")):
        return labels
    names = ("report", "text", "correct")
    is_file = isinstance(labels, str | Path)
    read = read_file(Path(labels)) if is_file else read_frame(labels, "labels", lambda name: name in names)
    if lacking := [name for name in names if name not in read.frame.columns]:
        raise DataError(
            f"labels: no column {', '.join(lacking)}. Found: {', '.join(read.columns)}. Expected report (the example's"
            " id), text and correct, as in the frame that dualread.confidences returns with `spans`."
        )
    table = read.frame.select(pl.col(names).cast(pl.String))
    cells = zip(read.rows, table["correct"], strict=True)
    correct = [label_of(cell, f"{read.source}: row {row}") for row, cell in cells]
    known = table.with_columns(pl.Series("correct", correct, dtype=pl.Boolean)).drop_nulls("correct").unique()
    if known.is_empty():
        raise DataError(f"{read.source}: no row has a label in the column 'correct'. Fill in true or false.")
    twice = known.filter(pl.struct("report", "text").is_duplicated()).sort("report", "text")
    for report, text, _ in twice.iter_rows():
        raise DataError(f"{read.source}: {text!r} of report {report!r} has two labels. Keep one of them.")
    return known.sort("report", "text")


def with_methods(rows: pl.DataFrame, long: pl.DataFrame, scores: Mapping[str, pl.DataFrame | None]) -> pl.DataFrame:
    """Return the rows with a column per method: its confidences in the table of answers, or its scores."""
    for method, raw in scores.items():
        of_method = long.filter(method=method).select("sample_id", pl.col("confidence").alias(f"{WIDE}{method}"))
        if raw is not None:
            of_method = raw.select("sample_id", pl.col("score").alias(f"{WIDE_SCORE}{method}"))
        rows = rows.join(of_method, on="sample_id", how="left", validate="1:1", maintain_order="left")
    return rows


def claims_frame(
    long: pl.DataFrame,
    tables: Sequence[Path],
    manifests: Sequence[Path],
    asked: Sequence[UserExample],
    scores: Mapping[str, pl.DataFrame | None],
    labels: Labels | None,
) -> pl.DataFrame:
    """Return one row per claim: report, claim, part, image_id, cluster_id, start, end, text, correct, and others.

    The others are the columns of methods, and those that only the user knows. `long` is the study's table of answers,
    of which each is a claim; `tables` (claims) and `manifests` (questions) are those of the wanted parts. `scores`
    holds tables of the methods that give scores alone. Reports are in the order of `asked`; `labels` see
    `known_labels`.
    """
    claims = pl.concat(pl.read_parquet(table, columns=list(CLAIMS.columns)) for table in tables)
    clusters = pl.concat(pl.read_parquet(table, columns=["sample_id", "cluster_id"]) for table in manifests)
    clusters = clusters.rename({"sample_id": "question"})
    claims = claims.join(clusters, on="question", how="left", validate="m:1", maintain_order="left")
    claims = with_methods(claims, long, scores)
    reports = pl.DataFrame(
        {
            "question": [f"{DATASET}/{PARTS[example.part]}/{example.sample_id}" for example in asked],
            "report": [example.sample_id for example in asked],
            "part": [example.part for example in asked],
        }
    )
    others = [column for column in other_columns(asked) if column.name not in (*reports.columns, *_OF_CLAIMS)]
    reports = reports.with_columns(others)
    rows = reports.join(claims, on="question", how="inner", maintain_order="left_right")
    correct = pl.col("label")
    if not isinstance(labels, str):
        known = pl.DataFrame(schema=["report", "text", "is_known"]).cast(pl.String)
        if labels is not None:
            known = labels.rename({"correct": "is_known"})
        rows = rows.join(known, on=["report", "text"], how="left", maintain_order="left")
        correct = pl.when(pl.col("is_known").is_not_null()).then("label")
    return rows.select(
        "report",
        pl.col("sample_id").str.split("#").list.last().cast(pl.Int64).alias("claim"),
        *("part", "image_id", "cluster_id", "start", "end", "text"),
        correct.alias("correct"),
        pl.col(f"^({WIDE}|{WIDE_SCORE}).*$"),
        *(column.name for column in others),
    )
