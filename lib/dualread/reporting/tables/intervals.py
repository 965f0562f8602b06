"""Every method's mean over seeds, with its confidence interval over test images.

Not in the paper, which prints the spread over seeds alone. One float per backbone and data set.
"""

import polars as pl

from dualread.declared.tables import LabeledBackbone, LabeledDataset, Layout
from dualread.reporting.tables._captions import CE2, INTERVALS
from dualread.reporting.tables._contrasts import (
    ContrastRow,
    Difference,
    Key,
    by_key,
    csv_rows,
    dataset_of,
    interval_cell,
    line,
    notes,
    places,
    short_sides,
)
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Float, Line, Row
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.format import DASH, dagger, number, tex_dagger

READS = "contrasts"
_HEADERS = {
    "auroc": r"AUROC$\uparrow$",
    "brier": r"Brier$\downarrow$",
    "squared_calibration_error": r"CE$^2\downarrow$",
    "natural_ccg_auc": r"Natural CCG$\uparrow$",
    "strict_ccg_auc": r"Strict CCG$\uparrow$",
}
_ALONE = "Only the interval is printed where the decisive pairs have fewer than 30 distinct source or donor images."


def build(contrasts: pl.DataFrame, layout: Layout) -> Table:
    """Return the intervals of every method, from a contrasts table."""
    rows = by_key(contrasts)
    floats, printed = [], []
    for backbone in layout.backbones:
        for place in places(layout):
            body, cells = [], []
            for method in layout.methods:
                keys = [
                    Key(backbone.name, None, dataset_of(place, metric), metric, method.name, None)
                    for metric in _HEADERS
                ]
                of_method = [_cell(rows[key], place) if key in rows else None for key in keys]
                body.append(line(escape(method.label), of_method))
                cells += filter(None, of_method)
            floats.append(_float(layout, backbone, place, body, cells))
            printed += cells
    return Table(floats=floats, cells=csv_rows("intervals", printed))


def _cell(found: ContrastRow, place: LabeledDataset | None) -> Difference:
    """Return value and interval; only the interval where images are too few."""
    if found["estimate"] is None:
        return Difference(found, DASH, DASH)
    short = short_sides(found)
    if short and place:
        return interval_cell(found)
    interval, value = interval_cell(found), number(found["estimate"])
    return Difference(
        found, f"${value}{tex_dagger(short)}$~{interval.entry}", f"{value}{dagger(short)} {interval.printed}"
    )


def _float(
    layout: Layout, backbone: LabeledBackbone, place: LabeledDataset | None, body: list[Line], cells: list[Difference]
) -> Float:
    where = place.label if place else "OOD (means with equal weight over data sets)"
    caption = [
        f"Intervals of {escape(backbone.label)}, {escape(where)}, study {escape(layout.study)}.",
        r"Mean over seeds and, in brackets, the 95\% interval of that mean over other images, for these seeds.",
        INTERVALS,
        CE2,
        *([_ALONE] if place and any(cell.row["short"] for cell in cells) else []),
        *notes(cells, "intervals"),
    ]
    return Float(
        name="intervals",
        label=f"intervals:{backbone.name}:{place.name if place else 'ood'}",
        wide=True,
        columns="l" + "c" * len(_HEADERS),
        head=[Row(["Method", *_HEADERS.values()])],
        body=body,
        caption=" ".join(caption),
    )
