"""The metrics of every method on one data set, as the workflow's stage `compute_metrics` computes them."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from dualread.artifacts.schemas.metrics import METRICS
from dualread.commands.evaluate.cells import NO_PAIRS, Cells
from dualread.evaluation import controls
from dualread.evaluation.channel import CHANNEL_METRICS
from dualread.evaluation.columns import CellColumns
from dualread.evaluation.estimates import Kept, estimate
from dualread.evaluation.join import Evaluated
from dualread.evaluation.statistics.bootstrap import ImageDraws

UNDEFINED = "_undefined_replicates"
COLUMNS = ("dataset", "method", "subset", "metric", "estimate", "low", "high", "n", "n_clusters", "reason")
# These metrics need conditions, or results of the answer parser, that a plain table does not hold.
_LEFT_OUT = {*CHANNEL_METRICS, *controls.FIXED_METRICS, *controls.SHUFFLED_METRICS}
# These need probabilities. All other metrics compare confidences with each other.
_OF_PROBABILITIES = ("ece15", "squared_calibration_error", "brier", "hce90", "calibration_")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The metrics of one data set.

    Attributes:
        cells: What they are computed from.
        metrics: One row per (method, subset, metric), with `COLUMNS`.
        kept: By method, what comparisons with other methods need.
    """

    cells: Cells
    metrics: pl.DataFrame
    kept: Mapping[str, Kept]


def measure(cells: Cells, *, replicates: int, seed: int) -> Measured:
    """Return every metric of every method, with its interval.

    Methods with the same clusters are evaluated on the same resamples, whether in one table or in several. A method
    with a single cluster has no percentile intervals.

    Args:
        cells: The answers to one data set.
        replicates: Number of resamples.
        seed: Seed of the resampling.
    """
    rows, kept = [], {}
    for method, evaluated in cells.methods.items():
        draws = _draws(cells, evaluated, replicates=replicates, seed=seed)
        found, kept[method] = estimate(CellColumns.of(evaluated), draws)
        rows += [
            {"dataset": cells.dataset, "method": method, **_withheld(row, cells, method)}
            for row in found
            if row["subset"] in cells.subsets and row["metric"].removesuffix(UNDEFINED) not in _LEFT_OUT
        ]
    frame = pl.DataFrame(rows, schema={name: METRICS.columns[name].dtype for name in COLUMNS})
    return Measured(cells=cells, metrics=frame, kept=kept)


def donors_only(evaluated: Evaluated) -> set[str]:
    """Return the clusters of donor images that have no answer of their own."""
    if isinstance(evaluated.pairs, str):
        return set()
    return set(evaluated.pairs["donor_image_id"]) - set(evaluated.answers["image_id"])


def reason_without_probabilities(example: str) -> str:
    """Return why a method with a confidence outside [0, 1] has no value of a metric of probabilities."""
    return f"confidence is outside [0, 1], such as {example}; this metric needs probabilities"


def _draws(cells: Cells, evaluated: Evaluated, *, replicates: int, seed: int) -> ImageDraws:
    clusters = tuple(sorted(set(evaluated.answers["image_id"])))
    if cells.resamples is None:
        names = ("evaluate", str(seed), *([cells.dataset] if cells.dataset else []))
    else:  # those of the study
        names = (*cells.resamples, *([str(seed)] if seed else []))
    return ImageDraws(
        names=names,
        image_ids=clusters,
        replicates=replicates if len(clusters) > 1 else 0,  # all resamples of a single cluster are the same
    )


def _withheld(row: dict, cells: Cells, method: str) -> dict:
    reasons = dict(cells.withheld)
    if method in cells.ranked:
        reasons |= dict.fromkeys(_OF_PROBABILITIES, reason_without_probabilities(cells.ranked[method]))
    for beginning, reason in reasons.items():
        if row["metric"].startswith(beginning) and row["reason"] != NO_PAIRS:
            return {**row, "estimate": None, "low": None, "high": None, "reason": reason}
    return row
