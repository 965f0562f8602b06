"""AUROC by layer: how well a probe of each layer ranks answers, with 95% intervals over images.

One row of panels per data set, one column per backbone. With several seeds, point and ends are means over seeds.
"""

from collections.abc import Mapping

import polars as pl
from matplotlib.figure import Figure

from dualread.errors import ConfigError
from dualread.reporting.figures.drawing import COLORS, TEXT_WIDTH, Drawing, means, panels
from dualread.schema.tables import FigureLayout

READS = "metrics"

_CSV = {
    **dict.fromkeys(("study", "dataset", "backbone", "method"), pl.String),
    **dict.fromkeys(("layer", "auroc", "low", "high"), pl.Float64),
    "n_seeds": pl.Int64,
}


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return the panels of `metrics` for the layout's backbones, data sets and methods, each of which reads one layer.

    Raises:
        ConfigError: A method reads no layer.
    """
    depths = layout.layers or {}
    if others := [method.name for method in layout.methods if method.name not in depths]:
        raise ConfigError(f"figures.layers.methods: {others} read no layer (`settings.layer`). Name probes of layers.")
    size = (max(3.2, min(TEXT_WIDTH, 2.4 * len(layout.backbones) + 0.8)), 1.7 * len(layout.datasets) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    labels = [f"{dataset.label}\nAUROC" for dataset in layout.datasets]
    grid = panels(figure, labels, layout.backbones, "Depth of the layer", sharex=True, sharey=True)
    rows = []
    for line, dataset in zip(grid, layout.datasets, strict=True):
        for axes, backbone in zip(line, layout.backbones, strict=True):
            of_panel = tables["metrics"].filter(dataset=dataset.name, backbone=backbone.name, split="test")
            points = []
            for method in layout.methods:
                runs = of_panel.filter(subset="all", metric="auroc", method=method.name)
                points.append((depths[method.name], *means(runs)))
                rows.append((layout.study, dataset.name, backbone.name, method.name, *points[-1], runs.height))
            shown = sorted((point for point in points if point[1] is not None), key=lambda point: point[0])
            axes.plot([x for x, *_ in shown], [y for _, y, *_ in shown], ".-", color=COLORS[0], linewidth=1)
            for depth, _, low, high in shown:
                if low is not None:
                    axes.vlines(depth, low, high, color=COLORS[0], linewidth=0.6)
            axes.axhline(0.5, color="#808080", linewidth=0.5, linestyle=":")
    return Drawing(figure=figure, values=pl.DataFrame(rows, schema=_CSV, orient="row"))
