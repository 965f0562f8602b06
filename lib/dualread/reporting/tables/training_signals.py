"""What training signals do to confidences: those that are stated, of a head on the states, and of readers fitted anew.

Not in the paper. In distribution, for actors that were trained with different signals (`training/state_signal.py`): do
confidences collapse to few values, do they follow the image, and does the signal change the answers?
"""

from dualread.evaluation.answer_metrics import ACCURACY, AUROC, BRIER, CONFIDENCE_ENTROPY, ECE, UNIQUE_CONFIDENCES
from dualread.evaluation.conditions import ANSWERS_CHANGED
from dualread.evaluation.explained import CAPTIONS
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC, STRICT_CCG_AUC
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import DITTO, Gap

_OF_ACTOR = [ACCURACY, ANSWERS_CHANGED]

build = sheet.Sheet(
    name="training_signals",
    rows=[
        sheet.BACKBONES,
        sheet.RowLevel(sheet.groups, [sheet.Label("Training", lambda at: at.method.group)], gap=Gap.SPACE),
        sheet.METHODS,
    ],
    columns=lambda at: [
        *sheet.columns_here(_OF_ACTOR, "Answers"),
        *sheet.columns_here([AUROC, ECE, BRIER], "Confidence"),
        *sheet.columns_here([UNIQUE_CONFIDENCES, CONFIDENCE_ENTROPY], "Support"),
        *sheet.columns_here({NATURAL_CCG_AUC: "Natural", STRICT_CCG_AUC: "Strict"}, "CCG-AUC"),
    ],
    caption=lambda at: [
        f"Training signals and confidences on {at.dataset.label}, study {at.layout.study}.",
        "Changed: share of answers that differ from those of the actor that the study compares with, of the same seed. "
        "Support: number of different valid confidences (Unique), and their entropy in bits.",
        f"{DITTO}: the same answers as in the row above.",
        f"{sheet.SPREAD}. Bold: best printed value per column and backbone.",
        CAPTIONS[NATURAL_CCG_AUC.name],
        "With tiny models and few steps, this is a finding about the software, and not about training signals.",
    ],
    shared=_OF_ACTOR,
    small=True,
)
