"""One row per estimate about the true difficulty of phantom images: of a method, of a difference from a null."""

import polars as pl

from dualread.artifacts.schemas import Schema, column, nullable

DIFFICULTY = Schema(
    name="difficulty",
    columns={
        "study": column(pl.String, "name of the study"),
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor whose answers are judged"),
        "dataset": column(pl.String, "config name of the data set"),
        "reading": column(pl.String, "own: of the answer itself; exchanged: of an equal answer about another image"),
        "metric": column(pl.String, "auroc, accuracy_clear or accuracy_hazy"),
        "method": nullable(pl.String, "config name of the confidence method; null: the true difficulty itself"),
        "baseline": nullable(pl.String, "the null that is subtracted; null: the value is no difference"),
        "estimate": nullable(pl.Float64, "mean over seeds; method minus baseline"),
        "low": nullable(pl.Float64, "lower end of the 95% interval over image resamples, given these seeds"),
        "high": nullable(pl.Float64, "upper end of the 95% interval"),
        "p": nullable(pl.Float64, "two-sided p-value of a difference; null for a value"),
        "p_holm": nullable(
            pl.Float64, "p after Holm's correction over all methods and nulls of a backbone and reading"
        ),
        "n_seeds": column(pl.Int64, "number of seeds"),
        "n": column(pl.Int64, "answers of a run; the smallest number if runs differ"),
        "n_clusters": column(pl.Int64, "distinct images among them; the smallest number if runs differ"),
        "reason": nullable(pl.String, "why the estimate is null; null if it is not"),
    },
)
