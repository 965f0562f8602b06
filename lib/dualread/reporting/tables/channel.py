"""The confidence channel: how often a method states a valid value, and how many different ones.

Reproduces the layout of the paper's Table channel: of the seeds that the table's entry names, parse rates on every data
set of the layout and the support of the valid values on the in-distribution one.
"""

from collections.abc import Mapping
from dataclasses import replace

from dualread.evaluation.answer_metrics import ENDPOINT_SHARE, IMPUTED_SHARE, UNIQUE_CONFIDENCES
from dualread.evaluation.metric import Metric
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import Gap
from dualread.reporting.tables.values import Key, Value
from dualread.schema.tables import Layout

_PARSE_RATE = Metric(name="parse_rate")


def _parse_rates(values: Mapping[Key, Value], layout: Layout) -> dict[Key, Value]:
    return {
        key._replace(metric=_PARSE_RATE.name): value if value.mean is None else replace(value, mean=1 - value.mean)
        for key in values
        if key.metric == IMPUTED_SHARE.name and (value := values[key])
    }


def _caption(at: sheet.RowContext) -> list[str]:
    seeds = sorted({seed for backbone in at.layout.backbones for seed in backbone.seeds})
    return [
        f"Confidence channels, study {at.layout.study}, seed{'s' if len(seeds) > 1 else ''} "
        f"{', '.join(map(str, seeds))}.",
        "Parse rate: share of answers with a valid confidence.",
        f"Support on {at.dataset.label}: number of different valid confidences (Unique), and the share "
        "of valid confidences that are exactly 0 or 1 (Endpt.).",
    ]


build = sheet.Sheet(
    name="channel",
    rows=[
        sheet.RowLevel(sheet.backbones, [sheet.Label("Backbone", lambda at: at.backbone.label)], gap=Gap.RULE),
        sheet.METHODS,
    ],
    columns=lambda at: [
        *(sheet.column(_PARSE_RATE, place.label, "Parse rate", dataset=place.name) for place in at.layout.datasets),
        *sheet.columns_here([UNIQUE_CONFIDENCES, ENDPOINT_SHARE], "Support"),
    ],
    caption=_caption,
    derived=_parse_rates,
    alignment="r",
)
