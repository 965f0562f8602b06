"""Paired contrasts: differences between two methods, with intervals over the same resamples of the images.

The paper's Table paired (DualRead minus RLCR in and out of distribution, P-Visual minus P-State on validation), with
the intervals that the paper leaves out, and every other contrast of the study. The paper prints DualRead's lower Brier
score as a positive difference; here every difference is method minus baseline.
"""

from collections.abc import Mapping

import polars as pl

from dualread.reporting.tables._contrasts import (
    TWO_WAY,
    ContrastRow,
    Difference,
    Key,
    by_key,
    csv_rows,
    dataset_of,
    interval_cell,
    notes,
    places,
)
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Float, Gap, Heading, Line, Row
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.format import DASH, number, signed
from dualread.specs.tables import Dataset, Layout

READS = "contrasts"
_METRICS = {
    "auroc": r"$\Delta$AUROC$\uparrow$",
    "brier": r"$\Delta$Brier$\downarrow$",
    "natural_ccg_auc": r"$\Delta$Natural CCG$\uparrow$",
    "strict_ccg_auc": r"$\Delta$Strict CCG$\uparrow$",
}


def build(contrasts: pl.DataFrame, layout: Layout) -> Table:
    """Return the table of the contrasts that `layout` names, from a contrasts table."""
    rows = by_key(contrasts)
    body: list[Line] = []
    printed: list[Difference] = []
    for backbone in layout.backbones:
        body += [*([Gap.RULE] if body else []), Heading(backbone.label, 1 + len(_METRICS))]
        for name in layout.contrasts:
            for place in places(layout):
                lines, cells = _lines(rows, backbone.name, name, layout, place)
                body += lines
                printed += cells
    return Table(
        floats=[
            Float(
                name="paired",
                wide=True,
                columns="l" + "c" * len(_METRICS),
                head=[Row(["Method $-$ baseline", *_METRICS.values()])],
                body=body,
                caption=" ".join([*_caption(layout), *notes(printed, "paired")]),
            )
        ],
        cells=csv_rows("paired", printed),
    )


def _lines(
    rows: Mapping[Key, ContrastRow], backbone: str, name: str, layout: Layout, place: Dataset | None
) -> tuple[list[Line], list[Difference]]:
    """Return the lines of a contrast at one place, and its cells; nothing where the study does not compute it there."""
    asked = {
        key.metric: found
        for key, found in rows.items()
        if (key.backbone, key.contrast) == (backbone, name)
        and key.metric.removesuffix("_two_way") in _METRICS
        and key.dataset == dataset_of(place, key.metric)
    }
    if not asked:
        return [], []
    one_way = {metric: asked[metric] for metric in _METRICS if metric in asked}
    points = {metric: _point(found) for metric, found in one_way.items()}
    intervals = {metric: interval_cell(found) for metric, found in one_way.items()}
    defined = [metric for metric, found in one_way.items() if found["estimate"] is not None]
    two_way = {m: interval_cell(asked[other]) for m, other in TWO_WAY.items() if m in defined and other in asked}
    labels = (_label(next(iter(asked.values())), layout, place), r"\quad 95\% interval", r"\quad donors resampled too")
    lines = [
        Row([label, *(cells[metric].entry if metric in cells else "" for metric in _METRICS)])
        for label, cells in zip(labels, (points, intervals, two_way), strict=True)
        if cells
    ]
    cells = [
        cell if cell.printed == DASH else cell._replace(printed=f"{cell.printed} {intervals[metric].printed}")
        for metric, cell in points.items()
    ]
    return [Gap.SPACE, *lines], [*cells, *two_way.values()]


def _label(found: ContrastRow, layout: Layout, place: Dataset | None) -> str:
    labels = {method.name: method.label for method in layout.methods}
    method, baseline = (escape(str(labels.get(found[name], found[name]))) for name in ("method", "baseline"))
    where = place.label if place else "OOD"
    return f"{method} $-$ {baseline} ({escape(where if found['split'] == 'test' else found['split'])})"


def _point(found: ContrastRow) -> Difference:
    if found["estimate"] is None:
        return Difference(found, DASH, DASH)
    text = signed(found["estimate"])
    spread = "" if found["seed_std"] is None else number(found["seed_std"])
    tex = f"{text}_{{\\pm{spread}}}" if spread else text
    plain = f"{text}±{spread}" if spread else text
    weak = found["underpowered"]
    return Difference(found, f"${tex}{{}}^{{\\dagger}}$" if weak else f"${tex}$", f"{plain}†" if weak else plain)


def _caption(layout: Layout) -> list[str]:
    return [
        f"Paired contrasts, study {escape(layout.study)}: method minus baseline, so a negative difference in Brier is "
        "an improvement.",
        "Mean over seeds, with the sample standard deviation of the seeds' differences as subscript where there are "
        r"several; below it, the 95\% percentile interval of that mean over resamples of the images, which both "
        "methods share.",
        "Donors resampled too: the interval of a CCG-AUC difference if donor images are resampled as well, "
        "independently of the source images.",
        "OOD: means over data sets with equal weight; each data set is resampled independently.",
    ]
