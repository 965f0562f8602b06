"""Thresholds for a target risk: chosen on calibration answers, and judged on the evaluated ones."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from dualread.commands.evaluate.cells import Cells
from dualread.commands.evaluate.measured import reason_without_probabilities
from dualread.commands.evaluate.shared import refuse_same
from dualread.errors import ConfigError, DataError, UndefinedMetricError
from dualread.evaluation.metrics.risk_control import certified_threshold
from dualread.evaluation.metrics.selective import coverage, kept_risk, threshold

SCHEMA = {
    **dict.fromkeys(("dataset", "method"), pl.String),
    **{"target_risk": pl.Float64, "rule": pl.String},
    **dict.fromkeys(("threshold", "coverage", "risk"), pl.Float64),
    **{"n": pl.Int64, "reason": pl.String},
}
_Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # confidence, correct, image_id


def thresholds(
    cells: Cells, calibration: Sequence[Cells], *, target_risks: Sequence[float], delta: float
) -> pl.DataFrame:
    """Return the threshold of every method, target risk and rule, and what it leads to on the evaluated answers.

    Args:
        cells: The evaluated answers to one data set.
        calibration: The answers that choose. With several data sets, that of the same name chooses; otherwise the only
            one.
        target_risks: Largest error rates of the kept answers, each in (0, 1).
        delta: Largest probability with which a certified threshold may be wrong, in (0, 1).

    Raises:
        ConfigError: A target risk or delta is not in (0, 1).
        DataError: The calibration table lacks the data set or a method, or its answers are the evaluated ones.
    """
    for name, value in (*(("target-risk", risk) for risk in target_risks), ("delta", delta)):
        if not 0.0 < value < 1.0:
            raise ConfigError(f"--{name} {value:g}: expected a number between 0 and 1, such as .1.")
    rules: dict[str, Callable[[_Columns, float], float]] = {
        "empirical": lambda rows, risk: threshold(rows[0], rows[1], target_risk=risk),
        "certified": lambda rows, risk: certified_threshold(*rows, target_risk=risk, delta=delta),
    }
    chooser = chooser_of(cells, calibration)
    refuse_same(cells, chooser)
    rows = [
        {"dataset": cells.dataset, "method": method, "target_risk": risk, "rule": rule}
        | _judged(cells, chooser, method, lambda answers, choose=choose, risk=risk: choose(answers, risk))
        for method in cells.methods
        for risk in target_risks
        for rule, choose in rules.items()
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _judged(cells: Cells, chooser: Cells, method: str, choose: Callable[[_Columns], float]) -> dict:
    found: dict = {"threshold": None, "coverage": None, "risk": None, "n": len(cells.methods[method].answers)}
    same = _same_method(chooser, method, cells)
    if example := cells.ranked.get(method) or chooser.ranked.get(same):
        return {**found, "reason": reason_without_probabilities(example)}
    confidence, correct, _ = _columns(cells, method)
    try:
        found["threshold"] = choose(_columns(chooser, same))
        found["coverage"] = coverage(confidence, found["threshold"])
        found["risk"] = kept_risk(confidence, correct, threshold=found["threshold"])
    except UndefinedMetricError as error:
        return {**found, "reason": str(error)}
    return {**found, "reason": None}


def _columns(cells: Cells, method: str) -> _Columns:
    answers = cells.methods[method].answers
    return answers["confidence"].to_numpy(), answers["correct"].to_numpy(), answers["image_id"].to_numpy()


def chooser_of(cells: Cells, calibration: Sequence[Cells]) -> Cells:
    """Return the part of `calibration` that chooses the thresholds for `cells`.

    Raises:
        DataError: Of several data sets, none has the name of this one.
    """
    if len(calibration) == 1:
        return calibration[0]
    for one in calibration:
        if one.dataset == cells.dataset:
            return one
    known = ", ".join(str(one.dataset) for one in calibration)
    raise DataError(
        f"{calibration[0].source}: no answers to {cells.dataset!r} to choose a threshold. Found data sets: {known}."
    )


def _same_method(chooser: Cells, method: str, cells: Cells) -> str:
    if method in chooser.methods:
        return method
    if len(chooser.methods) == len(cells.methods) == 1:  # without a column `method`, the name is that of the file
        return next(iter(chooser.methods))
    known = ", ".join(chooser.methods)
    raise DataError(f"{chooser.source}: no answers of method {method!r} to choose a threshold. Found: {known}.")
