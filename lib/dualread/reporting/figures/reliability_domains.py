"""Reliability diagrams on every out-of-distribution data set, as the paper's fig:ood_rel_*: one column per data set."""

from collections.abc import Mapping

import polars as pl

from dualread.declared.tables import FigureLayout
from dualread.reporting.figures.drawing import Drawing
from dualread.reporting.figures.reliability_diagram import Column, Page, pooled

READS = "answers"


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return one page per backbone, with one row of panels per method and one column per data set.

    Args:
        tables: `answers`, see `dualread.reporting.figures.reliability_diagram.pooled`.
        layout: Its backbones, data sets and methods are drawn, in its order.
    """
    pages = [
        Page(
            title=backbone.label,
            columns=[
                Column(heading=dataset.label, backbone=backbone.name, dataset=dataset.name)
                for dataset in layout.datasets
            ],
        )
        for backbone in layout.backbones
    ]
    return pooled(tables["answers"], pages, layout.methods, layout.study)
