"""The component ablation: what pre-answer state, answer state and visual evidence add to each other.

Reproduces the layout of the paper's Table cascade: in-distribution AUROC, Brier score and Natural CCG-AUC.
"""

from dualread.evaluation.answer_metrics import AUROC, BRIER
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import Gap

_METRICS = [AUROC, BRIER, NATURAL_CCG_AUC]


def _component(head: str, reader: str) -> sheet.Label:
    """Return a column of marks: a method has the component that its reader is, and those that it builds on."""

    def mark(at: sheet.RowContext) -> str:
        return "✓" if reader in at.method.readers else "×"

    return sheet.Label(head, mark, "c", "Components")


build = sheet.Sheet(
    name="cascade",
    rows=[
        sheet.BACKBONES._replace(gap=Gap.SPACE),
        sheet.RowLevel(
            sheet.methods,
            [
                sheet.METHOD._replace(head="Variant"),
                _component("PSR", "psr"),
                _component("State", "p_state"),
                _component("Visual", "p_visual"),
            ],
        ),
    ],
    columns=lambda at: sheet.columns_here(_METRICS),
    caption=lambda at: [
        f"Component ablation on {at.dataset.label}, study {at.layout.study}.",
        "PSR reads the hidden state before the answer, P-State the hidden state after it, P-Visual the visual "
        "evidence. PER combines P-State and P-Visual; DualRead combines PER and PSR. CCG-AUC: Natural.",
        f"{sheet.SPREAD}. Bold: best printed value per column and backbone.",
    ],
    wide=False,
)
