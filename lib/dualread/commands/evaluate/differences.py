"""Differences between methods on the same questions: estimate, interval and p-value from resamples that they share."""

from collections.abc import Sequence

import polars as pl

from dualread.artifacts.schemas.contrasts import CONTRASTS
from dualread.commands.evaluate.measured import Measured, donors_only
from dualread.errors import ConfigError, DataError, did_you_mean
from dualread.evaluation.contrasts import Results, compare
from dualread.evaluation.replicates import COMPARABLE, TWO_WAY
from dualread.specs.metrics import Contrast

COLUMNS = (
    *("dataset", "method", "baseline", "metric", "estimate", "low", "high", "p", "p_holm", "n", "n_clusters"),
    *("n_undefined", "reason"),
)
SCHEMA = {name: CONTRASTS.columns[name].dtype for name in COLUMNS}
_SPLIT = "test"


def differences(measured: Measured, method: str, baselines: Sequence[str]) -> pl.DataFrame:
    """Return the difference method minus baseline of every metric with an interval, for every baseline.

    Intervals and p-values are paired: a replicate is the difference of two methods on one resample of the images.
    Holm's adjustment is over the baselines, by metric.

    Args:
        measured: The metrics of one data set.
        method: A method of it.
        baselines: Others; all others if empty.

    Raises:
        ConfigError: A method is unknown, or there is none to compare with.
        DataError: The methods do not answer the same questions on the same images.
    """
    cells = measured.cells
    known = list(cells.methods)
    for name in (method, *baselines):
        if name not in known:
            meant = did_you_mean(name, known)
            raise ConfigError(f"--compare {name}: no such method. Known: {', '.join(known)}.{meant}")
    others = [name for name in baselines or known if name != method]
    if not others:
        raise ConfigError(f"--compare {method}: there is no other method in {cells.source}. Known: {', '.join(known)}.")
    for other in others:
        _check_same_questions(measured, method, other)
    rows = _compare(measured, method, others)
    return pl.DataFrame([{"dataset": cells.dataset, **row} for row in rows], schema=SCHEMA)


def _compare(measured: Measured, method: str, others: Sequence[str]) -> list[dict]:
    """Call the study's comparison with the one run that there is."""
    cells = measured.cells
    # Donor images that are clusters by themselves belong to the draws of the two-way intervals.
    same_donors = len({frozenset(donors_only(cells.methods[name])) for name in (method, *others)}) == 1
    metrics = tuple(name for name in COMPARABLE if same_donors or name not in TWO_WAY.values())
    run = {"backbone": pl.lit(""), "seed": pl.lit(0), "dataset": pl.lit(""), "split": pl.lit(_SPLIT)}
    frame = measured.metrics.filter(pl.col("method").is_in([method, *others])).with_columns(**run)
    results = Results(frame, lambda of, name: measured.replicates[of[2]][name.rpartition("/")[2]], {}, metrics)
    contrast = Contrast(
        name="compare", method=method, baselines=tuple(others), datasets=("",), split=_SPLIT, metrics=metrics
    )
    found = [row for row in compare(results, [contrast]) if "contrast" in row]
    order = {name: k for k, name in enumerate(metrics)}
    found.sort(key=lambda row: (order[row["metric"]], others.index(row["baseline"])))
    return [{name: row[name] for name in COLUMNS if name != "dataset"} for row in found]


def _check_same_questions(measured: Measured, method: str, other: str) -> None:
    cells = measured.cells
    if not cells.named:
        raise DataError(
            f"{cells.source}: no column 'sample_id', which --compare needs to find the answers to the same question."
        )
    mine, theirs = (set(cells.methods[name].answers.select("sample_id", "image_id").rows()) for name in (method, other))
    if mine != theirs:
        first = min(mine ^ theirs)[0]
        has, lacks = (method, other) if first in {name for name, _ in mine - theirs} else (other, method)
        raise DataError(
            f"{cells.source}: --compare needs the same questions on the same images, but sample_id {first!r} of {has}"
            f" is not among those of {lacks}. Drop the questions that only one of them answers."
        )
