"""Reliability diagrams on every out-of-distribution data set, a page each, as the paper's fig:ood_rel_*."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from dualread.figures._drawing import Drawing
from dualread.figures._reliability import pooled

READS = "answers"


def draw(tables: Mapping[str, pl.DataFrame], layout: Mapping[str, Any]) -> Drawing:
    """Return the diagrams of `answers`; see `dualread.figures._reliability.pooled`."""
    return pooled(tables["answers"], layout)
