"""The two records behind the reported numbers (paper, "Reproducibility and Scope"), with a row per run and domain.

One is the matrix method x domain x seed behind the OOD6 means, the other the decomposition of CCG by domain. Both hold
the metrics of one study on all test questions, with a column per metric. Nothing is rounded.
"""

from collections.abc import Sequence

import polars as pl

ANSWERS = ("accuracy", "auroc", "ece15", "brier", "aurc", "hce90")
_SCORES = ("natural_ccg_auc", "strict_ccg_auc")
_COUNTS = (
    *("decisive_pairs", "strict_decisive_pairs"),
    *("source_images", "strict_source_images", "donor_images", "strict_donor_images"),
)
_FLAGS = ("natural_few_sources", "natural_few_donors", "strict_few_sources", "strict_few_donors")
PAIRS = (*_SCORES, *_COUNTS, *_FLAGS)
_ROW = ("backbone", "method", "actor", "domain", "seed")


def method_domain_seed(metrics: pl.DataFrame, domains: Sequence[str]) -> pl.DataFrame:
    """Return one row per run and domain with the metrics of its answers; `ood6` is the mean over the OOD domains.

    The columns are backbone, method, actor, domain, seed, by which rows are sorted, those of `ANSWERS`, and reason: why
    a metric is null.
    """
    return _matrix(metrics, [*domains, "ood6"], ANSWERS)


def ccg_domains(metrics: pl.DataFrame, domains: Sequence[str]) -> pl.DataFrame:
    """Return one row per run and domain with donors; `ood_ccg` is the mean over the OOD domains.

    The columns are those of `method_domain_seed`, with `PAIRS` in place of `ANSWERS`. The counts are those of the
    decisive pairs behind the natural or the strict score. A score is underpowered where these pairs have fewer than 30
    source images (few_sources) or 30 donor images (few_donors), and so is a mean where any member is.
    """
    ccg = _matrix(metrics, [*domains, "ood_ccg"], PAIRS)
    return ccg.with_columns(pl.col(_COUNTS).cast(pl.Int64), pl.col(_FLAGS) > 0)


def _matrix(metrics: pl.DataFrame, domains: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    chosen = metrics.rename({"dataset": "domain"}).filter(
        (pl.col("split") == "test")
        & (pl.col("subset") == "all")
        & pl.col("domain").is_in(domains)
        & pl.col("metric").is_in(names)
    )
    values = [pl.col("estimate").filter(pl.col("metric") == name).first().alias(name) for name in names]
    reasons = []  # why a run has no value of a metric, such as "auroc: one class only"; null where it has one
    for name in names:
        of_metric = pl.col("metric") == name
        missing = pl.when(pl.col("domain").first() == "ood_ccg").then(pl.lit("no mean")).otherwise(pl.lit("missing"))
        reason = pl.when(of_metric.any()).then(pl.col("reason").filter(of_metric).first()).otherwise(missing)
        reasons.append((pl.lit(f"{name}: ") + reason).alias(f"why_{name}"))
    why = pl.concat_str([f"why_{name}" for name in names], separator="; ", ignore_nulls=True)
    return (
        chosen.group_by(_ROW)
        .agg(*values, *reasons)
        .with_columns(why.replace("", None).alias("reason"))
        .select(*_ROW, *names, "reason")
        .sort(_ROW)
    )
