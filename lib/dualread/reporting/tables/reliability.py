"""Reliability by answer type: calibration and selective prediction on open and on closed questions.

Reproduces the layout of the paper's Table reliability for the data sets and methods that the layout lists.
"""

from dataclasses import replace

from dualread.evaluation.answer_metrics import ACCURACY, AURC, AUROC, BRIER, ECE, HCE
from dualread.evaluation.explained import CAPTIONS
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import Gap

_METRICS = {ACCURACY: "Acc", **dict.fromkeys((AUROC, ECE, BRIER, AURC, HCE))}


build = sheet.Sheet(
    name="reliability",
    rows=[
        sheet.RowLevel(
            lambda at: (replace(at, subset=subset) for subset in ("open", "closed")),
            heading=lambda at: f"{at.subset.capitalize()} questions",
            gap=Gap.RULE,
        ),
        sheet.RowLevel(sheet.backbones, [sheet.Label("Backbone", lambda at: at.backbone.label)], gap=Gap.SPACE),
        sheet.RowLevel(sheet.datasets, [sheet.Label("Dataset", lambda at: at.dataset.label)], gap=Gap.SMALL_SPACE),
        sheet.METHODS,
    ],
    columns=lambda at: sheet.columns_here(_METRICS),
    caption=lambda at: [
        f"Reliability by answer type, study {at.layout.study}.",
        f"{CAPTIONS[ECE.name]} {CAPTIONS[AURC.name]} {CAPTIONS[HCE.name]}",
        f"{sheet.SPREAD}. Bold: best printed value per data set and backbone; accuracy is never bold.",
    ],
    alignment="r",
)
