"""One row a method's metric across seeds, or a difference between two methods, with its interval."""

import polars as pl

from dualread.artifacts.schemas import Schema, column, nullable

CONTRASTS = Schema(
    name="contrasts",
    columns={
        "study": column(pl.String, "name of the study"),
        "backbone": column(pl.String, "config name of the backbone"),
        "contrast": nullable(pl.String, "config name of the contrast, or of the table that asks; null: a method's own"),
        "dataset": column(pl.String, "config name of the data set, or an aggregate: ood6, ood_ccg"),
        "split": column(pl.String, "validation or test"),
        "metric": column(pl.String, "as in metrics; *_two_way: the interval of donors resampled as well"),
        "method": column(pl.String, "config name of the confidence method"),
        "baseline": nullable(pl.String, "the method that is subtracted; null: none, the value is the method's own"),
        "estimate": nullable(pl.Float64, "mean over seeds; method minus baseline, whichever direction is better"),
        "seed_std": nullable(pl.Float64, "sample standard deviation over seeds; null with one seed"),
        "n_seeds": column(pl.Int64, "seeds that it is over; one run without a seed stands beside every seed"),
        "low": nullable(pl.Float64, "lower end of the 95% interval over image resamples, given these seeds"),
        "high": nullable(pl.Float64, "upper end of the 95% interval"),
        "p": nullable(pl.Float64, "two-sided p-value of a difference; null for a method's own value"),
        "p_holm": nullable(pl.Float64, "adjusted for all baselines of this contrast, backbone, data set and metric"),
        "n": column(pl.Int64, "rows (or pairs) that a run rests on; the fewest, where runs differ"),
        "n_clusters": column(pl.Int64, "distinct source images among them; the fewest, where runs differ"),
        "n_undefined": nullable(pl.Int64, "replicates without a value, left out of interval and p-value"),
        "underpowered": column(pl.Boolean, "CCG with fewer than 30 decisive source or donor images in some run"),
        "reason": nullable(pl.String, "why the estimate is null; null where it is not"),
    },
)
