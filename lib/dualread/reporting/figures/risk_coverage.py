"""Selective prediction: the error rate of the answers that are kept, if only the most confident ones are kept.

One row of panels per data set, one column per backbone, one line per method. A line is the mean over seeds of the risk
at each coverage, so that the mean of a line is the AURC of the tables. Of more than `_MOST_DRAWN` answers, a line has
the points that a screen can show.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from dualread.evaluation.metrics.selective import risks
from dualread.reporting.figures.drawing import COLORS, TEXT_WIDTH, Drawing, panels, refuse_more
from dualread.schema.tables import FigureLayout

READS = "answers"

_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))  # lines stay distinct without color
_CSV = {
    **dict.fromkeys(("study", "dataset", "backbone", "method"), pl.String),
    **{"kept": pl.Int64, "coverage": pl.Float64, "risk": pl.Float64},
}
_MOST_DRAWN = 2_000  # points of a line; a panel is 800 pixels wide at most
_CHARACTERS, _LINE = 16, 6  # of a legend: characters to the inch, and what a line before them takes of these
_READING = "Equal confidences share their errors evenly. The mean of a line is its AURC."
_SEEDS = "Mean over seeds. "


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return the curves of `answers`: backbone, method, dataset, seed, confidence, correct; one row per answer.

    Raises:
        ConfigError: There are more methods than lines that can be told apart.
    """
    backbones, methods, datasets = layout.backbones, layout.methods, layout.datasets
    refuse_more("risk_coverage", "methods", methods)
    styles = [{"color": color, "linestyle": dash} for color, dash in zip(COLORS, _DASHES, strict=True)]
    width = max(4.4, min(TEXT_WIDTH, 2.6 * len(backbones) + 0.6))
    figure = Figure(figsize=(width, 1.9 * len(datasets) + 0.7), layout=ConstrainedLayoutEngine(w_pad=0.06))
    lines = [Line2D([], [], label=method.label, **style) for method, style in zip(methods, styles, strict=False)]
    longest = max((len(method.label) for method in methods), default=0)
    fitting = max(1, int(_CHARACTERS * width) // (longest + _LINE))
    ncols = min((len(lines) + 1) // 2, fitting)
    figure.legend(handles=lines, loc="outside upper center", ncols=ncols, handlelength=3.5)
    has_seeds = tables["answers"]["seed"].n_unique() > 1
    figure.supxlabel(_SEEDS * has_seeds + _READING, fontsize=5)
    labels = [f"{dataset.label}\nrisk (share wrong)" for dataset in datasets]
    grid = panels(figure, labels, backbones, "Coverage (share kept)", sharex=True, sharey="row")
    curves = []
    for row, dataset in zip(grid, datasets, strict=True):
        for axes, backbone in zip(row, backbones, strict=True):
            cell = tables["answers"].filter(dataset=dataset.name, backbone=backbone.name)
            for method, style in zip(methods, styles, strict=False):
                names = (layout.study, dataset.name, backbone.name, method.name)
                curves.append(_curve(cell.filter(method=method.name), names))
                axes.plot(curves[-1]["coverage"], curves[-1]["risk"], linewidth=1, **style)
            axes.set(xlim=(0, 1.01), xticks=[0, 0.25, 0.5, 0.75, 1])
        highest = max(float(line.get_ydata().max()) for axes in row for line in axes.lines)
        row[0].set_ylim(0, max(1.05 * highest, 0.05))  # the panels of a row share this axis
    return Drawing(figure=figure, values=pl.concat(curves))


def _curve(answers: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    runs = answers.sort("seed").partition_by("seed", maintain_order=True)
    of_seeds = np.stack([risks(run["confidence"].to_numpy(), run["correct"].to_numpy()) for run in runs])
    kept = np.arange(1, of_seeds.shape[1] + 1)
    place = dict(zip(_CSV, names, strict=False))
    columns = {"kept": kept, "coverage": kept / len(kept), "risk": of_seeds.mean(axis=0)}
    curve = pl.DataFrame({**{key: [value] * len(kept) for key, value in place.items()}, **columns}, schema=_CSV)
    if len(kept) <= _MOST_DRAWN:
        return curve
    # The points that the picture of the line rests on: first, last, lowest and highest of each vertical strip.
    risk, strips = columns["risk"], np.array_split(np.arange(len(kept)), _MOST_DRAWN // 4)
    points = [(strip[0], strip[risk[strip].argmin()], strip[risk[strip].argmax()], strip[-1]) for strip in strips]
    return curve[np.unique(points)]
