"""Calibration of the branches: are their confidences too high or too extreme, before and after fusion?

Not in the paper. PSR's classes are weighted, which shifts its log-odds by a constant that a temperature cannot undo; it
shows as calibration-in-the-large. In distribution, and the equal-weight mean over OOD data sets.
"""

from collections.abc import Mapping

from dualread.declared.tables import Layout
from dualread.reporting.tables._blocks import Column, block, finished, headed, stacked
from dualread.reporting.tables._captions import OOD, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Gap, Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

_METRICS = {"calibration_slope": "Slope", "calibration_in_the_large": "In the large"}


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones."""
    places = {layout.id_dataset.name: escape(layout.id_dataset.label), "ood6": "OOD averaged"}
    columns = [Column(place, metric) for place in places for metric in _METRICS]
    blocks = (
        headed(backbone.label, 1 + len(columns), block(values, backbone, layout.methods, columns))
        for backbone in layout.backbones
    )
    return finished(
        "branches",
        stacked(blocks, Gap.SPACE),
        wide=False,
        columns="l" + "c" * len(columns),
        head=[
            spanning(1, [(label, len(_METRICS)) for label in places.values()]),
            Row(["Method", *list(_METRICS.values()) * len(places)]),
        ],
        caption=[
            f"Calibration of the branches, study {escape(layout.study)}.",
            "From a logistic regression of correctness on the log-odds of the confidence. Slope: 1 is calibrated; "
            "below 1, confidences are too extreme. In the large: the intercept with the slope fixed at 1; 0 is "
            "calibrated; below 0, confidences are too high.",
            f"{SPREAD}. {OOD}",
        ],
    )
