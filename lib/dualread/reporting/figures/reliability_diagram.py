"""The reliability diagram: of the answers with a confidence of about .7, how many are correct?"""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics.calibration_chance import ece_noise_floor
from dualread.evaluation.metrics.calibration_error import N_BINS, bins, ece
from dualread.reporting.figures.drawing import COLORS, TEXT_WIDTH, Drawing
from dualread.schema.tables import FigureLayout, Labeled

# A bin with fewer clusters is drawn as weak: the interval of a share of one half is then wider than .5.
FEW_CLUSTERS = 10
_Z = NormalDist().inv_cdf(0.975)

_BINS = {
    "bin": pl.Int64,
    **dict.fromkeys(("from", "to"), pl.Float64),
    **dict.fromkeys(("n", "n_clusters"), pl.Int64),
    **dict.fromkeys(("mean_confidence", "share_correct", "low", "high"), pl.Float64),
}

_READING = (
    "Bar: share of correct answers. Dot: the same share, at the bin's mean confidence. Dashed: perfect calibration.\n"
    "Whisker: 95% Wilson interval of the share, with one observation per {unit}.\n"
    f"White bar, hollow dot: fewer than {FEW_CLUSTERS} such observations, so little is known. "
)
_CHANCE = "In parentheses: 95% of calibrated confidences have a smaller ECE; the others reach this by chance."
_NO_FLOORS: Mapping[str, float | None] = {}
_READING_POOLED = (
    _READING.format(unit="{unit}, since answers on one {unit} are not independent")
    + "Numbers above: answers in each bin.\n"
    "Answers and ECE-15 are pooled over seeds; the tables show the mean over seeds of ECE-15 instead.\n" + _CHANCE
)
_PANELS_PER_ROW = 2
_OF_METHOD = {"method": pl.String, **_BINS}
_OF_CELL = {
    **dict.fromkeys(("study", "dataset", "backbone"), pl.String),
    **_OF_METHOD,
    **dict.fromkeys(("pooled_ece", "pooled_floor"), pl.Float64),
}

# Inches. A page of pooled diagrams has a fixed layout, without a layout engine.
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.7, 0.1, 0.8, 0.95
_PANEL_WIDTH, _PANEL_HEIGHT = 1.3, 0.55
_GAP_ACROSS, _GAP_DOWN = 0.15, 0.42  # the gap between rows holds the numbers of answers and a panel's title


def diagram(
    answers: Mapping[str, pl.DataFrame], *, unit: str = "image", floors: Mapping[str, float | None] = _NO_FLOORS
) -> Drawing:
    """Return one panel per method: the 15 bins of the ECE above, how many answers each holds below.

    Args:
        answers: Per method name: cluster_id, confidence (float64 in [0, 1]) and correct (bool), with at least one row.
        unit: The word for what `cluster_id` identifies.
        floors: Per method name, the ECE that calibrated confidences reach by chance; not shown where it is unknown.
    """
    rows = [{"method": name, **row} for name, frame in answers.items() for row in bins_of(frame)]
    values = pl.DataFrame(rows, schema=_OF_METHOD)
    columns = min(_PANELS_PER_ROW, len(answers))
    n_rows = -(-len(answers) // columns)
    figure = Figure(figsize=(TEXT_WIDTH * columns / _PANELS_PER_ROW, 3.4 * n_rows + 0.3), layout="constrained")
    grid = figure.subplots(2 * n_rows, columns, squeeze=False, sharex=True, height_ratios=[3, 1] * n_rows)
    panels = list(zip(grid[0::2].flat, grid[1::2].flat, strict=True))
    for (shares, counts), (name, frame) in zip(panels, answers.items(), strict=False):
        of_method = values.filter(pl.col("method") == name)
        shares.set_title(f"{name}\nn = {len(frame)}, {_said(_ece(frame), floors.get(name))}", parse_math=False)
        _shares(shares, of_method)
        shares.set(ylabel="Share correct", yticks=[0, 0.25, 0.5, 0.75, 1])
        shares.tick_params(labelbottom=False)
        _counts(counts, of_method)
    for unused in panels[len(answers) :]:
        for axes in unused:
            axes.set_axis_off()
    reading = f"{_READING.format(unit=unit)}Below: number of answers in each bin."
    reading += f"\n{_CHANCE}" if floors else ""
    reading = reading if columns > 1 else textwrap.fill(reading, 80)
    figure.supxlabel(reading, fontsize=5)
    return Drawing(figure=figure, values=values)


def pooled(
    answers: pl.DataFrame, layout: FigureLayout, *, pages: Sequence[Labeled], columns: Sequence[Labeled]
) -> Drawing:
    """Return pages of panels, one row of panels per method; answers are pooled over seeds.

    There is a page per backbone and a column per data set, or the other way around. `answers` has one row per answer:
    backbone, method, dataset, cluster_id, confidence, correct.
    """
    cells = answers.partition_by("backbone", "dataset", "method", as_dict=True)
    values, figures = [], []
    for page in pages:
        of_page = {}
        for column in columns:
            backbone, dataset = (page, column) if pages is layout.backbones else (column, page)
            names = {"study": layout.study, "dataset": dataset.name, "backbone": backbone.name}
            for method in layout.methods:
                cell = cells[backbone.name, dataset.name, method.name]
                floor = _floor(cell, (layout.study, dataset.name, "test"))
                of_bins = {"method": method.name, "pooled_ece": _ece(cell), "pooled_floor": floor}
                rows = [{**names, **of_bins, **row} for row in bins_of(cell)]
                of_page[column.name, method.name] = pl.DataFrame(rows, schema=_OF_CELL)
        figures.append(_drawn(page.label, columns, layout, of_page))
        values += of_page.values()
    return Drawing(figure=figures[0], values=pl.concat(values), further=figures[1:])


def _drawn(
    title: str, columns: Sequence[Labeled], layout: FigureLayout, of_page: Mapping[tuple, pl.DataFrame]
) -> Figure:
    methods, n, n_rows = layout.methods, len(columns), len(layout.methods)
    width = max(TEXT_WIDTH, _LEFT + _RIGHT + n * _PANEL_WIDTH + (n - 1) * _GAP_ACROSS)
    height = _TOP + _BOTTOM + n_rows * _PANEL_HEIGHT + (n_rows - 1) * _GAP_DOWN
    figure = Figure(figsize=(width, height))
    panel_width = (width - _LEFT - _RIGHT - (n - 1) * _GAP_ACROSS) / n
    grid = figure.subplots(
        n_rows,
        n,
        squeeze=False,
        gridspec_kw={
            **{"left": _LEFT / width, "right": 1 - _RIGHT / width, "wspace": _GAP_ACROSS / panel_width},
            **{"bottom": _BOTTOM / height, "top": 1 - _TOP / height, "hspace": _GAP_DOWN / _PANEL_HEIGHT},
        },
    )
    figure.suptitle(title, fontweight="bold", y=1 - 0.08 / height, va="top", parse_math=False)
    figure.supxlabel(layout.in_units(_READING_POOLED), fontsize=5.5, y=0.06 / height, va="bottom")
    for axes, column in zip(grid[0], columns, strict=True):
        axes.annotate(
            column.label, (0.5, 1), (0, 25), xycoords="axes fraction", textcoords="offset points", ha="center",
            fontweight="bold", parse_math=False,
        )  # fmt: skip
    for row, method in zip(grid, methods, strict=True):
        for axes, column in zip(row, columns, strict=True):
            _panel(axes, of_page[column.name, method.name])
            axes.tick_params(labelbottom=False, labelleft=axes is row[0])
        label = textwrap.fill(method.label, 14)
        row[0].set_ylabel(label, fontsize=6, fontweight="bold", parse_math=False)
    for axes in grid[-1]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("Confidence")
    return figure


def _panel(axes: Axes, values: pl.DataFrame) -> None:
    _shares(axes, values)
    axes.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    title = f"{_said(values['pooled_ece'][0], values['pooled_floor'][0])}, n = {values['n'].sum()}"
    axes.set_title(title, loc="left", fontsize=6, pad=14)
    for row in values.filter(pl.col("n") > 0).iter_rows(named=True):
        axes.annotate(
            str(row["n"]), ((row["from"] + row["to"]) / 2, 1.03), (0, 1), textcoords="offset points", rotation=90,
            ha="center", va="bottom", fontsize=4, color="0.45" if row["n_clusters"] < FEW_CLUSTERS else "0",
        )  # fmt: skip


def _ece(frame: pl.DataFrame) -> float:
    return ece(frame["confidence"].to_numpy(), frame["correct"].to_numpy())


def _floor(frame: pl.DataFrame, names: tuple[str, ...]) -> float | None:
    """Return the ECE that calibrated confidences reach by chance, None with one image; seeds share their images."""
    images, image = np.unique(frame["cluster_id"].to_numpy(), return_inverse=True)
    try:
        return ece_noise_floor(frame["confidence"].to_numpy(), frame["correct"].to_numpy(), image, len(images), names)
    except UndefinedMetricError:
        return None


def _said(error: float, floor: float | None) -> str:
    return f"ECE-{N_BINS} {error:.3f}{'' if floor is None else f' ({floor:.3f})'}"


def _shares(axes: Axes, values: pl.DataFrame) -> None:
    """Draw bars, dots and whiskers of the bins that hold answers; those with few images are white and gray."""
    axes.plot([0, 1], [0, 1], color="0.35", linewidth=0.8, linestyle="--")
    few, filled = pl.col("n_clusters") < FEW_CLUSTERS, values.filter(pl.col("n") > 0)
    for drawn, face, edge, color in (
        (filled.filter(~few), COLORS[5], "0.25", COLORS[-1]),
        (filled.filter(few), "white", "0.7", "0.5"),
    ):
        if drawn.is_empty():
            continue  # without values, matplotlib would still reserve space for markers
        x, share = drawn["mean_confidence"], drawn["share_correct"]
        axes.bar(
            drawn["from"], share, width=1 / N_BINS, align="edge", color=face, edgecolor=edge, linewidth=0.4, zorder=1
        )
        axes.vlines(x, drawn["low"], drawn["high"], color=color, linewidth=0.6)
        (dots,) = axes.plot(x, share, "o", color=color, markersize=2.2, markeredgewidth=0.5, clip_on=False)
        dots.set_markerfacecolor(face if face == "white" else color)
    axes.set(xlim=(0, 1), ylim=(-0.03, 1.03))


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


def bins_of(answers: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one row per bin of the ECE, empty bins included; the keys are `_BINS`.

    `low` and `high` are the ends of the 95% Wilson interval of the share of correct answers. Answers on one image are
    not independent, and with several seeds the same question is there several times; so the interval uses the number
    of distinct images as the number of observations. That is cautious: answers on one image are rarely all alike. An
    empty bin has null for the mean confidence, the share and the interval. `answers` has one row per answer: cluster_id
    (string), confidence (float64 in [0, 1]), correct (bool).
    """
    ordered = answers.sort("confidence", "correct")  # so that sums do not depend on the order of the rows
    confidence, correct = ordered["confidence"].to_numpy(), ordered["correct"].to_numpy()
    index = bins(confidence)
    n = np.bincount(index, minlength=N_BINS)
    confident = np.bincount(index, weights=confidence, minlength=N_BINS)
    right = np.bincount(index, weights=correct, minlength=N_BINS)
    images = Counter(k for k, _ in set(zip(index.tolist(), ordered["cluster_id"], strict=True)))
    return [
        {
            "bin": k,
            "from": k / N_BINS,
            "to": (k + 1) / N_BINS,
            "n": int(n[k]),
            "n_clusters": images[k],
            "mean_confidence": confident[k] / n[k],
            "share_correct": right[k] / n[k],
            **dict(zip(("low", "high"), wilson(right[k] / n[k], images[k]), strict=True)),
        }
        if n[k]
        else {"bin": k, "from": k / N_BINS, "to": (k + 1) / N_BINS, "n": 0, "n_clusters": 0}
        for k in range(N_BINS)
    ]


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the ends of the 95% Wilson score interval of a share among `n` >= 1 observations, within [0, 1].

    References:
        Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927.
    """
    shrink = 1 + _Z**2 / n
    middle = (share + _Z**2 / (2 * n)) / shrink
    half = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / shrink
    return max(0.0, middle - half), min(1.0, middle + half)
