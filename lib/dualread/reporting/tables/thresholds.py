"""Deployment: the confidence threshold for a target risk, and how many answers it keeps.

Not in the paper, which uses validation to choose deployable thresholds without printing any. Each target risk has a
threshold, chosen on validation, and its effect on data that did not choose it: the in-distribution test set, and the
equal-weight mean over OOD data sets. Each cell has two lines: the smallest threshold that reaches the target on the
validation answers, and below it the smallest one that is certified (`evaluation.metrics.risk_control`).
"""

from collections.abc import Mapping, Sequence

from dualread.declared.tables import LabeledBackbone, Layout
from dualread.evaluation.metrics.risk_control import DELTA
from dualread.evaluation.thresholds import RULES, metric_name
from dualread.reporting.tables._blocks import Column, Lines, finished, headed, rows_of, stacked
from dualread.reporting.tables._captions import OOD, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Gap, Over, Raised, Row, TwoLines, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

_THRESHOLD = "threshold_at_risk_"
_KEPT, _WRONG = r"Kept$\uparrow$", r"Wrong$\downarrow$"
_HEADERS = (r"$c\ge$", _KEPT, _WRONG, _KEPT, _WRONG)


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of the target risks that `values` have thresholds for."""
    percents = sorted({int(key.metric.removeprefix(_THRESHOLD)) for key in values if key.metric.startswith(_THRESHOLD)})
    in_distribution = layout.id_dataset
    places = {in_distribution.name: ("threshold", "coverage", "kept_risk"), "ood6": ("coverage", "kept_risk")}
    columns = [
        Column(place, metric_name(rule + kind, percent))
        for percent in percents
        for place, kinds in places.items()
        for kind in kinds
        for rule in RULES
    ]
    n_columns = 1 + len(percents) * len(_HEADERS)
    blocks = (
        headed(backbone.label, n_columns, _block(values, layout, backbone, columns)) for backbone in layout.backbones
    )
    titles = [(escape(in_distribution.label), 3), ("OOD averaged", 2)]
    return finished(
        "thresholds",
        stacked(blocks),
        wide=True,
        columns="l" + "c" * (n_columns - 1),
        head=[
            spanning(1, [(rf"Target risk {percent}\%", len(_HEADERS)) for percent in percents]),
            spanning(1, titles * len(percents)),
            Row(["Method", *_HEADERS * len(percents)]),
            Row(["", Over("Empirical (top); certified (bottom)", n_columns - 1)]),
        ],
        caption=[
            f"Answering only above a confidence threshold, study {escape(layout.study)}.",
            "For each target risk, $c$ is chosen on the validation answers of "
            f"{escape(in_distribution.label.removesuffix('-test'))}. Empirical: the smallest threshold for which the "
            "error rate of the answers with confidence at least $c$ does not exceed the target. Certified: the "
            "smallest one for which this is shown for new images of the same source, wrongly in at most "
            f"{100 * DELTA:g}\\% of validation sets, for each method and target by itself, and as long as no new image "
            "has more questions than the validation image with the most; a dash where there is none. Nothing is "
            "certified out of distribution. Kept: share of the test answers with confidence at least $c$. Wrong: error "
            "rate of these answers. Both have intervals, for new images and this threshold, in metrics.parquet and in "
            "the output of dualread explain.",
            f"{SPREAD}. {OOD}",
        ],
    )


def _block(values: Mapping[Key, Value], layout: Layout, backbone: LabeledBackbone, columns: Sequence[Column]) -> Lines:
    rows = rows_of(values, backbone, layout.methods, columns)
    methods = []
    for method in layout.methods:
        texts, cells = rows[method.name]
        pairs = (TwoLines(*lines) for lines in zip(texts[0::2], texts[1::2], strict=True))
        methods.append(Lines([Row([Raised(escape(method.label)), *pairs])], cells))
    return stacked(methods, Gap.SPACE)
