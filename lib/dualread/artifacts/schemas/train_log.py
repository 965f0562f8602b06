"""One row per quantity and step of a training; a quantity that is undefined at a step has no row there."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

TRAIN_LOG = Schema(
    name="train_log",
    columns={
        "step": column(pl.Int64, "optimizer step, from 1 (from 0 in a pretraining)"),
        "name": column(pl.String, "reward, gradient_norm, terms/correct/mean, loss, valid/shared, ..."),
        "value": column(pl.Float64, "its value at this step"),
    },
)
