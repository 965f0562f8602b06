"""Paired contrasts: differences between two methods, with intervals over the same resamples of the images.

The paper's Table paired (DualRead minus RLCR in and out of distribution, P-Visual minus P-State on validation), with
the intervals that the paper leaves out, and every other contrast of the study. The paper prints DualRead's lower Brier
score as a positive difference; here every difference is method minus baseline.
"""

from collections.abc import Iterable, Mapping

from dualread.evaluation.answer_metrics import AUROC, BRIER
from dualread.evaluation.metric import Metric
from dualread.reporting.tables._sheet import INTERVALS, OOD, dataset_of, further, places
from dualread.reporting.tables.cells import CONTRASTS_CSV, Cell, PrintedTable, csv_rows, notes, on_donors
from dualread.reporting.tables.entries import DASH, INDENT, Float, Gap, Heading, Joined, Line, TableRow
from dualread.reporting.tables.values import Key, Value, limits, printed
from dualread.schema.tables import LabeledDataset, Layout

READS = "contrasts"


def build(values: Mapping[Key, Value], layout: Layout) -> PrintedTable:
    """Return the table of the contrasts that `layout` names. It is no sheet: one contrast has two or three rows."""
    of_pairs = on_donors(values, "Natural CCG", "Strict CCG")
    metrics = dict.fromkeys((AUROC, BRIER)) | of_pairs | dict.fromkeys(further(values))
    metrics = {metric: f"Δ{head or metric.head}" for metric, head in metrics.items()}
    body: list[Line] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        body += [*([Gap.RULE] if body else []), Heading(backbone.label, 1 + len(metrics))]
        for name in layout.contrasts:
            for place in places(layout):
                asked = {
                    metric: (key, value)
                    for metric in metrics
                    for key, value in values.items()
                    if (key.backbone, key.contrast) == (backbone.name, name)
                    and (key.dataset, key.metric) == (dataset_of(place, metric), metric.name)
                }
                if asked:
                    lines, cells = _of_contrast(asked, metrics, layout, place)
                    body += [Gap.SPACE, *lines]
                    printed += cells
    return PrintedTable(
        floats=[
            Float(
                name="paired",
                wide=True,
                columns="l" + "c" * len(metrics),
                head=[TableRow(["Method − baseline", *(metric.headed(head) for metric, head in metrics.items())])],
                body=body,
                caption=layout.in_units(" ".join([*_caption(layout), *notes(printed, layout, "paired")])),
            )
        ],
        cells=csv_rows("paired", printed, CONTRASTS_CSV),
    )


def _of_contrast(
    asked: Mapping[Metric, tuple[Key, Value]], metrics: Iterable[Metric], layout: Layout, place: LabeledDataset
) -> tuple[list[TableRow], list[Cell]]:
    """Return the rows of a contrast at one place: the differences, their intervals, and those of retrained actors."""
    points = {metric: printed(value, sign=True) for metric, (_, value) in asked.items()}
    intervals = {metric: limits(value) for metric, (_, value) in asked.items()}
    retrained = {metric: limits(value, "_retrained") for metric, (_, value) in asked.items()}
    retrained = {metric: interval for metric, interval in retrained.items() if interval != DASH}
    rows = [(_label(next(iter(asked.values())), layout, place), points)]
    rows += [(f"{INDENT}95% interval, these seeds", intervals)]
    rows += [(f"{INDENT}retrained actors", retrained)] if retrained else []
    cells = []
    for metric, (key, value) in asked.items():
        more = [" ", retrained[metric]] if metric in retrained else []
        entry = DASH if points[metric] == DASH else Joined([points[metric], " ", intervals[metric], *more])
        cells.append(Cell(key, value, entry))
    return [TableRow([label, *(shown.get(metric, "") for metric in metrics)]) for label, shown in rows], cells


def _label(entry: tuple[Key, Value], layout: Layout, place: LabeledDataset) -> str:
    (key, value), labels = entry, {method.name: method.label for method in layout.methods}
    method, baseline = (str(labels.get(name or "", name)) for name in (key.method, key.baseline))
    where = "OOD" if place is OOD else place.label
    split = value.row["split"]
    return f"{method} − {baseline} ({where if split == 'test' else split})"


def _caption(layout: Layout) -> list[str]:
    return [
        f"Paired contrasts, study {layout.study}: method minus baseline, so a negative difference in Brier is "
        "an improvement.",
        "Mean over seeds, with the sample standard deviation of the seeds' differences as subscript where there are "
        "several; below it, the 95% interval of that mean over other {units}, on which both methods are judged, for "
        "these seeds.",
        "Retrained actors: the interval over other {units} and other seeds.",
        INTERVALS,
        "OOD: means over data sets with equal weight.",
    ]
