"""The two records behind the reported numbers (paper, "Reproducibility and Scope"): one row a run and domain.

One holds the method x domain x seed matrix behind the OOD6 averages, the other the CCG decomposition by domain. Both
are a metrics table of one study, cut to the test questions of all kinds and turned into columns; nothing is rounded.
"""

from collections.abc import Sequence

import polars as pl

ANSWERS = ("accuracy", "auroc", "ece15", "brier", "aurc", "hce90")
_SCORES = ("natural_ccg_auc", "strict_ccg_auc")
_COUNTS = (
    *("decisive_pairs", "strict_decisive_pairs"),
    *("source_images", "strict_source_images", "donor_images", "strict_donor_images"),
)
_FLAGS = ("natural_underpowered", "strict_underpowered")
PAIRS = (*_SCORES, *_COUNTS, *_FLAGS)
_ROW = ("backbone", "method", "actor", "domain", "seed")


def method_domain_seed(metrics: pl.DataFrame, domains: Sequence[str]) -> pl.DataFrame:
    """Return one row a run and domain with the metrics of its answers, and `ood6`, the mean over OOD domains, per seed.

    Args:
        metrics: A collected metrics table of one study.
        domains: The data sets of the study.

    Returns:
        Columns backbone, method, actor, domain, seed, those of `ANSWERS`, and reason; sorted by the first five. What is
        undefined is null, and `reason` says why.
    """
    return _matrix(metrics, [*domains, "ood6"], ANSWERS)


def ccg_domains(metrics: pl.DataFrame, domains: Sequence[str]) -> pl.DataFrame:
    """Return one row a run and domain with donors, and `ood_ccg`, the mean over the OOD ones, per seed.

    Counts are of the decisive pairs that the natural or the strict score rests on. A score is underpowered where they
    span fewer than 30 source or donor images; a mean is where any of its members is.

    Args:
        metrics: A collected metrics table of one study.
        domains: Its data sets with donor pairs.

    Returns:
        Columns as `method_domain_seed`, with those of `PAIRS`.
    """
    found = _matrix(metrics, [*domains, "ood_ccg"], PAIRS)
    return found.with_columns(pl.col(_COUNTS).cast(pl.Int64), pl.col(_FLAGS) > 0)


def _matrix(metrics: pl.DataFrame, domains: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    chosen = metrics.rename({"dataset": "domain"}).filter(
        (pl.col("split") == "test")
        & (pl.col("subset") == "all")
        & pl.col("domain").is_in(domains)
        & pl.col("metric").is_in(names)
    )
    values = [pl.col("estimate").filter(pl.col("metric") == name).first().alias(name) for name in names]
    reasons = [_reason(name).alias(f"why_{name}") for name in names]
    why = pl.concat_str([f"why_{name}" for name in names], separator="; ", ignore_nulls=True)
    return (
        chosen.group_by(_ROW)
        .agg(*values, *reasons)
        .with_columns(why.replace("", None).alias("reason"))
        .select(*_ROW, *names, "reason")
        .sort(_ROW)
    )


def _reason(name: str) -> pl.Expr:
    """Return "auroc: one class only", or that no row has the metric, of a run's rows; null if defined."""
    of_metric = pl.col("metric") == name
    missing = pl.when(pl.col("domain").first() == "ood_ccg").then(pl.lit("no mean")).otherwise(pl.lit("missing"))
    reason = pl.when(of_metric.any()).then(pl.col("reason").filter(of_metric).first()).otherwise(missing)
    return pl.lit(f"{name}: ") + reason
