"""One row per answer and method: its confidence, without labels."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

PREDICTIONS = Schema(
    name="predictions",
    columns={
        "sample_id": column(pl.String, "id of the question in the table of questions (manifest.parquet)"),
        "dataset": column(pl.String, "config name of the data set"),
        "split": column(pl.String, "train, validation or test"),
        "condition": column(pl.String, "original, donor, ..."),
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor"),
        "seed": column(pl.Int64, "seed of the actor; 0 if the actor has none"),
        "method": column(pl.String, "config name of the confidence method"),
        "score": column(
            pl.Float64, "raw score, finite, higher = more confident; on the method's own scale, such as log-odds"
        ),
        "confidence": column(pl.Float64, "probability of being correct, in [0, 1]"),
        "imputed": column(pl.Boolean, "whether the method had no valid value here, so that 0.5 replaces it"),
    },
)
