"""Training signals: what confidences can say, and whether they follow the image, against the accuracy of the answers.

One column of panels per backbone: the number of different valid confidences above, Natural CCG-AUC below. The color is
that of the actor, the mark that of the kind of confidence, which is the label of the method. A large mark is the mean
over seeds, small ones are the seeds.
"""

from collections.abc import Mapping
from itertools import product

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dualread.errors import ConfigError
from dualread.evaluation.answer_metrics import ACCURACY, UNIQUE_CONFIDENCES
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.reporting.figures.drawing import COLORS, TEXT_WIDTH, Drawing, panels
from dualread.schema.tables import FigureLayout

READS = "metrics"

_MARKS = "osD^vP"
_SHOWN = (UNIQUE_CONFIDENCES, NATURAL_CCG_AUC)
_CSV = {
    **dict.fromkeys(("study", "dataset", "backbone", "actor", "method"), pl.String),
    "seed": pl.Int64,
    **dict.fromkeys((ACCURACY.name, *(metric.name for metric in _SHOWN)), pl.Float64),
}


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return the panels of `metrics` for the layout's backbones and methods, on its first data set.

    Raises:
        ConfigError: There are more actors than colors, or more kinds of confidence than marks.
    """
    names = [method.name for method in layout.methods]
    metrics = tables["metrics"].filter(
        pl.col("method").is_in(names), dataset=layout.datasets[0].name, split="test", subset="all"
    )
    actor_of = dict(metrics.select("method", "actor").unique().iter_rows())
    colors = _one_each("actors", [actor_of[name] for name in names if name in actor_of], COLORS)
    marks = _one_each("labels of methods", [method.label for method in layout.methods], _MARKS)
    values = metrics.pivot("metric", index=[*_CSV][:6], values="estimate")
    values = values.select(
        *[*_CSV][:6],
        *(pl.col(name) if name in values.columns else pl.lit(None, pl.Float64).alias(name) for name in [*_CSV][6:]),
    )
    size = (max(3.6, min(TEXT_WIDTH, 2.6 * len(layout.backbones) + 1)), 4.6)
    figure = Figure(figsize=size, layout="constrained")
    label_of = {actor.name: actor.label for actor in layout.actors}
    legend = [Line2D([], [], color=color, linewidth=3, label=label_of[actor]) for actor, color in colors.items()]
    legend += [Line2D([], [], color="#000000", ls="", marker=mark, label=label) for label, mark in marks.items()]
    figure.legend(handles=legend, loc="outside upper center", ncols=3)
    labels = ("Different confidences", "Natural CCG-AUC")
    grid = panels(figure, labels, layout.backbones, "Accuracy", sharex="col", sharey="row")
    for (row, metric), (column, backbone) in product(enumerate(_SHOWN), enumerate(layout.backbones)):
        axes = grid[row][column]
        for method in layout.methods:
            runs = values.filter(backbone=backbone.name, method=method.name).drop_nulls([ACCURACY.name, metric.name])
            if runs.is_empty():
                continue
            x, y = runs[ACCURACY.name], runs[metric.name]
            look = {"color": colors[actor_of[method.name]], "ls": "", "marker": marks[method.label]}
            axes.plot(x, y, ms=2, alpha=0.5, **look)
            axes.plot([x.mean()], [y.mean()], ms=5, markerfacecolor="none", **look)
        if metric is UNIQUE_CONFIDENCES:
            axes.set_yscale("log")
        else:
            axes.axhline(0.5, color="#808080", linewidth=0.5, linestyle=":")
    return Drawing(figure=figure, values=values)


def _one_each(kind: str, names: list[str], looks: tuple[str, ...] | str) -> dict[str, str]:
    different = list(dict.fromkeys(names))
    if len(different) > len(looks):
        raise ConfigError(
            f"figures.training_signals.methods: {len(different)} {kind}, but there are {len(looks)} ways to show them."
            " List fewer methods."
        )
    return dict(zip(different, looks, strict=False))
