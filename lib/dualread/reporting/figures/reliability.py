"""Reliability diagrams on the in-distribution test split, as the paper's fig:reliability: one column per backbone."""

from collections.abc import Mapping

import polars as pl

from dualread.declared.tables import FigureLayout
from dualread.reporting.figures.drawing import Drawing
from dualread.reporting.figures.reliability_diagram import Column, Page, pooled

READS = "answers"


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return one page per data set, with one row of panels per method and one column per backbone.

    Args:
        tables: `answers`, see `dualread.reporting.figures.reliability_diagram.pooled`.
        layout: Its backbones, data sets and methods are drawn, in its order.
    """
    pages = [
        Page(
            title=dataset.label,
            columns=[
                Column(heading=backbone.label, backbone=backbone.name, dataset=dataset.name)
                for backbone in layout.backbones
            ],
        )
        for dataset in layout.datasets
    ]
    return pooled(tables["answers"], pages, layout.methods, layout.study)
