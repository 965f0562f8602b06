r"""Estimators of other packages beside our methods, on the answers of one actor.

Not in the paper. In distribution and out of it, how well a confidence ranks answers (AUROC), how close it is to the
share of right answers (Brier), and whether it follows the image (Natural CCG-AUC). The confidences of other packages'
estimators are Platt maps of their negative uncertainties.
"""

from dualread.evaluation.answer_metrics import AUROC, BRIER
from dualread.evaluation.explained import CAPTIONS
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import Gap

_METRICS = [AUROC, BRIER, NATURAL_CCG_AUC]

build = sheet.Sheet(
    name="estimators",
    rows=[
        sheet.BACKBONES._replace(gap=Gap.SPACE),
        sheet.RowLevel(sheet.methods, [sheet.METHOD, sheet.COST, sheet.Label("Group", lambda at: at.method.group)]),
    ],
    columns=lambda at: sheet.columns_of([at.layout.id_dataset, sheet.OOD], [*_METRICS, *sheet.further(at.values)]),
    caption=lambda at: [
        f"Estimators of other packages and our methods on the same answers, study {at.layout.study}.",
        sheet.NOTATION,
        "The confidence of an estimator that gives an uncertainty is a Platt map of its negative value.",
        f"{sheet.SPREAD}. {sheet.OUT_OF_DISTRIBUTION} Bold: best printed value per column and backbone.",
        CAPTIONS[NATURAL_CCG_AUC.name],
    ],
)
