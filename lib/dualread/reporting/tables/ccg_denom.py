"""The number of pairs behind CCG-AUC: the decisive pairs of each actor, and how many of them Strict CCG-AUC keeps.

Reproduces the layout of the paper's Table ccg_denom (part c of its grounding evidence). Each row is one method of an
actor; the decisive sets are the actor's, whatever the method.
"""

from collections.abc import Callable, Iterable, Mapping

from dualread.declared.tables import LabeledBackbone, LabeledMethod, Layout
from dualread.reporting.tables._blocks import Lines, finished
from dualread.reporting.tables._captions import SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Row, spanning
from dualread.reporting.tables.cells import Cell, Table, value_of
from dualread.reporting.tables.format import DASH
from dualread.reporting.tables.values import UNKNOWN_SEEDS, Key, Value, together

_HEADERS = (r"$|\mathcal{E}|$", "Strict", "Retained")
_COUNTS = ("decisive_pairs", "strict_decisive_pairs")
# The smallest and the largest share of any seed, in percent.
_RETAINED = {"retained_low_percent": min, "retained_high_percent": max}


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones; shares are in percent."""
    values = together(values, _retained(values, layout))
    lines = Lines([], [])
    for method in layout.methods:
        texts = []
        for backbone in layout.backbones:
            keys = [_key(layout, backbone, method, metric) for metric in (*_COUNTS, *_RETAINED)]
            cells = [
                Cell(key=key, value=value_of(values, key), bold=False, digits=0 if key.metric in _RETAINED else 1)
                for key in keys
            ]
            pairs, strict, low, high = (cell.text for cell in cells)
            texts += [pairs, strict, low if low == DASH else rf"{low}--{high}\%"]
            lines.cells.extend(cells)
        lines.lines.append(Row([escape(method.label), *texts]))
    return finished(
        "ccg_denom",
        lines,
        wide=True,
        columns="l" + "r" * len(_HEADERS) * len(layout.backbones),
        head=[
            spanning(1, [(escape(backbone.label), len(_HEADERS)) for backbone in layout.backbones]),
            Row(["Actor", *_HEADERS * len(layout.backbones)]),
        ],
        caption=[
            f"Decisive pairs of {escape(layout.id_dataset.label)}, study {escape(layout.study)}.",
            r"$|\mathcal{E}|$: number of pairs that are answered correctly on the source image and incorrectly on the "
            "donor image. Strict: number of those with the same answer on both images. Retained: Strict as a share of "
            r"$|\mathcal{E}|$, the smallest and the largest over seeds.",
            f"Counts: {SPREAD[0].lower()}{SPREAD[1:]}.",
        ],
    )


def _key(layout: Layout, backbone: LabeledBackbone, method: LabeledMethod, metric: str) -> Key:
    return Key(backbone.name, layout.id_dataset.name, "all", method.name, metric)


def _retained(values: Mapping[Key, Value], layout: Layout) -> dict[Key, Value]:
    found = {}
    for backbone in layout.backbones:
        for method in layout.methods:
            pairs, strict = (_key(layout, backbone, method, metric) for metric in _COUNTS)
            if pairs in values and strict in values:
                for metric, choose in _RETAINED.items():
                    found[pairs._replace(metric=metric)] = _percent(values[pairs], values[strict], choose)
    return found


def _percent(pairs: Value, strict: Value, choose: Callable[[Iterable[float]], float]) -> Value:
    reason = pairs.reason or strict.reason
    if not reason and not (pairs.by_seed and strict.by_seed):
        reason = UNKNOWN_SEEDS
    if not reason and 0.0 in pairs.by_seed.values():
        reason = "no decisive pair in some seed"
    shares = [] if reason else [100 * strict.by_seed[seed] / n for seed, n in pairs.by_seed.items()]
    return Value(mean=choose(shares) if shares else None, std=None, n_runs=pairs.n_runs, n=pairs.n, reason=reason)
