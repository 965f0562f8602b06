"""Five numbers of each method with their intervals, and what each says in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.apps.evaluate.printed import BAD, GOOD, UNCLEAR, MethodVerdict, ScreenLine, number
from dualread.evaluation.answer_metrics import ACCURACY, AURC, AUROC, ECE, FEW_IMAGES, NOISE_FLOOR
from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC

SHOWN = {
    ACCURACY.name: "share of correct answers",
    AUROC.name: "right and wrong answers told apart",
    ECE.name: "calibration error, 15 bins",
    AURC.name: "error rate as answers are left out",
    NATURAL_CCG_AUC.name: "confidence follows the image",
}


def verdicts(cells: EvaluationData, metrics: pl.DataFrame) -> dict[str, list[MethodVerdict]]:
    """Return the five numbers of each method on a data set; without pairs, four.

    Args:
        cells: The data set.
        metrics: Its rows of `Evaluation.metrics`.
    """
    told = {}
    for method in cells.methods:
        rows = {row["metric"]: row for row in metrics.filter(subset="all", method=method).to_dicts()}
        told[method] = [_verdict(rows, metric, cells) for metric in SHOWN if rows[metric]["reason"] != NO_PAIRS]
    return told


def _verdict(rows: Mapping[str, dict[str, Any]], metric: str, cells: EvaluationData) -> MethodVerdict:
    row = rows[metric]
    if row["estimate"] is None:
        return MethodVerdict(metric=metric, value="-", interval="", words=f"undefined: {row['reason']}")
    ends = "" if row["low"] is None else f"[{number(row['low'])}, {number(row['high'])}]"
    if metric == ECE.name and (floor := rows[NOISE_FLOOR]["estimate"]) is not None:
        ends = f"by chance {number(floor)}"
    words, kind = _WORDS[metric](rows, row, cells)
    if row["reason"]:  # why it has no interval
        words, kind = row["reason"], UNCLEAR
    return MethodVerdict(metric=metric, value=number(row["estimate"]), interval=ends, words=words, kind=kind)


def _of_auroc(rows: Mapping[str, dict], row: dict, cells: EvaluationData) -> tuple[str, str]:
    if row["low"] is None:
        counts = {kind: rows[f"images_with_{kind}"]["estimate"] for kind in ("right", "wrong")}
        few = [f"{n:.0f} with {kind}" for kind, n in counts.items() if n is not None and n < FEW_IMAGES]
        because = f"{cells.unit}s: {', '.join(few)} answers" if few else "nothing to resample"
        return f"no interval: {because}", UNCLEAR
    return _beside_half(
        row,
        "right answers get more confidence than wrong ones",
        "wrong answers get MORE confidence than right ones",
        "not shown to tell right from wrong answers",
    )


def _of_ece(rows: Mapping[str, dict], row: dict, cells: EvaluationData) -> tuple[str, str]:
    floor = rows[NOISE_FLOOR]["estimate"]
    if floor is None:
        return "no floor: nothing to resample", UNCLEAR
    if is_by_chance(row["estimate"], floor):
        return "no more than calibrated confidences have by chance", GOOD
    ends = rows["accuracy"]["estimate"], rows["calibration_in_the_large"]["estimate"]
    side = "" if None in ends else ", too high on average" if ends[1] < 0 else ", too low on average"
    return f"not calibrated{side}", BAD


def _of_ccg(rows: Mapping[str, dict], row: dict, cells: EvaluationData) -> tuple[str, str]:
    sides = [side for side in ("source", "donor") if rows[f"natural_few_{side}s"]["estimate"]]
    if sides or row["low"] is None:
        few = " and ".join(f"{rows[f'{side}_images']['estimate']:.0f} {side}" for side in sides)
        return f"too few {cells.unit}s{f' ({few})' if few else ''} for a verdict", UNCLEAR
    return _beside_half(
        row,
        "confidence falls with another image",
        "confidence RISES with another image",
        "not shown to depend on the image",
    )


def _beside_half(row: dict, above: str, below: str, neither: str) -> tuple[str, str]:
    """Return what an interval says that lies above .5, below it, or on both sides."""
    return (above, GOOD) if row["low"] > 0.5 else (below, BAD) if row["high"] < 0.5 else (neither, UNCLEAR)


_WORDS = {
    ACCURACY.name: lambda rows, row, cells: (f"of {row['n']} answers", UNCLEAR),
    AUROC.name: _of_auroc,
    ECE.name: _of_ece,
    AURC.name: lambda rows, row, cells: (
        f"mean error of the most confident; {number(1.0 - rows[ACCURACY.name]['estimate'])} without an order",
        UNCLEAR,
    ),
    NATURAL_CCG_AUC.name: _of_ccg,
}


def findings(told: Mapping[str, Sequence[MethodVerdict]]) -> Iterator[ScreenLine]:
    """Yield, metric by metric, what was found of which methods; what is unclear is not said."""
    for name in SHOWN:
        by_words: dict[tuple[str, str], list[str]] = {}
        for method, numbers in told.items():
            for verdict in numbers:
                if verdict.metric == name and verdict.kind != UNCLEAR:
                    by_words.setdefault((verdict.words, verdict.kind), []).append(method)
        for (words, kind), methods in by_words.items():
            who = "all" if len(methods) == len(told) else ", ".join(methods)
            yield ScreenLine(text=f"{name}: {words}: {who}", kind=kind, start=len(name) + 2)
