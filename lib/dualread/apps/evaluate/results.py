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
    """What `evaluate` computed.

    Attributes:
        metrics: One row per data set, method, subset and metric: dataset (null if the table names none), method, subset
            (all, open, closed), metric, estimate (null with a reason), low, high (95% interval), n, n_clusters, reason.
        differences: One row per data set, metric and baseline, with p and p_holm; None if nothing was compared. That of
            the ECE has an estimate, and the reason why interval and p-values are withheld.
        thresholds: One row per data set, method, target_risk and rule (empirical, certified): threshold, and coverage
            and risk of the answers with at least this confidence, with intervals for this threshold; delta, share_delta
            and max_per_image, as given, for certified ones; and what the calibration answers are like. None
            without a target risk.
        warnings: Sentences about empty answers, about values that contradict each other, about questions that both
            chose a threshold and judge it, and about images with more answers than those that chose it.
        unused: Sentences that name the columns that were not used.
        notes: Sentences about how logs and renamed columns were read.
        left_out: {"file: why": number of answers in a log that cannot be evaluated}.
        parts: The joined rows behind them, one per data set.
        replicates: Number of resamples.
        seed: Seed of the resampling.
        answer_sets: One row per method and group, see `answer_sets.answer_sets`; None without `choices`.
        groups: The metrics by group, and what is said of all groups of a column together; None without `by`.
        claim_filter: Of claims, one row per data set, method, loss of a report ("share" of its kept claims that are
            unsupported, or "any") and target_risk, null for all claims: threshold of the certified filter; kept,
            unsupported, none_kept and risk, with intervals over clusters. None if the rows are no claims.
    """

    metrics: pl.DataFrame
    differences: pl.DataFrame | None
    thresholds: pl.DataFrame | None
    warnings: Sequence[str]
    unused: Sequence[str]
    notes: Sequence[str]
    left_out: Mapping[str, int]
    parts: Sequence[EvaluationData]
    replicates: int
    seed: int
    answer_sets: pl.DataFrame | None = None
    groups: Groups | None = None
    claim_filter: pl.DataFrame | None = None

    @property
    def graded(self) -> pl.DataFrame:
        """One row per answer and per donor answer: what was compared, and how it was graded."""
        named = (part.graded.with_columns(dataset=pl.lit(part.dataset, dtype=pl.String)) for part in self.parts)
        return pl.concat(named, how="diagonal_relaxed")
