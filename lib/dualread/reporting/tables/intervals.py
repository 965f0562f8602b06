"""Every method's mean over seeds, with its confidence interval over test images.

Not in the paper, which prints the spread over seeds alone. One float per backbone and data set.
"""

from dataclasses import replace

from dualread.evaluation.answer_metrics import AUROC, BRIER, SQUARED_CALIBRATION_ERROR
from dualread.evaluation.controls import OF_FORCED_CLAIMS
from dualread.evaluation.explained import CAPTIONS
from dualread.evaluation.metric import Metric
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.cells import CONTRASTS_CSV, FORCED, Cell, on_donors
from dualread.reporting.tables.entries import DASH, Joined
from dualread.reporting.tables.values import Key, limits, printed

READS = "contrasts"
_ALONE = "Only the interval is printed where the decisive pairs have fewer than 30 distinct source or donor {units}."


def _metrics(at: sheet.RowContext) -> dict[Metric, str | None]:
    of_pairs = on_donors(at.values, "Natural CCG", "Strict CCG")
    return {**dict.fromkeys((AUROC, BRIER, SQUARED_CALIBRATION_ERROR)), **of_pairs}


def _cell(at: sheet.RowContext, _: Metric, key: Key) -> Cell | None:
    """Return value and interval; only the interval where images are too few; nothing where neither is computed."""
    if (value := at.values.get(key)) is None or value.mean is None:
        return value and Cell(key, value, DASH)
    if value.short and at.dataset is not sheet.OOD:
        return Cell(key, value, limits(value))
    mean = printed(replace(value, std=None))
    return Cell(key, value, Joined([mean, "\N{NO-BREAK SPACE}", limits(value)]))


def _caption(at: sheet.RowContext) -> list[str]:
    where = "OOD (means with equal weight over data sets)" if at.dataset is sheet.OOD else at.dataset.label
    keys = [row.key._replace(metric=metric.name) for row in sheet.methods(at) for metric in _metrics(at)]
    has_few = any(key in at.values and at.values[key].short for key in keys)
    return [
        f"Intervals of {at.backbone.label}, {where}, study {at.layout.study}.",
        "Mean over seeds and, in brackets, the 95% interval of that mean over other {units}, for these seeds.",
        sheet.INTERVALS,
        CAPTIONS[SQUARED_CALIBRATION_ERROR.name],
        *([FORCED] if set(OF_FORCED_CLAIMS) <= _metrics(at).keys() else []),
        *([_ALONE] if at.dataset is not sheet.OOD and has_few else []),
    ]


build = sheet.Sheet(
    name="intervals",
    floats=lambda at: (
        replace(block, dataset=place) for block in sheet.backbones(at) for place in sheet.places(at.layout)
    ),
    label=lambda at: f"{at.backbone.name}:{at.dataset.name}",
    rows=[sheet.METHODS],
    columns=lambda at: sheet.columns_here({**_metrics(at), **dict.fromkeys(sheet.further(at.values))}),
    caption=_caption,
    cell=_cell,
    csv=CONTRASTS_CSV,
)
