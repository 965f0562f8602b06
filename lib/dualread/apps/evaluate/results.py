"""What an evaluation computed, as tables: everything that is said of it is made from these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from dualread.apps.evaluate.evaluation_data import EvaluationData


@dataclass(frozen=True, kw_only=True)
class Groups:
    """What is known of groups of answers; all frames have dataset, by (the column), method, and group."""

    metrics: pl.DataFrame  # the rows of `evaluation.subgroups.by_group`; a null group are the rows without one
    worst: pl.DataFrame  # those of `worst_groups`
    # As `Evaluation.thresholds`, of each group; certified ones share delta. None without a target risk.
    thresholds: pl.DataFrame | None


@dataclass(frozen=True, kw_only=True)
class Results:
    """What `evaluate` computed."""

    # One row per data set, method, subset and metric: dataset (null if the table names none), method, subset (all,
    # open, closed), metric, estimate (null with a reason), low, high (95% interval), n, n_clusters, reason.
    metrics: pl.DataFrame
    # One row per data set, metric and baseline, with p and p_holm; None if nothing was compared. That of the ECE has an
    # estimate, and the reason why interval and p-values are withheld.
    differences: pl.DataFrame | None
    # One row per data set, method, target_risk and rule (empirical, certified): threshold, and coverage and risk of the
    # answers with at least this confidence, with intervals for this threshold; delta, share_delta and max_per_image, as
    # given, for certified ones; and what the calibration answers are like. None without a target risk.
    thresholds: pl.DataFrame | None
    warnings: Sequence[
        str
    ]  # sentences about values that contradict each other, and about answers that choose and judge
    unused: Sequence[str]  # sentences that name the columns that were not used
    notes: Sequence[str]  # sentences about how tables and logs were read
    left_out: Mapping[str, int]  # {"file: why": number of answers that cannot be evaluated}
    parts: Sequence[EvaluationData]  # the joined rows behind them, one per data set
    replicates: int  # number of resamples
    seed: int  # of the resampling
    answer_sets: pl.DataFrame | None = None  # one row per method and group (`answer_sets`); None without `choices`
    groups: Groups | None = None  # metrics by group, and what holds for all of a column together; None without `by`
    # Of claims, one row per data set, method, loss of a report ("share" of its kept claims that are unsupported, or
    # "any") and target_risk, null for all claims: threshold of the certified filter; kept, unsupported, none_kept and
    # risk, with intervals over clusters. None if the rows are no claims.
    claim_filter: pl.DataFrame | None = None

    @property
    def graded(self) -> pl.DataFrame:
        """One row per answer and per donor answer: what was compared, and how it was graded."""
        named = (part.graded.with_columns(dataset=pl.lit(part.dataset, dtype=pl.String)) for part in self.parts)
        return pl.concat(named, how="diagonal_relaxed")
