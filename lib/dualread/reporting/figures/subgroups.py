"""AUROC and Natural CCG-AUC of groups of answers with their intervals, one page per backbone and column of questions.

The thick line is the interval of a group by itself, the thin one holds for all groups of its column together. Groups
without an interval are not drawn. Of actors with several seeds, the first is drawn (see `dualread.reporting.forest`).
"""

from collections.abc import Mapping

import polars as pl
from matplotlib.figure import Figure

from dualread.reporting.figures.drawing import Drawing
from dualread.reporting.figures.forest import page
from dualread.reporting.forest import VALUES, rows_of_groups, scale
from dualread.schema.tables import FigureLayout

READS = "subgroups"


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return one page per backbone and column of `subgroups`, with the layout's methods on its first data set."""
    dataset, order = layout.datasets[0], [method.name for method in layout.methods]
    labels = {method.name: f"{method.label}: " if len(order) > 1 else "" for method in layout.methods}
    units, parts, titles = layout.units_of(dataset.label), [], []
    for backbone in layout.backbones:
        here = tables["subgroups"].filter(pl.col("method").is_in(order), backbone=backbone.name, dataset=dataset.name)
        here = here.filter(pl.col("seed") == pl.col("seed").min().over("actor"))
        here = here.sort(pl.col("method").replace_strict(dict(zip(order, range(len(order)), strict=True))), "group")
        for by in here["by"].unique(maintain_order=True):
            names = {"study": layout.study, "backbone": backbone.name, "dataset": dataset.name}
            shown = rows_of_groups(here.filter(by=by).to_dicts(), labels, **names)
            parts.append(pl.DataFrame(list(shown), schema=VALUES).with_columns(by=pl.lit(by)))
            titles.append(f"{backbone.label}, {dataset.label}, by {by}")
    values = pl.concat([pl.DataFrame(schema={**VALUES, "by": pl.String}), *parts])
    pages = [page(part, title, ends=scale(values), units=units) for part, title in zip(parts, titles, strict=True)]
    return Drawing(figure=pages[0] if pages else Figure(), values=values, further=pages[1:])
