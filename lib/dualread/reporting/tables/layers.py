"""Probes of several layers, on the answers of one actor.

Not in the paper. Its rows and columns are those of the table `estimators`.
"""

from dataclasses import replace

from dualread.evaluation.explained import CAPTIONS
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.reporting.tables._sheet import NOTATION, OUT_OF_DISTRIBUTION, SPREAD
from dualread.reporting.tables.estimators import build as estimators

build = replace(
    estimators,
    name="layers",
    caption=lambda at: [
        f"Linear probes of the answer's states in several layers, study {at.layout.study}.",
        NOTATION,
        f"{SPREAD}. {OUT_OF_DISTRIBUTION} Bold: best printed value per column and backbone.",
        CAPTIONS[NATURAL_CCG_AUC.name],
    ],
)
