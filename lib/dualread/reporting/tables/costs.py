r"""Compute and reliability: each method's cost, in the paper's notation and as measured, beside its reliability.

Reproduces the layout of the paper's Table sc_tradeoff, with a block of columns, not of rows, per data set.
"""

import re
from collections.abc import Mapping

from dualread.declared.tables import LabeledBackbone, LabeledMethod, Layout
from dualread.reporting.tables._blocks import Column, block, finished, headed, stacked
from dualread.reporting.tables._captions import AURC, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._notation import NOTATION, label_and_cost
from dualread.reporting.tables._structure import Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

# Metric, header, decimals. Every answer needs equally many passes, so their mean is a whole number.
_MEASURED = (
    ("cost_prompt_passes", "Prompts", 0),
    ("cost_replay_passes", "Replays", 0),
    ("cost_read_tokens", "Read", 1),
    ("cost_generated_tokens", "Gen.", 1),
)
_METRICS = {"auroc": r"AUROC$\uparrow$", "brier": r"Brier$\downarrow$", "aurc": r"AURC$\downarrow$"}
# The symbols of a cost, and what each of them counts.
_SYMBOLS = {"t": "cost_completions", r"\rho": "cost_prompt_only_passes", r"\tau": "cost_replay_passes"}


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of costs of `values`, ours or the published ones."""
    datasets = sorted(layout.datasets, key=lambda dataset: not dataset.id)
    columns = [Column(layout.id_dataset.name, metric, digits=digits) for metric, _, digits in _MEASURED]
    columns += [Column(dataset.name, metric) for dataset in datasets for metric in _METRICS]
    blocks = (
        headed(
            backbone.label,
            2 + len(columns),
            block(values, backbone, layout.methods, columns, labels=label_and_cost),
        )
        for backbone in layout.backbones
    )
    titles = [("Measured", len(_MEASURED)), *((escape(dataset.label), len(_METRICS)) for dataset in datasets)]
    headers = [header for _, header, _ in _MEASURED] + list(_METRICS.values()) * len(datasets)
    return finished(
        "costs",
        stacked(blocks),
        wide=True,
        columns="l" + "c" * (1 + len(columns)),
        head=[spanning(2, titles), Row(["Method", "Cost", *headers])],
        caption=[*_caption(layout), *_discrepancies(values, layout)],
    )


def _caption(layout: Layout) -> list[str]:
    return [
        f"Cost and reliability, study {escape(layout.study)}.",
        NOTATION,
        f"Measured per answer on {escape(layout.id_dataset.label)}: passes over a prompt with its image (Prompts), "
        "passes over prompt and answer together (Replays), tokens that all passes read (Read) and generated tokens "
        "(Gen.). Samples that answer one question share one pass over its prompt.",
        AURC,
        f"{SPREAD}. Bold: best printed value per column and backbone; nulls are never bold.",
    ]


def _discrepancies(values: Mapping[Key, Value], layout: Layout) -> list[str]:
    """Return sentences on the methods whose measured cost differs from the paper's; none where all agree."""
    found: dict[str, None] = {}  # in order, each once
    for backbone in layout.backbones:
        for method in layout.methods:
            measured = _measured_cost(values, layout, backbone, method)
            if method.cost and measured and measured != _counts(method.cost):
                found[f"{escape(method.label)} ${_notation(measured)}$ (paper: {method.cost})"] = None
    if not found:
        return []
    return [
        f"Measured costs that differ from the paper's: {', '.join(found)}.",
        "A measured cost includes the greedy answer and all that scoring needs; it excludes what only fitting needs.",
    ]


def _measured_cost(
    values: Mapping[Key, Value], layout: Layout, backbone: LabeledBackbone, method: LabeledMethod
) -> dict[str, float] | None:
    dataset, counts = layout.id_dataset.name, {}
    for symbol, metric in _SYMBOLS.items():
        value = values.get(Key(backbone.name, dataset, "all", method.name, metric))
        if value is None or value.mean is None:
            return None
        counts[symbol] = value.mean
    return counts


def _counts(notation: str) -> dict[str, float]:
    r"""Return how often each symbol occurs: $t+2\rho$ has one t, two \rho and no \tau."""
    found = {symbol: float(count or 1) for count, symbol in re.findall(r"(\d*)(t|\\rho|\\tau)", notation)}
    return {symbol: found.get(symbol, 0.0) for symbol in _SYMBOLS}


def _notation(counts: Mapping[str, float]) -> str:
    return "+".join(f"{'' if count == 1 else f'{count:g}'}{symbol}" for symbol, count in counts.items() if count)
