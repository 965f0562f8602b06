r"""Estimators of other packages beside our methods, on the answers of one actor.

Not in the paper. In distribution and out of it, how well a confidence ranks answers (AUROC), how close it is to the
share of right answers (Brier), and whether it follows the image (Natural CCG-AUC). The confidences of other packages'
estimators are Platt maps of their negative uncertainties.
"""

from collections.abc import Mapping

from dualread.declared.tables import LabeledMethod, Layout
from dualread.reporting.tables._blocks import Column, block, finished, headed, stacked
from dualread.reporting.tables._captions import CCG, OOD, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._notation import NOTATION, label_and_cost
from dualread.reporting.tables._structure import Gap, Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

_METRICS = {"auroc": r"AUROC$\uparrow$", "brier": r"Brier$\downarrow$", "natural_ccg_auc": r"CCG-AUC$\uparrow$"}
# The data sets of the means over OOD data sets: those of answers, and of donor pairs.
_OOD = {"auroc": "ood6", "brier": "ood6", "natural_ccg_auc": "ood_ccg"}
_LABELS = ("Method", "Cost", "Group")


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones."""
    own = layout.id_dataset
    columns = [Column(own.name, metric) for metric in _METRICS] + [Column(_OOD[metric], metric) for metric in _METRICS]
    blocks = (
        headed(
            backbone.label,
            len(_LABELS) + len(columns),
            block(values, backbone, layout.methods, columns, labels=_labels),
        )
        for backbone in layout.backbones
    )
    return finished(
        "estimators",
        stacked(blocks, Gap.SPACE),
        wide=True,
        columns="l" * len(_LABELS) + "c" * len(columns),
        head=[
            spanning(len(_LABELS), [(escape(own.label), len(_METRICS)), ("OOD averaged", len(_METRICS))]),
            Row([*_LABELS, *list(_METRICS.values()) * 2]),
        ],
        caption=[
            f"Estimators of other packages and our methods on the same answers, study {escape(layout.study)}.",
            NOTATION,
            "The confidence of an estimator that gives an uncertainty is a Platt map of its negative value.",
            f"{SPREAD}. {OOD} Bold: best printed value per column and backbone.",
            CCG,
        ],
    )


def _labels(method: LabeledMethod) -> list[str]:
    return [*label_and_cost(method), escape(method.group)]
