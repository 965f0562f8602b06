"""The reliability diagram: of the answers with a confidence of about .7, how many are correct?"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

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
_OF_CELL = {**dict.fromkeys(("study", "dataset", "backbone"), pl.String), **_CSV, "pooled_ece": pl.Float64}
_READING_POOLED = (
    "Bar: share of correct answers, its dot at the bin's mean confidence. Dashed: what calibrated confidences have.\n"
    "Gray: share of all answers that is in the bin (scale of square roots; a bin without a dot is empty).\n"
    "Answers and ECE-15 are pooled over seeds; tables show the mean of the seeds' ECE-15 instead."
)


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


def pooled(answers: pl.DataFrame, layout: Mapping[str, Any]) -> Drawing:
    """Return a page a data set, a row of panels a method, a column a backbone; answers are pooled over seeds.

    Args:
        answers: backbone, method, dataset, confidence, correct; one row an answer, condition original.
        layout: {"study", "backbones", "methods", "datasets": [{"name", "label"}]}; their order is drawn.
    """
    pages = [_page(answers.filter(dataset=dataset["name"]), dataset, layout) for dataset in layout["datasets"]]
    values = pl.concat(page.values for page in pages)
    return Drawing(figure=pages[0].figure, values=values, further=[page.figure for page in pages[1:]])


def _page(answers: pl.DataFrame, dataset: Mapping[str, str], layout: Mapping[str, Any]) -> Drawing:
    backbones, methods = layout["backbones"], layout["methods"]
    width = max(4.4, min(TEXT_WIDTH, 2.2 * len(backbones) + 0.6))  # the reading needs 4.4
    layout_engine = ConstrainedLayoutEngine(h_pad=0.01, hspace=0)
    figure = Figure(figsize=(width, len(methods) + 0.9), layout=layout_engine)
    figure.suptitle(dataset["label"], fontweight="bold", parse_math=False)
    figure.supxlabel(_READING_POOLED, fontsize=5)
    heights = [0.5, 3, 1.2] * len(methods)  # room for a title, shares, masses
    grid = figure.subplots(len(heights), len(backbones), squeeze=False, sharex=True, height_ratios=heights)
    tables = []
    for column, backbone in zip(grid.T, backbones, strict=True):
        column[0].set_title(backbone["label"], fontweight="bold", parse_math=False)
        for room, shares, masses, method in zip(column[0::3], column[1::3], column[2::3], methods, strict=True):
            room.set_axis_off()
            cell = answers.filter(backbone=backbone["name"], method=method["name"])
            names = {"study": layout["study"], "dataset": dataset["name"], "backbone": backbone["name"]}
            error = _ece(cell)
            rows = [{**names, **row, "pooled_ece": error} for row in _rows(method["name"], cell)]
            tables.append(pl.DataFrame(rows, schema=_OF_CELL))
            _shares(shares, tables[-1])
            shares.set(ylabel="", yticks=[0, 0.5, 1])
            title = f"{method['label']}: pooled ECE-{N_BINS} {error:.3f}, n = {len(cell)}"
            shares.set_title(title, loc="left", fontsize=6, pad=2, parse_math=False)
            _masses(masses, tables[-1])
        column[-1].tick_params(labelbottom=True)
        column[-1].set_xlabel("Confidence")
    return Drawing(figure=figure, values=pl.concat(tables))


def _masses(axes: Axes, values: pl.DataFrame) -> None:
    """Draw the share of all answers in each bin, on a scale of roots: one answer of a hundred is still seen."""
    share = values["n"] / values["n"].sum()
    axes.bar(values["from"], share, width=1 / N_BINS, align="edge", color="0.35", edgecolor="white", linewidth=0.3)
    axes.set_yscale("function", functions=(_root, np.square))
    axes.set(ylim=(0, 1), yticks=[0.1, 1], yticklabels=["0.1", "1"])
    axes.minorticks_off()
    axes.tick_params(labelbottom=False)


def _root(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(values, 0))  # matplotlib asks for values outside the axis too


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
    axes.plot(filled["mean_confidence"], filled["share_correct"], "o", color=COLORS[-1], markersize=3, clip_on=False)
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
