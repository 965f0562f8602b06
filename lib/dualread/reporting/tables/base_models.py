"""What the models answer before any training, and how far their own confidence in it can be trusted.

Not in the paper. It needs no trained actor, so it is the first table of results that a run makes.
"""

from collections.abc import Mapping

from dualread.declared.tables import Layout
from dualread.reporting.tables import _stacked
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`: one row per method, one column per data set of the layout."""
    places = [(dataset.name, dataset.label) for dataset in layout.datasets]
    caption = [f"Answers of the models before any training, and confidence in them, study {escape(layout.study)}."]
    return _stacked.table("base_models", values, layout, places, caption)
