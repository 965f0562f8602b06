"""Deployment: the confidence threshold for a target risk, and how many answers it keeps.

Not in the paper, which uses validation to choose deployable thresholds without printing any. Each target risk has a
threshold, chosen on validation, and its effect on data that did not choose it: the in-distribution test set, and the
equal-weight mean over OOD data sets.
"""

from collections.abc import Mapping

from dualread.reporting.tables._blocks import Column, block, finished, headed, stacked
from dualread.reporting.tables._captions import OOD, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value
from dualread.specs.tables import Layout

_THRESHOLD = "threshold_at_risk_"
_KEPT, _WRONG = r"Kept$\uparrow$", r"Wrong$\downarrow$"
_HEADERS = (r"$c\ge$", _KEPT, _WRONG, _KEPT, _WRONG)


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of the target risks that `values` have thresholds for."""
    percents = sorted({key.metric.removeprefix(_THRESHOLD) for key in values if key.metric.startswith(_THRESHOLD)})
    in_distribution = layout.id_dataset
    columns = [
        Column(place, f"{kind}_at_risk_{percent}")
        for percent in percents
        for place, kinds in {
            in_distribution.name: ("threshold", "coverage", "kept_risk"),
            "ood6": ("coverage", "kept_risk"),
        }.items()
        for kind in kinds
    ]
    blocks = (
        headed(backbone.label, 1 + len(columns), block(values, backbone, layout.methods, columns))
        for backbone in layout.backbones
    )
    places = [(escape(in_distribution.label), 3), ("OOD averaged", 2)]
    return finished(
        "thresholds",
        stacked(blocks),
        wide=True,
        columns="l" + "c" * len(columns),
        head=[
            spanning(1, [(rf"Target risk {int(percent)}\%", len(_HEADERS)) for percent in percents]),
            spanning(1, places * len(percents)),
            Row(["Method", *_HEADERS * len(percents)]),
        ],
        caption=[
            f"Answering only above a confidence threshold, study {escape(layout.study)}.",
            "For each target risk, $c$ is the smallest threshold for which the error rate of the validation answers of "
            f"{escape(in_distribution.label.removesuffix('-test'))} with confidence at least $c$ does not exceed the "
            "target. Kept: share of the test answers with confidence at least $c$. Wrong: error rate of these answers.",
            f"{SPREAD}. {OOD}",
        ],
    )
