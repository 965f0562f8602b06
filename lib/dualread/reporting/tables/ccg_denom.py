"""The number of pairs behind CCG-AUC: the decisive pairs of each actor, and how many of them Strict CCG-AUC keeps.

Reproduces the layout of the paper's Table ccg_denom (part c of its grounding evidence). Each row is one method of an
actor; the decisive sets are the actor's, whatever the method.
"""

from collections.abc import Callable, Iterable, Mapping

from dualread.evaluation.metric import Metric
from dualread.evaluation.pair_metrics import DECISIVE_PAIRS, STRICT_DECISIVE_PAIRS
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import DASH, Joined
from dualread.reporting.tables.values import UNKNOWN_SEEDS, Key, Value
from dualread.schema.tables import Layout

# The smallest and the largest share of any seed, in percent.
_RETAINED = {Metric(name="retained_low_percent", digits=0): min, Metric(name="retained_high_percent", digits=0): max}


def _columns(at: sheet.RowContext) -> list[sheet.SheetColumn]:
    return [
        column._replace(part={"backbone": backbone.name}, title=backbone.label)
        for backbone in at.layout.backbones
        for column in (
            *sheet.columns_here([DECISIVE_PAIRS, STRICT_DECISIVE_PAIRS]),
            sheet.SheetColumn(
                "Retained",
                list(_RETAINED),
                form=lambda low, high: low if low == DASH else Joined([low, "–", high, "%"]),
            ),
        )
    ]


def _retained(values: Mapping[Key, Value], layout: Layout) -> dict[Key, Value]:
    retained = {}
    for backbone in layout.backbones:
        for method in layout.methods:
            pairs = Key(backbone.name, layout.id_dataset.name, "all", method.name, DECISIVE_PAIRS.name)
            strict = pairs._replace(metric=STRICT_DECISIVE_PAIRS.name)
            if pairs in values and strict in values:
                for metric, choose in _RETAINED.items():
                    retained[pairs._replace(metric=metric.name)] = _percent(values[pairs], values[strict], choose)
    return retained


def _percent(pairs: Value, strict: Value, choose: Callable[[Iterable[float]], float]) -> Value:
    reason = pairs.reason or strict.reason
    if not reason and not (pairs.by_seed and strict.by_seed):
        reason = UNKNOWN_SEEDS
    if not reason and 0.0 in pairs.by_seed.values():
        reason = "no decisive pair in some seed"
    shares = [] if reason else [100 * strict.by_seed[seed] / n for seed, n in pairs.by_seed.items()]
    return Value(mean=choose(shares) if shares else None, std=None, n_runs=pairs.n_runs, n=pairs.n, reason=reason)


build = sheet.Sheet(
    name="ccg_denom",
    rows=[sheet.RowLevel(sheet.methods, [sheet.METHOD._replace(head="Actor")])],
    columns=_columns,
    caption=lambda at: [
        f"Decisive pairs of {at.dataset.label}, study {at.layout.study}.",
        "|ℰ|: number of pairs that are answered correctly on the source image and incorrectly on the "
        "donor image. Strict: number of those with the same answer on both images. Retained: Strict as a share of "
        "|ℰ|, the smallest and the largest over seeds.",
        f"Counts: {sheet.SPREAD[0].lower()}{sheet.SPREAD[1:]}.",
    ],
    derived=_retained,
    alignment="r",
)
