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
        "metric": column(pl.String, "as in metrics"),
        "method": column(pl.String, "config name of the confidence method"),
        "baseline": nullable(pl.String, "the method that is subtracted; null: the value is that of one method"),
        "estimate": nullable(pl.Float64, "mean over seeds; method minus baseline, even where lower is better"),
        "seed_std": nullable(pl.Float64, "sample standard deviation over seeds; null with one seed"),
        "n_seeds": column(pl.Int64, "number of seeds; a run without a seed is compared with every seed"),
        "low": nullable(pl.Float64, "lower end of the 95% interval over other images, for these seeds"),
        "high": nullable(pl.Float64, "upper end of the 95% interval"),
        "low_retrained": nullable(
            pl.Float64, "lower end of the 95% interval over other images and retrained actors; null with one seed"
        ),
        "high_retrained": nullable(pl.Float64, "its upper end"),
        "p": nullable(pl.Float64, "two-sided p-value of a difference, for these seeds; null for a value of one method"),
        "p_at_most": nullable(pl.Boolean, "whether p is the smallest value that the resamples can give: read <="),
        "p_holm": nullable(
            pl.Float64, "p after Holm's correction over all baselines of this contrast, backbone, data set and metric"
        ),
        "p_holm_at_most": nullable(pl.Boolean, "the same of p_holm"),
        "p_retrained": nullable(
            pl.Float64, "two-sided p-value of a difference between retrained methods; null with one seed"
        ),
        "p_holm_retrained": nullable(pl.Float64, "p_retrained after Holm's correction, as for p_holm"),
        "n": column(pl.Int64, "rows (or pairs) that a run is computed from; the smallest number if runs differ"),
        "n_clusters": column(pl.Int64, "distinct source images among them; the smallest number if runs differ"),
        "n_undefined": nullable(pl.Int64, "replicates without a value, which interval and p-value leave out; 0 of CCG"),
        "short": nullable(
            pl.String,
            "of CCG: the side with fewer than 30 decisive images in some run: source, donor, or source and donor",
        ),
        "reason": nullable(pl.String, "why the estimate is null; null if it is not"),
    },
)
