"""Groups of answers, such as those about women or from one hospital: metrics, the worst group, certified thresholds.

Not in the paper. One float per column of questions (`subgroups` of the study), seed, backbone and data set: the
intervals are those of one run. Each method has a row per group, and one of the worst group by each metric.
"""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from dualread.evaluation.answer_metrics import ACCURACY, AUROC, BRIER
from dualread.evaluation.metric import Metric
from dualread.evaluation.metrics.grounding import FEW_IMAGES_OF
from dualread.evaluation.metrics.risk_control import DELTA
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.evaluation.subgroups import FEWEST, worst_groups
from dualread.evaluation.thresholds import metric_name
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.cells import Cell, PrintedTable
from dualread.reporting.tables.entries import DASH, Gap, Interval, TwoLines
from dualread.reporting.tables.significance import LEVEL
from dualread.reporting.tables.values import Key, Value, number, printed
from dualread.schema.columns import SUBGROUPS
from dualread.schema.tables import Layout

READS = "subgroups"

_METRICS = (ACCURACY, AUROC, BRIER, NATURAL_CCG_AUC)
_HEADS = {"threshold": "𝑐≥", "coverage": "Kept↑", "kept_risk": "Wrong↓"}
_CERTIFIED = "certified_threshold_at_risk_"
WORST = "worst_"  # before the metric of the worst group
_NONE, _WORST = "(no value)", "worst group"
_CSV = {name: column.dtype for name, column in SUBGROUPS.columns.items() if name not in ("study", "actor")}
_CSV = {"table": pl.String, **{"mean" if name == "estimate" else name: dtype for name, dtype in _CSV.items()}}
_CSV |= {"printed": pl.String}


def build(rows: pl.DataFrame, layout: Layout) -> PrintedTable:
    """Return the table of `rows`, those that stage measure_subgroups has of the table's methods."""
    shown = {seed for backbone in layout.backbones for seed in backbone.seeds}
    seeds = sorted(shown & set(rows["seed"])) or [0]  # an actor without seeds, whose seed is 0, is in the floats of all
    tables = [
        _sheet(by, seed)(_values(rows.filter(pl.col("seed").is_in([seed, 0]), by=by)), layout)
        for by in rows["by"].unique(maintain_order=True)
        for seed in seeds
    ]
    cells = pl.concat([pl.DataFrame(schema=_CSV), *(table.cells for table in tables)])
    return PrintedTable(floats=[of_sheet for table in tables for of_sheet in table.floats], cells=cells)


def _values(rows: pl.DataFrame) -> dict[Key, Value]:
    """Return the values of one column and seed; in their keys, the group stands in the place of the subset."""
    values = {}
    for method in rows.partition_by("backbone", "dataset", "method", maintain_order=True):
        of_method = method.to_dicts()
        place = {name: of_method[0][name] for name in ("backbone", "seed", "dataset", "by", "method")}
        flags = {(row["group"], row["metric"]): row["estimate"] for row in of_method}
        named = [(row["group"] or _NONE, row) for row in of_method]
        for group, row in (*named, *((_WORST, {**place, **row}) for row in worst_groups(of_method))):
            sides = FEW_IMAGES_OF.items() if row["metric"] == NATURAL_CCG_AUC.name else ()
            short = tuple(side for side, flag in sides if flags.get((row["group"], f"natural_{flag}")))
            value = Value(mean=row["estimate"], std=None, n_runs=1, n=row.get("n"), short=short, row=row)
            key = Key(place["backbone"], place["dataset"], group, place["method"], row["metric"])
            values[key] = replace(value, reason=row["reason"])
    return values


def _groups(at: sheet.RowContext) -> Iterator[sheet.RowContext]:
    """Yield the groups that the data set has, the questions without a value, and the worst group."""
    names = {key.subset for key in at.values if (key.backbone, key.dataset) == (at.backbone.name, at.dataset.name)}
    return (replace(at, subset=name) for name in sorted(names, key=lambda n: (n == _WORST, n == _NONE, n)))


def _cell(at: sheet.RowContext, metric: Metric, key: Key) -> Cell | None:
    if (value := at.values.get(key)) is None:
        return None
    if at.subset == _WORST:
        key = key._replace(metric=f"{WORST}{key.metric}")
    if value.mean is None:
        return Cell(key, value, DASH)
    row, p = value.row, value.row.get("p_holm")
    entry = printed(value, metric.digits, bold=p is not None and p < LEVEL)
    ends = [row.get(f"simultaneous_{end}", row[end]) for end in ("low", "high")]
    if at.subset == _NONE or metric.name.startswith("certified_"):
        ends = [row["low"], row["high"]]
    if ends[0] is None:
        return Cell(key, value, entry)
    return Cell(key, value, TwoLines(entry, Interval(*(number(end, metric.digits) for end in ends))))


def _columns(at: sheet.RowContext) -> list[sheet.SheetColumn]:
    risks = sheet.target_percents(at.values, _CERTIFIED) if at.dataset.id else []
    return sheet.columns_here([*_METRICS, *sheet.further(at.values)]) + [
        sheet.SheetColumn(
            head, [Metric(name=metric_name(f"certified_{kind}", percent))], title=f"Certified, {percent}%"
        )
        for percent in risks
        for kind, head in _HEADS.items()
    ]


def _sheet(by: str, seed: int) -> sheet.Sheet:
    """Return the table of the groups of one column and the actors of one seed."""

    def caption(at: sheet.RowContext) -> list[str]:
        return [
            f"Groups by {by}, {at.backbone.label}, {at.dataset.label}, seed {seed}, study {at.layout.study}.",
            "Below a value, the 95% interval over other {units} that holds for all groups of the column together "
            f"(Bonferroni); groups of fewer than {FEWEST} {{units}} have none. Bold: differs from all other groups "
            "together (p < .05, Holm's method over the groups). "
            f"{_WORST.capitalize()}: the worst value of those with an interval, and the interval of the worst group's "
            "value, whichever group it is.",
            "In simulations, all intervals of a column hold together in .931 to 1 of samples, and that of the worst "
            "group in .963 to 1.",
            *([_ABOUT_THRESHOLDS] if any(column.title for column in _columns(at)) else []),
        ]

    def floats(at: sheet.RowContext) -> Iterator[sheet.RowContext]:
        known = {(key.backbone, key.dataset) for key in at.values}
        places = (place for block in sheet.backbones(at) for place in sheet.datasets(block))
        return (place for place in places if (place.backbone.name, place.dataset.name) in known)

    return sheet.Sheet(
        name="subgroups",
        floats=floats,
        label=lambda at: f"{by}:{seed}:{at.backbone.name}:{at.dataset.name}",
        rows=[
            sheet.METHODS._replace(gap=Gap.SMALL_SPACE),
            sheet.RowLevel(_groups, [sheet.Label("Group", lambda at: at.subset), sheet.Label("𝑛", _size, "r")]),
        ],
        columns=_columns,
        caption=caption,
        cell=_cell,
        csv=_CSV,
        small=True,
    )


def _size(at: sheet.RowContext) -> str:
    value = at.values.get(at.key._replace(metric=ACCURACY.name))
    return "" if value is None or value.n is None else str(value.n)


_ABOUT_THRESHOLDS = (
    "Certified: the smallest confidence, chosen on the validation answers of the group, for which it is shown that the "
    "error rate of kept new answers is at most the target. For all groups together, this is wrong in at most "
    f"{100 * DELTA:g}% of validation sets, per method and target."
)
