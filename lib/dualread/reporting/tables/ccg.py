"""The donor pairs of the in-distribution test set: the actor's answers to both images, and how confidence responds.

Reproduces the layout of the paper's Table ccg (part b of its grounding evidence): accuracy on both images, VRS, the
decisive set and VBR, which are the actor's; then Natural CCG-AUC of each method of the layout, and how much the first
has over each other on the same pairs.
"""

from collections.abc import Mapping
from statistics import mean, stdev

from dualread.errors import ConfigError
from dualread.evaluation.metric import Metric
from dualread.evaluation.pair_metrics import (
    ACCURACY_DONOR,
    ACCURACY_REAL,
    DECISIVE_PAIRS,
    DONOR_IMAGES,
    NATURAL_CCG_AUC,
    SOURCE_IMAGES,
    VBR,
    VRS,
)
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import Joined
from dualread.reporting.tables.values import UNKNOWN_SEEDS, Key, Value
from dualread.schema.tables import LabeledMethod, Layout

_DIFFERENCE = Metric(name="paired_delta", is_difference=True)


def _columns(at: sheet.RowContext) -> list[sheet.SheetColumn]:
    answers, confidence = "Answers of the actor", NATURAL_CCG_AUC.headed("Natural CCG-AUC")
    several = len(at.methods) > 2
    return [
        *sheet.columns_here([ACCURACY_REAL, ACCURACY_DONOR, VRS, DECISIVE_PAIRS], answers),
        sheet.SheetColumn(
            "Src/Dnr",
            [SOURCE_IMAGES, DONOR_IMAGES],
            title=answers,
            form=lambda *images: Joined([images[0], "/", images[1]]),
        ),
        *sheet.columns_here([VBR], answers),
        *(
            sheet.SheetColumn(method.label, [NATURAL_CCG_AUC], {"method": method.name}, title=confidence)
            for method in at.methods
        ),
        *(
            sheet.column(
                _DIFFERENCE,
                f"Paired Δ{' ' + other.label if several else ''}",
                confidence,
                method=name,
            )
            for name, (_, other) in _pairs(at.layout).items()
        ),
    ]


def _pairs(layout: Layout) -> dict[str, tuple[LabeledMethod, LabeledMethod]]:
    """Return pairs of the first method and each other method, by the name of their difference: "first-other"."""
    first, *others = layout.methods
    return {f"{first.name}-{other.name}": (first, other) for other in others}


def _differences(values: Mapping[Key, Value], layout: Layout) -> dict[Key, Value]:
    """Return the differences, seed by seed; all methods must judge the answers of one actor."""
    if len(actors := {method.actor: None for method in layout.methods}) != 1:
        raise ConfigError(f"table ccg: methods of {', '.join(actors)}. Expected one actor, whose pairs they all judge.")
    differences = {}
    for backbone in layout.backbones:
        for name, pair in _pairs(layout).items():
            keys = [
                Key(backbone.name, layout.id_dataset.name, "all", method.name, NATURAL_CCG_AUC.name) for method in pair
            ]
            if all(key in values for key in keys):
                differences[keys[0]._replace(method=name, metric=_DIFFERENCE.name)] = _difference(
                    *(values[key] for key in keys)
                )
    return differences


def _difference(value: Value, other: Value) -> Value:
    reason = value.reason or other.reason
    if not reason and not (value.by_seed and other.by_seed):
        reason = UNKNOWN_SEEDS
    by_seed = {} if reason else {seed: point - other.by_seed[seed] for seed, point in value.by_seed.items()}
    return Value(
        mean=mean(by_seed.values()) if by_seed else None,
        std=stdev(by_seed.values()) if len(by_seed) > 1 else None,
        n_runs=value.n_runs,
        n=value.n,
        by_seed=by_seed,
        short=tuple(side for side in ("source", "donor") if side in {*value.short, *other.short}),
        reason=reason,
    )


def _caption(at: sheet.RowContext) -> list[str]:
    return [
        f"Donor pairs of {at.dataset.label}, study {at.layout.study}.",
        "Answers of the actor: accuracy over all pairs on the source images (real) and on the donor images (hn, hard "
        "negatives), and their difference (VRS); |ℰ|, the number of decisive pairs, which are answered "
        "correctly on the source image and incorrectly on the donor image; their distinct source and donor {units} "
        "(Src/Dnr); their share of all pairs (VBR).",
        f"Paired Δ: {at.method.label} minus the other method on the same answers, per seed.",
        f"{sheet.SPREAD}. Bold: best printed CCG-AUC per backbone.",
    ]


build = sheet.Sheet(
    name="ccg",
    rows=[sheet.RowLevel(sheet.backbones, [sheet.Label("Backbone", lambda at: at.backbone.label)])],
    columns=_columns,
    caption=_caption,
    derived=_differences,
    alignment="r",
    small=True,
)
