"""Readers elsewhere: a reader that was fitted on another actor, or another seed, beside the one that is fitted here.

Not in the paper. A method with `transfer` applies a reader to the answers of an actor on which it was not fitted, such
as that of the base model to the answers of the actor that was trained from it.
"""

from dualread.evaluation.answer_metrics import AUROC, BRIER, ECE
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.reporting.tables import _sheet as sheet

_FITTED_ON = sheet.Label("Fitted on", lambda at: at.method.transfer or "these answers")

build = sheet.Sheet(
    name="transfer",
    rows=[sheet.BACKBONES, sheet.RowLevel(sheet.methods, [sheet.METHOD, _FITTED_ON])],
    columns=lambda at: sheet.columns_of([at.layout.id_dataset, sheet.OOD], [AUROC, BRIER, ECE, NATURAL_CCG_AUC]),
    caption=lambda at: [
        f"Readers on the answers of actors on which they were not fitted, study {at.layout.study}.",
        "Transfer: weights and calibration are those of the other fit; nothing was fitted on the actor that is judged.",
        f"{sheet.SPREAD}. {sheet.OUT_OF_DISTRIBUTION}",
    ],
    small=True,
)
