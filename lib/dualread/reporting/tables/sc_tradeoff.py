r"""Compute against reliability: what sampling many answers gains, and what one replay gains.

Reproduces the layout of the paper's Table sc_tradeoff: one block of rows per backbone and data set, with costs in
the paper's notation. Table costs has the measured costs.
"""

from dualread.evaluation.answer_metrics import AURC, AUROC, BRIER
from dualread.evaluation.explained import CAPTIONS
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import Gap

_METRICS = [AUROC, BRIER, AURC]


build = sheet.Sheet(
    name="sc_tradeoff",
    rows=[
        sheet.RowLevel(sheet.backbones, gap=Gap.RULE),
        sheet.RowLevel(
            sheet.datasets,
            heading=lambda at: f"{at.backbone.label}, {'ID' if at.dataset.id else 'OOD'}: {at.dataset.label}",
            gap=Gap.SPACE,
        ),
        sheet.METHODS._replace(labels=[sheet.METHOD, sheet.COST]),
    ],
    columns=lambda at: sheet.columns_here(_METRICS),
    caption=lambda at: [
        f"Compute and reliability, study {at.layout.study}.",
        sheet.NOTATION,
        f"{CAPTIONS[AURC.name]} ID and OOD: in and out of distribution.",
        f"{sheet.SPREAD}. Bold: best printed value per column and block.",
    ],
    wide=False,
)
