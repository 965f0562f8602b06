"""The donor pairs of the in-distribution test set: the actor's answers to both images, and how confidence responds.

Reproduces the layout of the paper's Table ccg (part b of its grounding evidence): accuracy on both images, VRS, the
decisive set and VBR, which are the actor's; then Natural CCG-AUC of each method of the layout, and how much the first
has over each other on the same pairs.
"""

from collections.abc import Mapping
from statistics import mean, stdev

from dualread.declared.tables import LabeledMethod, Layout
from dualread.errors import ConfigError
from dualread.reporting.tables._blocks import Lines, finished
from dualread.reporting.tables._captions import SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Row, spanning
from dualread.reporting.tables.cells import Cell, Table, column_cells, value_of
from dualread.reporting.tables.values import UNKNOWN_SEEDS, Key, Value, together

# Metric, header, decimals. Source and donor images have one column together.
_ACTOR = (
    ("accuracy_real", r"Acc.$^{\mathrm{real}}$", 3),
    ("accuracy_donor", r"Acc.$^{\mathrm{hn}}$", 3),
    ("vrs", "VRS", 3),
    ("decisive_pairs", r"$|\mathcal{E}|$", 1),
    ("source_images", "Src/Dnr", 1),
    ("donor_images", "", 1),
    ("vbr", "VBR", 3),
)
_CCG, _DIFFERENCE = "natural_ccg_auc", "paired_delta"


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones.

    The method of a difference is named "first-other". Differences are computed per seed, unless `values` has them.

    Raises:
        ConfigError: The methods of `layout` judge the answers of several actors.
    """
    if len(actors := {method.actor: None for method in layout.methods}) != 1:
        raise ConfigError(f"table ccg: methods of {', '.join(actors)}. Expected one actor, whose pairs they all judge.")
    values = together(values, _differences(values, layout))
    lines = Lines([], [])
    for backbone in layout.backbones:
        of_actor = [_cell(values, layout, backbone.name, layout.methods[0].name, name, n) for name, _, n in _ACTOR]
        of_methods = column_cells(
            values, backbone=backbone.name, dataset=layout.id_dataset.name, metric=_CCG, methods=layout.methods
        )
        differences = [_cell(values, layout, backbone.name, name, _DIFFERENCE) for name in _pairs(layout)]
        cells = [*of_actor, *of_methods.values(), *differences]
        texts = [cell.text for cell in cells]
        lines.lines.append(Row([escape(backbone.label), *texts[:4], "/".join(texts[4:6]), *texts[6:]]))
        lines.cells.extend(cells)
    n_confidence = len(layout.methods) + len(_pairs(layout))
    return finished(
        "ccg",
        lines,
        wide=True,
        small=True,
        columns="l" + "r" * (6 + n_confidence),
        head=[
            spanning(1, [("Answers of the actor", 6), (r"Natural CCG-AUC$\uparrow$", n_confidence)]),
            Row(["Backbone", *(header for _, header, _ in _ACTOR if header), *_headers(layout)]),
        ],
        caption=_caption(layout),
    )


def _pairs(layout: Layout) -> dict[str, tuple[LabeledMethod, LabeledMethod]]:
    """Return pairs of the first method and each other method, by the name of their difference."""
    first, *others = layout.methods
    return {f"{first.name}-{other.name}": (first, other) for other in others}


def _differences(values: Mapping[Key, Value], layout: Layout) -> dict[Key, Value]:
    found = {}
    for backbone in layout.backbones:
        for name, pair in _pairs(layout).items():
            keys = [Key(backbone.name, layout.id_dataset.name, "all", method.name, _CCG) for method in pair]
            if all(key in values for key in keys):
                found[keys[0]._replace(method=name, metric=_DIFFERENCE)] = _difference(*(values[key] for key in keys))
    return found


def _difference(value: Value, other: Value) -> Value:
    reason = value.reason or other.reason
    if not reason and not (value.by_seed and other.by_seed):
        reason = UNKNOWN_SEEDS
    by_seed = {} if reason else {seed: found - other.by_seed[seed] for seed, found in value.by_seed.items()}
    return Value(
        mean=mean(by_seed.values()) if by_seed else None,
        std=stdev(by_seed.values()) if len(by_seed) > 1 else None,
        n_runs=value.n_runs,
        n=value.n,
        by_seed=by_seed,
        short=tuple(side for side in ("source", "donor") if side in {*value.short, *other.short}),
        reason=reason,
    )


def _cell(
    values: Mapping[Key, Value], layout: Layout, backbone: str, method: str, metric: str, digits: int = 3
) -> Cell:
    key = Key(backbone, layout.id_dataset.name, "all", method, metric)
    return Cell(key=key, value=value_of(values, key), bold=False, digits=digits, signed=metric == _DIFFERENCE)


def _headers(layout: Layout) -> list[str]:
    several = len(layout.methods) > 2
    differences = [
        rf"Paired $\Delta${' ' + escape(other.label) if several else ''}" for _, other in _pairs(layout).values()
    ]
    return [*(escape(method.label) for method in layout.methods), *differences]


def _caption(layout: Layout) -> list[str]:
    return [
        f"Donor pairs of {escape(layout.id_dataset.label)}, study {escape(layout.study)}.",
        "Answers of the actor: accuracy over all pairs on the source images (real) and on the donor images (hn, hard "
        r"negatives), and their difference (VRS); $|\mathcal{E}|$, the number of decisive pairs, which are answered "
        "correctly on the source image and incorrectly on the donor image; their distinct source and donor images "
        "(Src/Dnr); their share of all pairs (VBR).",
        rf"Paired $\Delta$: {escape(layout.methods[0].label)} minus the other method on the same answers, per seed.",
        f"{SPREAD}. Bold: best printed CCG-AUC per backbone.",
    ]
