"""Grounding domain by domain: Natural and Strict CCG-AUC of every data set with same-question donors.

Reproduces the layout of the paper's Table ccg_ood (part a of its grounding evidence). It shows the
out-of-distribution data sets of the layout; where there are none, the in-distribution one.
"""

from dualread.evaluation.explained import CAPTIONS
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC, STRICT_CCG_AUC
from dualread.reporting.tables._sheet import BACKBONES, METHODS, SPREAD, Sheet, columns_of

_METRICS = {NATURAL_CCG_AUC: "Nat.", STRICT_CCG_AUC: None}

build = Sheet(
    name="ccg_ood",
    rows=[BACKBONES, METHODS],
    columns=lambda at: columns_of(
        [dataset for dataset in at.layout.datasets if not dataset.id] or [at.layout.id_dataset], _METRICS
    ),
    caption=lambda at: [
        f"CCG-AUC of each data set, Natural (Nat.) and Strict, study {at.layout.study}.",
        CAPTIONS[NATURAL_CCG_AUC.name],
        f"{SPREAD}. Bold: best printed value per column and backbone; nulls are never bold.",
    ],
)
