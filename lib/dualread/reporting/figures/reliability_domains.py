"""Reliability diagrams on every out-of-distribution data set, as the paper's fig:ood_rel_*: one column per data set."""

from collections.abc import Mapping

import polars as pl

from dualread.reporting.figures.drawing import Drawing
from dualread.reporting.figures.reliability_diagram import pooled
from dualread.schema.tables import FigureLayout

READS = "answers"
OF_PROBABILITIES = True


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return one page per backbone, with one row of panels per method and one column per data set."""
    return pooled(tables["answers"], layout, pages=layout.backbones, columns=layout.datasets)
