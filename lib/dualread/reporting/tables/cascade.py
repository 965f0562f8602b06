"""The component ablation: what pre-answer state, answer state and visual evidence add to each other.

Reproduces the layout of the paper's Table cascade: in-distribution AUROC, Brier score and Natural CCG-AUC.
"""

from collections.abc import Mapping

from dualread.declared.tables import LabeledMethod, Layout
from dualread.reporting.tables._blocks import Column, block, finished, headed, stacked
from dualread.reporting.tables._captions import SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Gap, Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

# The readers that the paper combines. A method has the component that its reader is, and those that it builds on.
COMPONENTS = {"PSR": "psr", "State": "p_state", "Visual": "p_visual"}
_METRICS = {"auroc": r"AUROC$\uparrow$", "brier": r"Brier$\downarrow$", "natural_ccg_auc": r"CCG-AUC$\uparrow$"}
N_COLUMNS = 1 + len(COMPONENTS) + len(_METRICS)


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the component ablation of `values`, ours or the published ones."""
    columns = [Column(layout.id_dataset.name, metric) for metric in _METRICS]
    blocks = (
        headed(backbone.label, N_COLUMNS, block(values, backbone, layout.methods, columns, labels=_labels))
        for backbone in layout.backbones
    )
    return finished(
        "cascade",
        stacked(blocks, Gap.SPACE),
        wide=False,
        columns="l" + "c" * (N_COLUMNS - 1),
        head=[spanning(1, [("Components", len(COMPONENTS))]), Row(["Variant", *COMPONENTS, *_METRICS.values()])],
        caption=[
            f"Component ablation on {escape(layout.id_dataset.label)}, study {escape(layout.study)}.",
            "PSR reads the hidden state before the answer, P-State the hidden state after it, P-Visual the visual "
            "evidence. PER combines P-State and P-Visual; DualRead combines PER and PSR. CCG-AUC: Natural.",
            f"{SPREAD}. Bold: best printed value per column and backbone.",
        ],
    )


def _labels(method: LabeledMethod) -> list[str]:
    # \surd, because \checkmark would need amssymb.
    marks = [r"$\surd$" if reader in method.readers else r"$\times$" for reader in COMPONENTS.values()]
    return [escape(method.label), *marks]
