"""Robustness: accuracy and mean confidence against the strength of what is done to the images, with intervals.

One row of panels per image change with a strength, and one for the conditions without one; one column per backbone.
Strength 0 is the original image. A vertical line is the 95% interval over images; with several seeds, point and ends
are means over seeds. Where all methods judge the same answers, their accuracy is drawn once, in gray.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby, product

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dualread.errors import ConfigError
from dualread.evaluation.conditions import ACCURACY, CONFIDENCE, PREFIX
from dualread.evaluation.side_by_side import ORIGINAL
from dualread.reporting.figures.drawing import COLORS, TEXT_WIDTH, Drawing, means, panels, refuse_more
from dualread.schema.tables import FigureLayout, LabeledCondition

READS = "metrics"
OF_CONDITIONS = True  # a study needs others than the paper's

_WITHOUT = "other conditions"
_CSV = {
    **dict.fromkeys(("study", "dataset", "backbone", "method", "condition", "image"), pl.String),
    "strength": pl.Float64,
    "metric": pl.String,
    **dict.fromkeys(("mean", "low", "high"), pl.Float64),
    "n_seeds": pl.Int64,
}
_GRAY = "#808080"


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return the panels of `metrics` for the layout's backbones, methods and conditions, on its first data set.

    Raises:
        ConfigError: There are more methods than colors, or no conditions.
    """
    refuse_more("robustness", "methods", layout.methods)
    rows = _rows(layout.conditions or ())
    if not rows:
        raise ConfigError("figures.robustness: the study has no other conditions. Add some, or leave the figure out.")
    values = _values(tables["metrics"], layout)
    size = (max(3.4, min(TEXT_WIDTH, 2.4 * len(layout.backbones) + 1)), 1.7 * len(rows) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    lines = [Line2D([], [], color=c, label=method.label) for c, method in zip(COLORS, layout.methods, strict=False)]
    figure.legend(
        handles=[*lines, Line2D([], [], color=_GRAY, linestyle="--", label="Accuracy")],
        loc="outside upper center",
        ncols=3,
    )
    grid = panels(figure, [title for title, _ in rows], layout.backbones, sharey=True)
    for row, (_, conditions) in zip(grid, rows, strict=True):
        for axes, backbone in zip(row, layout.backbones, strict=True):
            _panel(axes, values.filter(backbone=backbone.name), conditions, layout)
    return Drawing(figure=figure, values=values)


def _rows(conditions: Sequence[LabeledCondition]) -> list[tuple[str, list[LabeledCondition]]]:
    """Return (title, conditions) of each row: changes with a strength by their image, and all others together."""
    ordered = sorted(
        conditions, key=lambda shown: (shown.strength is None, shown.image, shown.strength or 0.0, shown.name)
    )
    groups = groupby(ordered, lambda shown: _WITHOUT if shown.strength is None else shown.image)
    return [(title, list(group)) for title, group in groups]


def _values(metrics: pl.DataFrame, layout: FigureLayout) -> pl.DataFrame:
    """Return one row per drawn point: means over seeds; null where a seed has no value."""
    original = LabeledCondition(name=ORIGINAL, image=ORIGINAL, strength=0.0)
    shown = product(layout.backbones, layout.methods, (original, *(layout.conditions or ())), (ACCURACY, CONFIDENCE))
    rows = []
    for backbone, method, condition, metric in shown:
        names = {"dataset": layout.datasets[0].name, "backbone": backbone.name, "method": method.name}
        runs = metrics.filter(**names, split="test", subset=f"{PREFIX}{condition.name}", metric=metric.name)
        of_condition = (condition.name, condition.image, condition.strength)
        rows.append((layout.study, *names.values(), *of_condition, metric.name, *means(runs), runs.height))
    return pl.DataFrame(rows, schema=_CSV, orient="row")


def _panel(axes: Axes, values: pl.DataFrame, conditions: Sequence[LabeledCondition], layout: FigureLayout) -> None:
    of_strength = conditions[0].strength is not None
    names = [ORIGINAL, *(condition.name for condition in conditions)]
    strengths = [0.0, *(condition.strength or 0.0 for condition in conditions)]
    places = strengths if of_strength else list(map(float, range(len(names))))
    accuracies = []
    for color, method in zip(COLORS, layout.methods, strict=False):
        of_method = values.filter(method=method.name)
        _line(axes, of_method.filter(metric=CONFIDENCE.name), names, places, color, "-")
        accuracies.append((color, of_method.filter(metric=ACCURACY.name)))
    shared = len({tuple(accuracy["mean"].to_list()) for _, accuracy in accuracies}) == 1
    for color, accuracy in accuracies[:1] if shared else accuracies:
        _line(axes, accuracy, names, places, _GRAY if shared else color, "--")
    axes.set_ylim(0, 1)
    if of_strength:
        axes.set_xlabel("strength")
    else:
        axes.set_xticks(places, [name.replace("_", " ") for name in names], rotation=30, ha="right", parse_math=False)


def _line(
    axes: Axes, values: pl.DataFrame, names: Sequence[str], places: Sequence[float], color: str, style: str
) -> None:
    row_of = {row["condition"]: row for row in values.iter_rows(named=True)}
    shown = [(x, row_of[name]) for x, name in zip(places, names, strict=True) if row_of[name]["mean"] is not None]
    axes.plot(
        [x for x, _ in shown], [row["mean"] for _, row in shown], style, color=color, linewidth=1, marker=".", ms=3
    )
    ends = [(x, row["low"], row["high"]) for x, row in shown if row["low"] is not None]
    axes.vlines(
        [x for x, *_ in ends], [low for _, low, _ in ends], [high for *_, high in ends], color=color, linewidth=0.6
    )
