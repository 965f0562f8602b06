"""The reliability diagram: of the answers with a confidence of about .7, how many are correct?"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dualread.figures._drawing import COLORS, TEXT_WIDTH, Drawing
from dualread.metrics.calibration_error import N_BINS, bins, ece

_CSV = {
    "method": pl.String,
    "bin": pl.Int64,
    **dict.fromkeys(("from", "to"), pl.Float64),
    "n": pl.Int64,
    **dict.fromkeys(("mean_confidence", "share_correct"), pl.Float64),
}
_READING = (
    "Bar: share of correct answers. Dot: the same, at the bin's mean confidence.\n"
    "Dashed: what calibrated confidences have. Numbers: answers in the bin."
)
_PANELS_A_ROW = 2


def diagram(answers: Mapping[str, pl.DataFrame]) -> Drawing:
    """Return one panel a method: the 15 bins of the ECE above, how many answers each holds below.

    Args:
        answers: By the method's name: confidence (float64 in [0, 1]) and correct (bool); one row or more.
    """
    values = pl.DataFrame([row for name, frame in answers.items() for row in _rows(name, frame)], schema=_CSV)
    columns = min(_PANELS_A_ROW, len(answers))
    n_rows = -(-len(answers) // columns)
    figure = Figure(figsize=(TEXT_WIDTH * columns / _PANELS_A_ROW, 3.4 * n_rows + 0.2), layout="constrained")
    grid = figure.subplots(2 * n_rows, columns, squeeze=False, sharex=True, height_ratios=[3, 1] * n_rows)
    panels = list(zip(grid[0::2].flat, grid[1::2].flat, strict=True))
    for (shares, counts), (name, frame) in zip(panels, answers.items(), strict=False):
        of_method = values.filter(pl.col("method") == name)
        shares.set_title(f"{name}\nn = {len(frame)}, ECE-{N_BINS} {_ece(frame):.3f}", parse_math=False)
        _shares(shares, of_method)
        _counts(counts, of_method)
    for unused in panels[len(answers) :]:
        for axes in unused:
            axes.set_axis_off()
    figure.supxlabel(_READING, fontsize=5)
    return Drawing(figure=figure, values=values)


def _rows(method: str, frame: pl.DataFrame) -> list[dict]:
    ordered = frame.sort("confidence", "correct")  # so that sums do not depend on the order of the rows
    confidence, correct = ordered["confidence"].to_numpy(), ordered["correct"].to_numpy()
    index = bins(confidence)
    n = np.bincount(index, minlength=N_BINS)
    confident = np.bincount(index, weights=confidence, minlength=N_BINS)
    right = np.bincount(index, weights=correct, minlength=N_BINS)
    return [
        {
            "method": method,
            "bin": k,
            "from": k / N_BINS,
            "to": (k + 1) / N_BINS,
            "n": int(n[k]),
            "mean_confidence": confident[k] / n[k] if n[k] else None,
            "share_correct": right[k] / n[k] if n[k] else None,
        }
        for k in range(N_BINS)
    ]


def _ece(frame: pl.DataFrame) -> float:
    return ece(frame["confidence"].to_numpy(), frame["correct"].to_numpy())


def _shares(axes: Axes, values: pl.DataFrame) -> None:
    filled = values.filter(pl.col("n") > 0)
    axes.bar(
        filled["from"], filled["share_correct"], width=1 / N_BINS, align="edge", color=COLORS[5], edgecolor="white"
    )
    axes.plot([0, 1], [0, 1], color="0.35", linewidth=0.8, linestyle="--")
    axes.plot(filled["mean_confidence"], filled["share_correct"], "o", color=COLORS[-1], markersize=3)
    axes.set(xlim=(0, 1), ylim=(-0.03, 1.03), ylabel="Share correct", yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.tick_params(labelbottom=False)


def _counts(axes: Axes, values: pl.DataFrame) -> None:
    axes.bar(values["from"], values["n"], width=1 / N_BINS, align="edge", color=COLORS[0], edgecolor="white")
    for row in values.filter(pl.col("n") > 0).iter_rows(named=True):
        middle = (row["from"] + row["to"]) / 2
        axes.annotate(
            str(row["n"]), (middle, row["n"]), (0, 1), textcoords="offset points", ha="center", va="bottom", fontsize=5
        )
    axes.set(xlabel="Confidence", ylabel="Answers")
    axes.margins(y=0.3)
    axes.tick_params(labelbottom=True)
