"""The component ablation: what pre-answer state, answer state and visual evidence add to each other.

Reproduces the layout of the paper's Table cascade: in-distribution AUROC, Brier score and Natural CCG-AUC.
"""

from dualread.evaluation.answer_metrics import AUROC, BRIER
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.reporting.tables._sheet import (
    BACKBONES,
    METHOD,
    SPREAD,
    Label,
    RowContext,
    RowLevel,
    Sheet,
    columns_here,
    methods,
)
from dualread.reporting.tables.entries import Gap

_METRICS = [AUROC, BRIER, NATURAL_CCG_AUC]


def _component(head: str, reader: str) -> Label:
    """Return a column of marks: a method has the component that its reader is, and those that it builds on."""

    def mark(at: RowContext) -> str:
        return "✓" if reader in at.method.readers else "×"

    return Label(head, mark, "c", "Components")


build = Sheet(
    name="cascade",
    rows=[
        BACKBONES._replace(gap=Gap.SPACE),
        RowLevel(
            methods,
            [
                METHOD._replace(head="Variant"),
                _component("PSR", "psr"),
                _component("State", "p_state"),
                _component("Visual", "p_visual"),
            ],
        ),
    ],
    columns=lambda at: columns_here(_METRICS),
    caption=lambda at: [
        f"Component ablation on {at.dataset.label}, study {at.layout.study}.",
        "PSR reads the hidden state before the answer, P-State the hidden state after it, P-Visual the visual "
        "evidence. PER combines P-State and P-Visual; DualRead combines PER and PSR. CCG-AUC: Natural.",
        f"{SPREAD}. Bold: best printed value per column and backbone.",
    ],
    wide=False,
)
