"""Methods of the field that the paper lacks, beside what they build on and ours, on the answers of one actor.

Not in the paper. Its rows and columns are those of the table `estimators`.
"""

from dataclasses import replace

from dualread.evaluation.explained import CAPTIONS
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.reporting.tables._sheet import NOTATION, OUT_OF_DISTRIBUTION, SPREAD
from dualread.reporting.tables.estimators import build as estimators

build = replace(
    estimators,
    name="field",
    caption=lambda at: [
        f"Methods of the field, what they build on, and ours, study {at.layout.study}.",
        NOTATION,
        "RadFlag and VASE group samples by their canonical answers. VAUQ is the entropy of the answer, less a multiple "
        "of what hiding the part of the image adds to it that the answer attends to. HAC lowers a confidence where a "
        "hallucination score is high. Isotonic regression, histogram binning and HAC are fitted on validation answers.",
        f"{SPREAD}. {OUT_OF_DISTRIBUTION} Bold: best printed value per column and backbone.",
        CAPTIONS[NATURAL_CCG_AUC.name],
    ],
)
