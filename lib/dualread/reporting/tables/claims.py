"""Claims of reports: how well methods tell supported claims from others, and whether that comes from the image.

This table is not in the paper. Per data set of reports, the number of claims and of those without a label, which no
other number counts; then each method's AUROC, Brier score and Forced CCG-AUC, with its control.
"""

from dualread.evaluation.answer_metrics import ACCURACY, AUROC, BRIER
from dualread.evaluation.controls import FIXED_PREFIX_CCG_AUC, REPORT_COUNTS, SUPPORTED_ON_BOTH_CCG_AUC
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import DITTO, Gap


def _caption(at: sheet.RowContext) -> list[str]:
    return [
        f"Claims of reports by {at.backbone.label}, study {at.layout.study}.",
        "Reports, and those without a claim (None); claims, and those without a label, which are in no other column. "
        "Acc.: share of labeled claims that the reference supports.",
        "Fixed prefix: of claims that are supported on the source image and not on the donor's, on which the same "
        "report is forced, the share with more confidence on the source image. Both: the same share of claims that are "
        "supported on both images.",
        f"{DITTO}: the same answers as in the row above.",
        f"{sheet.SPREAD}. Ties count one half: .500 means no response.",
    ]


build = sheet.Sheet(
    name="claims",
    floats=sheet.backbones,
    label=lambda at: at.backbone.name,
    rows=[
        sheet.RowLevel(sheet.datasets, heading=lambda at: f"{at.backbone.label}, {at.dataset.label}", gap=Gap.SPACE),
        sheet.METHODS,
    ],
    columns=lambda at: [
        *sheet.columns_here(list(REPORT_COUNTS.values()), "Reports and claims"),
        *sheet.columns_here([ACCURACY, AUROC, BRIER], "Labeled claims"),
        *sheet.columns_here([FIXED_PREFIX_CCG_AUC, SUPPORTED_ON_BOTH_CCG_AUC], "CCG-AUC"),
    ],
    caption=_caption,
    shared=[*REPORT_COUNTS.values(), ACCURACY],
)
