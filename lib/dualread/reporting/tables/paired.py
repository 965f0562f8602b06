"""Paired contrasts: differences between two methods, with intervals over the same resamples of the images.

The paper's Table paired (DualRead minus RLCR in and out of distribution, P-Visual minus P-State on validation), with
the intervals that the paper leaves out, and every other contrast of the study. The paper prints DualRead's lower Brier
score as a positive difference; here every difference is method minus baseline.
"""

from collections.abc import Mapping

import polars as pl

from dualread.declared.tables import LabeledDataset, Layout
from dualread.reporting.tables._captions import INTERVALS
from dualread.reporting.tables._contrasts import (
    ContrastRow,
    Difference,
    Key,
    by_key,
    csv_rows,
    dataset_of,
    interval_cell,
    notes,
    places,
    retrained_cell,
    short_sides,
)
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Float, Gap, Heading, Line, Row
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.format import DASH, dagger, number, signed, tex_dagger

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
    rows: Mapping[Key, ContrastRow], backbone: str, name: str, layout: Layout, place: LabeledDataset | None
) -> tuple[list[Line], list[Difference]]:
    """Return the lines of a contrast at one place, and its cells; nothing where the study does not compute it there."""
    found_by = {
        key.metric: found
        for key, found in rows.items()
        if (key.backbone, key.contrast) == (backbone, name)
        and key.metric in _METRICS
        and key.dataset == dataset_of(place, key.metric)
    }
    asked = {metric: found_by[metric] for metric in _METRICS if metric in found_by}
    if not asked:
        return [], []
    points = {metric: _point(found) for metric, found in asked.items()}
    intervals = {metric: interval_cell(found) for metric, found in asked.items()}
    labels = (_label(next(iter(asked.values())), layout, place), r"\quad 95\% interval, these seeds")
    lines = [
        Row([label, *(cells[metric].entry if metric in cells else "" for metric in _METRICS)])
        for label, cells in zip(labels, (points, intervals), strict=True)
    ]
    retrained = {metric: retrained_cell(found) for metric, found in asked.items()}
    shown = {metric: cell.entry for metric, cell in retrained.items() if cell.printed != DASH}
    if shown:
        lines.append(Row([r"\quad retrained actors", *(shown.get(metric, "") for metric in _METRICS)]))
    cells = [
        cell if cell.printed == DASH else cell._replace(printed=_together(cell, intervals[metric], retrained[metric]))
        for metric, cell in points.items()
    ]
    return [Gap.SPACE, *lines], cells


def _together(point: Difference, interval: Difference, retrained: Difference) -> str:
    """Return the value with its interval for these seeds and, if there is one, that for retrained actors."""
    shown = [point, interval, *([] if retrained.printed == DASH else [retrained])]
    return " ".join(cell.printed for cell in shown)


def _label(found: ContrastRow, layout: Layout, place: LabeledDataset | None) -> str:
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
    short = short_sides(found)
    return Difference(found, f"${tex}{tex_dagger(short)}$", f"{plain}{dagger(short)}")


def _caption(layout: Layout) -> list[str]:
    return [
        f"Paired contrasts, study {escape(layout.study)}: method minus baseline, so a negative difference in Brier is "
        "an improvement.",
        "Mean over seeds, with the sample standard deviation of the seeds' differences as subscript where there are "
        r"several; below it, the 95\% interval of that mean over other images, on which both methods are judged, for "
        "these seeds.",
        "Retrained actors: the interval over other images and other seeds.",
        INTERVALS,
        "OOD: means over data sets with equal weight.",
    ]
