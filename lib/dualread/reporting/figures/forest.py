"""What confidence tells of answers (AUROC) and of images (Natural CCG-AUC), beside nulls that see no image.

One page per backbone: methods down, intervals across, the nulls as bands, and what the image alone can tell at most as
a line, where it is known. A dot is filled where the method is above every null (see `dualread.reporting.forest`).
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dualread.reporting.figures.drawing import COLORS, TEXT_WIDTH, Drawing
from dualread.reporting.forest import (
    CHANCE,
    LIMIT,
    LIMIT_LABEL,
    MEASURES,
    METHOD,
    NULL,
    VALUES,
    filled_means,
    rows_of,
    says,
    scale,
)
from dualread.schema.tables import FigureLayout, Labeled

READS = "contrasts"

_BLUE, _PALE, _DARK = COLORS[0], "0.6", "0.25"
_BANDS = (COLORS[4], COLORS[3], COLORS[2])  # of the nulls, which also differ in their hatches
_HATCHES = ("", "////", "....")


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return one page per backbone, with the layout's methods (the nulls among them) on its first data set.

    The tables are `contrasts`, of one actor, in which methods are compared with its nulls; and `difficulty`, where the
    true difficulty of images is known.
    """
    values = pl.DataFrame(
        [row for backbone in layout.backbones for row in _rows(tables, layout, backbone)], schema=VALUES
    )
    units, ends = layout.units_of(layout.datasets[0].label), scale(values)
    pages = [
        page(values.filter(backbone=backbone.name), title(backbone, layout, values), ends=ends, units=units)
        for backbone in layout.backbones
    ]
    return Drawing(figure=pages[0], values=values, further=pages[1:])


def _rows(tables: Mapping[str, pl.DataFrame], layout: FigureLayout, backbone: Labeled) -> Iterator[dict]:
    dataset = layout.datasets[0].name
    here = tables["contrasts"].filter(backbone=backbone.name, dataset=dataset, split="test")
    values = here.filter(pl.col("contrast").is_null()).to_dicts()
    differences = here.filter(pl.col("contrast").is_not_null()).to_dicts()
    limits: list[dict] = []
    if (known := tables.get("difficulty")) is not None:
        of_images = known.filter(backbone=backbone.name, dataset=dataset, reading="own", metric="auroc")
        limits = of_images.filter(pl.col("method").is_null()).to_dicts()
    yield from rows_of(
        values,
        differences,
        {method.name: method.label for method in layout.methods},
        limit=limits[0] if limits else None,
        **{"study": layout.study, "backbone": backbone.name, "dataset": dataset},
    )


def title(backbone: Labeled, layout: FigureLayout, values: pl.DataFrame) -> str:
    """Return the title of a page: the backbone, the data set, and over how many seeds values are means."""
    seeds = values.filter(backbone=backbone.name)["n_seeds"].max()
    runs = f"mean over {seeds} seeds" if isinstance(seeds, int) and seeds > 1 else "one run"
    return f"{backbone.label}, {layout.datasets[0].label}, {runs}"


def page(values: pl.DataFrame, title: str, *, ends: tuple[float, float], units: str = "images") -> Figure:
    """Return a plot of the rows of `VALUES` of one backbone, or of anybody's table, on axes between `ends`.

    The intervals are over other `units`.
    """
    labels = list(dict.fromkeys(values.filter(role=METHOD)["label"]))
    measures = [metric for metric in MEASURES if metric in set(values.filter(role=METHOD)["metric"])]
    figure = Figure(figsize=(TEXT_WIDTH, 0.19 * len(labels) + 1.75), layout=ConstrainedLayoutEngine(w_pad=0.08))
    figure.supxlabel(_reading(values, units), fontsize=5, parse_math=False)
    nulls = list(dict.fromkeys(values.filter(role=NULL)["label"]))
    grid = figure.subplots(1, max(len(measures), 1), squeeze=False, sharey=True)[0]
    for axes, metric in zip(grid, measures, strict=False):
        _panel(axes, values.filter(metric=metric), labels, nulls)
        axes.set(title=MEASURES[metric], xlim=ends, ylim=(len(labels) - 0.5, -0.5))
    grid[0].set_yticks(range(len(labels)))
    grid[0].set_yticklabels([textwrap.shorten(label, 40, placeholder="...") for label in labels], parse_math=False)
    legend = figure.legend(handles=list(_legend(values, nulls)), loc="outside upper center", ncols=3, title=title)
    legend.get_title().set(fontweight="bold", fontsize=8, parse_math=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _panel(axes: Axes, values: pl.DataFrame, labels: Sequence[str], nulls: Sequence[str]) -> None:
    axes.tick_params(axis="y", length=0)
    axes.axvline(CHANCE, color="0.8", linewidth=0.6, zorder=0)
    for row in values.filter(pl.col("estimate").is_not_null()).iter_rows(named=True):
        if row["role"] == LIMIT:
            axes.axvline(row["estimate"], color=_DARK, linewidth=0.9, linestyle=":", zorder=1)
        elif row["role"] == NULL:
            style = _band(nulls.index(row["label"]))
            axes.axvline(row["estimate"], color=style["edgecolor"], linewidth=0.8, zorder=1)
            if row["low"] is not None:
                axes.axvspan(row["low"], row["high"], zorder=0, **style)
        else:
            _method(axes, row, labels.index(row["label"]))
    for row in values.filter(pl.col("estimate").is_null(), role=METHOD).iter_rows(named=True):
        place = (0.02, labels.index(row["label"]))
        axes.annotate("undefined", place, xycoords=("axes fraction", "data"), va="center", fontsize=5, color=_PALE)


def _method(axes: Axes, row: Mapping, place: int) -> None:
    color = _PALE if row["short"] else _BLUE if row["above"] else _DARK
    if row["low_retrained"] is not None:
        axes.hlines(place, row["low_retrained"], row["high_retrained"], color=color, linewidth=0.6, zorder=2)
    if row["low"] is not None:
        axes.hlines(place, row["low"], row["high"], color=color, linewidth=1.8, zorder=3)
    face = color if row["above"] else "white"
    axes.plot([row["estimate"]], [place], "o", color=color, markerfacecolor=face, markersize=4.5, zorder=4)
    if row["short"]:
        axes.annotate("†", (row["estimate"], place), (0, 3), textcoords="offset points", ha="center", color=color)


def _band(k: int) -> dict:
    color, hatch = _BANDS[k % len(_BANDS)], _HATCHES[k % len(_HATCHES)]
    return {"facecolor": (*_rgb(color), 0.18), "edgecolor": (*_rgb(color), 0.7), "hatch": hatch, "linewidth": 0}


def _rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def _legend(values: pl.DataFrame, nulls: Sequence[str]) -> Iterator[Line2D | Patch]:
    yield Line2D([], [], color=_BLUE, marker="o", markersize=4.5, linestyle="", label=filled_means(nulls))
    hollow = {"markerfacecolor": "white", "markersize": 4.5, "linestyle": ""}
    yield Line2D([], [], color=_DARK, marker="o", label="not shown to be", **hollow)
    for k, null in enumerate(nulls):
        yield Patch(label=f"{null} (null)", **_band(k))
    if not values.filter(role=LIMIT).is_empty():
        yield Line2D([], [], color=_DARK, linestyle=":", label=LIMIT_LABEL)


def _reading(values: pl.DataFrame, units: str) -> str:
    """Return what is said below the plot, of what it shows."""
    shown = {
        "dot": True,
        "retrained": values["low_retrained"].count() > 0 and values["n_seeds"].count() > 0,
        "groups": values["low_retrained"].count() > 0 and values["n_seeds"].count() == 0,
        "few": values["short"].count() > 0,
        "nulls": not values.filter(role=NULL).is_empty(),
        "limit": not values.filter(role=LIMIT).is_empty(),
        "ccg": "natural_ccg_auc" in values["metric"],
        "adjusted": not values.filter(role=NULL).is_empty(),
    }
    return textwrap.fill(" ".join(text for name, text in says(units).items() if shown[name]), 170)
