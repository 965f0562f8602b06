"""What all harnesses ask for: one metric of some answers, with the interval that `dualread.evaluate` gives it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REPLICATES = 2000  # resamples: the ends of an interval move by about a fiftieth of its width with other resamples


@dataclass(frozen=True, kw_only=True)
class HarnessMetric:
    """A metric of some answers.

    Attributes:
        estimate: Its value; None where it has none.
        low: The lower end of its 95% interval; None where it has none.
        high: The upper end.
        reason: Why it has no value.
    """

    estimate: float | None
    low: float | None
    high: float | None
    reason: str | None


def measured(
    answers: Mapping[str, Sequence[Any]],
    metrics: Sequence[str],
    *,
    pairs: Mapping[str, Sequence[Any]] | None = None,
    replicates: int = REPLICATES,
) -> dict[str, HarnessMetric]:
    """Return metrics by name: the numbers of `dualread evaluate` for the same table.

    Args:
        answers: Its columns: confidence and correct; image_id, if intervals resample clusters of answers such as those
            about one image; and sample_id with `pairs`.
        metrics: Names in the table `metrics.csv` of `dualread evaluate`.
        pairs: The columns sample_id, donor_image_id, donor_confidence and donor_correct, for CCG-AUC.
        replicates: Number of resamples.

    Raises:
        DataError: A confidence or a grade is missing, or is no number that it can be.
    """
    from dualread.apps.evaluate.evaluation import (
        evaluate,  # here, because a harness may import this to list its metrics
    )

    rows = evaluate(answers, pairs, replicates=replicates).metrics.filter(subset="all")
    columns = ("estimate", "low", "high", "reason")
    by_name = {row["metric"]: row for row in rows.to_dicts()}
    return {name: HarnessMetric(**{column: by_name[name][column] for column in columns}) for name in metrics}
