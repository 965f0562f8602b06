"""Reliability diagrams on the in-distribution test split, as the paper's fig:reliability: one column per backbone."""

from collections.abc import Mapping

import polars as pl

from dualread.reporting.figures.drawing import Drawing
from dualread.reporting.figures.reliability_diagram import pooled
from dualread.schema.tables import FigureLayout

READS = "answers"
OF_PROBABILITIES = True


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return one page per data set, with one row of panels per method and one column per backbone."""
    return pooled(tables["answers"], layout, pages=layout.datasets, columns=layout.backbones)
