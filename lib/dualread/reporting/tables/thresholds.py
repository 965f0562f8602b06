"""Deployment: the confidence threshold for a target risk, and how many answers it keeps.

Not in the paper, which uses validation to choose deployable thresholds without printing any. Each target risk has a
threshold, chosen on validation, and its effect on data that did not choose it: the in-distribution test set, and the
equal-weight mean over OOD data sets. Each cell has two lines: the smallest threshold that reaches the target on the
validation answers, and below it the smallest one that is certified (`evaluation.metrics.risk_control`).
"""

from dualread.evaluation.metric import Metric
from dualread.evaluation.metrics.risk_control import DELTA
from dualread.evaluation.thresholds import RULES, metric_name
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import Gap, Over, TableRow, TwoLines

_THRESHOLD = "threshold_at_risk_"
_HEADS = {"threshold": "𝑐≥", "coverage": "Kept↑", "kept_risk": "Wrong↓"}


def _columns(at: sheet.RowContext) -> list[sheet.SheetColumn]:
    """Return the columns of the target risks that the values have thresholds for."""
    return [
        sheet.SheetColumn(
            _HEADS[kind],
            [Metric(name=metric_name(rule + kind, percent)) for rule in RULES],
            place=place,
            title=(f"Target risk {percent}%", place.label),
            form=TwoLines,
        )
        for percent in sheet.target_percents(at.values, _THRESHOLD)
        for place in (at.layout.id_dataset, sheet.OOD)
        for kind in _HEADS
        if (place, kind) != (sheet.OOD, "threshold")
    ]


def _caption(at: sheet.RowContext) -> list[str]:
    return [
        f"Answering only above a confidence threshold, study {at.layout.study}.",
        "For each target risk, 𝑐 is chosen on the validation answers of "
        f"{at.dataset.label.removesuffix('-test')}. Empirical: the smallest threshold for which the "
        "error rate of the answers with confidence at least 𝑐 does not exceed the target. Certified: the "
        "smallest one for which this is shown for new {units} of the same source, wrongly in at most "
        f"{100 * DELTA:g}% of validation sets, for each method and target by itself, and as long as no new {{unit}} "
        "has more questions than the validation {unit} with the most; a dash where there is none. Nothing is "
        "certified out of distribution. Kept: share of the test answers with confidence at least 𝑐. Wrong: error "
        "rate of these answers. Both have intervals, for new {units} and this threshold, in metrics.parquet and in "
        "the output of dualread explain.",
        f"{sheet.SPREAD}. {sheet.OUT_OF_DISTRIBUTION}",
    ]


build = sheet.Sheet(
    name="thresholds",
    rows=[sheet.BACKBONES, sheet.METHODS._replace(gap=Gap.SPACE)],
    columns=_columns,
    caption=_caption,
    head=lambda at, labels, columns: [
        *sheet.head_of(at, labels, columns),
        *([TableRow(["", Over("Empirical (top); certified (bottom)", len(columns))])] if columns else []),
    ],
)
