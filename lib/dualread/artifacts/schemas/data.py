"""One row per data set, split and role: how many questions, images and pairs the study has there."""

import polars as pl

from dualread.artifacts.schemas import Schema, column, nullable

DATA = Schema(
    name="data",
    columns={
        "dataset": column(pl.String, "config name of the data set"),
        "split": column(pl.String, "train, validation or test"),
        "role": column(pl.String, "what the rows may be used for: fit, stop, calibration, validation, test or ood"),
        "source_rows": column(pl.Int64, "rows of the official file, for all roles together"),
        "questions": column(pl.Int64, "questions with this role"),
        "images": column(pl.Int64, "distinct pictures among them"),
        "open": column(pl.Int64, "open questions"),
        "closed": column(pl.Int64, "closed questions"),
        "pairs": nullable(pl.Int64, "questions with a same-question donor; null if the study pairs none"),
        "reason": nullable(pl.String, "why there are no pairs; null if there are"),
        "manifest_sha256": column(pl.String, "digest of the split's table of questions, for all roles together"),
    },
)
