"""The confidence channel: how often a method states a valid value, and how many different ones.

Reproduces the layout of the paper's Table channel: of the seeds that the table's entry names, parse rates on every data
set of the layout and the support of the valid values on the in-distribution one.
"""

from collections.abc import Mapping
from dataclasses import replace

from dualread.declared.tables import Layout
from dualread.reporting.tables._blocks import Column, block, finished, stacked
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value, together

_RATE = "parse_rate"
# Metric, header, decimals.
_SUPPORT = (("unique_confidences", "Unique", 0), ("endpoint_share", "Endpt.", 3))


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones; parse rates are computed unless they are there."""
    values = together(values, _rates(values))
    columns = [Column(dataset.name, _RATE) for dataset in layout.datasets]
    columns += [Column(layout.id_dataset.name, metric, digits=digits) for metric, _, digits in _SUPPORT]
    blocks = (
        block(values, backbone, layout.methods, columns, beside=[escape(backbone.label)])
        for backbone in layout.backbones
    )
    return finished(
        "channel",
        stacked(blocks),
        wide=True,
        columns="ll" + "r" * len(columns),
        head=[
            spanning(2, [("Parse rate", len(layout.datasets)), ("Support", len(_SUPPORT))]),
            Row(
                ["Backbone", "Method", *(escape(d.label) for d in layout.datasets), *(name for _, name, _ in _SUPPORT)]
            ),
        ],
        caption=_caption(layout),
    )


def _rates(values: Mapping[Key, Value]) -> dict[Key, Value]:
    return {
        key._replace(metric=_RATE): value if value.mean is None else replace(value, mean=1 - value.mean)
        for key in values
        if key.metric == "imputed_share" and (value := values[key])
    }


def _caption(layout: Layout) -> list[str]:
    seeds = sorted({seed for backbone in layout.backbones for seed in backbone.seeds})
    return [
        f"Confidence channels, study {escape(layout.study)}, seed{'s' if len(seeds) > 1 else ''} "
        f"{', '.join(map(str, seeds))}.",
        "Parse rate: share of answers with a valid confidence.",
        f"Support on {escape(layout.id_dataset.label)}: number of different valid confidences (Unique), and the share "
        "of valid confidences that are exactly 0 or 1 (Endpt.).",
    ]
