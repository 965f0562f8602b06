"""One row per estimate: a metric of one method over seeds, or the difference between two methods, with intervals."""

import polars as pl

from dualread.artifacts.schemas import Schema, column, nullable

CONTRASTS = Schema(
    name="contrasts",
    columns={
        "study": column(pl.String, "name of the study"),
        "backbone": column(pl.String, "config name of the backbone"),
        "contrast": nullable(
            pl.String, "config name of the contrast or of the table that asks; null: a value of one method"
        ),
        "dataset": column(pl.String, "config name of the data set, or an aggregate: ood6, ood_ccg"),
        "split": column(pl.String, "validation or test"),
        "metric": column(pl.String, "as in metrics; *_two_way: with an interval that resamples donors too"),
        "method": column(pl.String, "config name of the confidence method"),
        "baseline": nullable(pl.String, "the method that is subtracted; null: the value is that of one method"),
        "estimate": nullable(pl.Float64, "mean over seeds; method minus baseline, even where lower is better"),
        "seed_std": nullable(pl.Float64, "sample standard deviation over seeds; null with one seed"),
        "n_seeds": column(pl.Int64, "number of seeds; a run without a seed is compared with every seed"),
        "low": nullable(pl.Float64, "lower end of the 95% interval over image resamples, given these seeds"),
        "high": nullable(pl.Float64, "upper end of the 95% interval"),
        "p": nullable(pl.Float64, "two-sided p-value of a difference; null for a value of one method"),
        "p_holm": nullable(
            pl.Float64, "p after Holm's correction over all baselines of this contrast, backbone, data set and metric"
        ),
        "n": column(pl.Int64, "rows (or pairs) that a run is computed from; the smallest number if runs differ"),
        "n_clusters": column(pl.Int64, "distinct source images among them; the smallest number if runs differ"),
        "n_undefined": nullable(pl.Int64, "replicates without a value, which interval and p-value leave out"),
        "underpowered": column(pl.Boolean, "CCG with fewer than 30 decisive source or donor images in some run"),
        "reason": nullable(pl.String, "why the estimate is null; null if it is not"),
    },
)
