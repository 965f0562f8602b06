"""One row per estimate, in long format."""

import polars as pl

from dualread.artifacts.schemas import Schema, column, nullable

METRICS = Schema(
    name="metrics",
    columns={
        "study": column(pl.String, "name of the study"),
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor"),
        "seed": column(pl.Int64, "seed of the actor; 0 if the actor has none"),
        "dataset": column(pl.String, "config name of the data set, or an aggregate: ood6, ood_ccg"),
        "split": column(pl.String, "train, validation or test"),
        "subset": column(pl.String, "all, open, closed, or family:<name> for a content family"),
        "method": column(pl.String, "config name of the confidence method"),
        "metric": column(pl.String, "accuracy, auroc, ece15, brier, aurc, hce90, natural_ccg_auc, ..."),
        "estimate": nullable(pl.Float64, "the value; null if undefined"),
        "low": nullable(pl.Float64, "lower end of the 95% interval; null if there is none"),
        "high": nullable(pl.Float64, "upper end of the 95% interval; null if there is none"),
        "n": column(pl.Int64, "rows (or pairs) that the value is computed from"),
        "n_clusters": column(pl.Int64, "distinct source images among them"),
        "reason": nullable(pl.String, "why the estimate is null; null if it is not"),
    },
)
