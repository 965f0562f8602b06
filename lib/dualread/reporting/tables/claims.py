"""Claims of reports: how well methods tell supported claims from others, and whether that comes from the image.

This table is not in the paper. Per data set of reports, the number of claims and of those without a label, which no
other number counts; then each method's AUROC, Brier score and Forced CCG-AUC, with its control; and what certified
filters, chosen on the validation reports, keep of each report.
"""

from dualread.evaluation.answer_metrics import ACCURACY, AUROC, BRIER
from dualread.evaluation.claim_filter import LOSSES, filter_metric
from dualread.evaluation.controls import FIXED_PREFIX_CCG_AUC, REPORT_COUNTS, SUPPORTED_ON_BOTH_CCG_AUC
from dualread.evaluation.metric import Metric
from dualread.evaluation.metrics.risk_control import DELTA
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import DITTO, Over, TableRow, TwoLines

_KEPT = "filter_share_kept_at_risk_"
_HEADS = {"kept": "Kept↑", "unsupported": "Unsup.↓", "none_kept": "Empty↓"}


def _filters(at: sheet.RowContext) -> list[sheet.SheetColumn]:
    """Return the columns of the target risks that the values have filters for."""
    return [
        sheet.SheetColumn(
            head,
            [Metric(name=filter_metric(loss, kind, percent)) for loss in LOSSES],
            title=f"Filter, {percent}%",
            form=TwoLines,
        )
        for percent in sheet.target_percents(at.values, _KEPT)
        for kind, head in _HEADS.items()
    ]


def _caption(at: sheet.RowContext) -> list[str]:
    return [
        f"Claims of reports by {at.backbone.label}, study {at.layout.study}.",
        "Reports, and those without a claim (None); claims, and those without a label, which are in no other column. "
        "Acc.: share of labeled claims that the reference supports.",
        "Fixed prefix: of claims that are supported on the source image and not on the donor's, on which the same "
        "report is forced, the share with more confidence on the source image. Both: the same share of claims that are "
        "supported on both images.",
        "Filter: of each report, the claims are kept that have at least the confidence for which it is shown on "
        "validation reports that the mean loss of new reports of the same source does not exceed the target, wrongly "
        f"in at most {100 * DELTA:g}% of validation sets, for each method, loss and target by itself; a dash where "
        "there is none. The loss of a report is the share of unsupported claims among those that are kept (top), or 1 "
        "if any of these is unsupported (bottom). Kept: share of claims. Unsup.: share of these that are unsupported. "
        "Empty: share of reports of which none is kept.",
        f"{DITTO}: the same answers as in the row above.",
        f"{sheet.SPREAD}. Ties count one half: .500 means no response.",
    ]


build = sheet.Sheet(
    name="claims",
    floats=sheet.backbones,
    label=lambda at: at.backbone.name,
    rows=[sheet.DATASETS, sheet.METHODS],
    columns=lambda at: [
        *sheet.columns_here(list(REPORT_COUNTS.values()), "Reports and claims"),
        *sheet.columns_here([ACCURACY, AUROC, BRIER], "Labeled claims"),
        *sheet.columns_here([FIXED_PREFIX_CCG_AUC, SUPPORTED_ON_BOTH_CCG_AUC], "CCG-AUC"),
        *_filters(at),
    ],
    caption=_caption,
    head=lambda at, labels, columns: [
        *sheet.head_of(at, labels, columns),
        *([TableRow(["", Over("Filter: share (top); any (bottom)", len(columns))])] if _filters(at) else []),
    ],
    small=True,
    shared=[*REPORT_COUNTS.values(), ACCURACY],
)
