"""What a study found: a verdict on each tested difference.

A method is judged by its AUROC on the in-distribution test set against two kinds of bars: the confidence that its actor
states, and the null methods, which never see the image. A difference is significant if its p-value, adjusted by Holm's
method over all comparisons of the method, is below the level of Table significance. Differences that were not tested
are reported as such, without a conclusion.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import polars as pl

from dualread.evaluation.metrics.grounding import MINIMUM_IMAGES
from dualread.reporting.pages import Grid
from dualread.reporting.tables.significance import is_significant
from dualread.reporting.tables.values import number, p_text, signed
from dualread.schema.tables import NULL_GROUP

Row = Mapping[str, Any]

_STATED = ["verbalized"]  # the readers of a method that is the confidence that its actor states
_CCG = {"natural_ccg_auc": "Natural CCG-AUC", "strict_ccg_auc": "Strict CCG-AUC"}
_COLUMNS = ("Backbone", "Measure", "Compared with", "Value or difference", "p", "p, retrained", "Verdict")


class Finding(Enum):
    """What a tested difference shows, method minus bar, where higher values are better."""

    ABOVE = "significantly above"
    BELOW = "significantly below"
    UNCLEAR = "not distinguishable"
    UNDEFINED = "no value or p-value"
    UNTESTED = "not tested"

    @classmethod
    def from_row(cls, row: Row | None) -> "Finding":
        """Return the verdict on a row of a contrasts table; None: not tested."""
        if row is None:
            return cls.UNTESTED
        if row["estimate"] is None or row["p_holm"] is None:
            return cls.UNDEFINED
        if not is_significant(row):
            return cls.UNCLEAR
        return cls.ABOVE if row["estimate"] > 0 else cls.BELOW


class Bar(NamedTuple):
    """What a method is compared with: a bar, of the kind "stated" or "null", or another method, of the kind "other"."""

    name: str
    label: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A method that is tested against a bar."""

    name: str
    label: str
    bars: Sequence[Bar]  # stated ones first; then the other methods that it is tested against
    rows: Mapping[tuple[str, str, str | None], Row]  # by backbone, metric and baseline; own values have no baseline
    unit: str  # that is resampled

    def against(self, *kinds: str) -> list[Bar]:
        """Return the bars of these kinds."""
        return [bar for bar in self.bars if bar.kind in kinds]

    def finding(self, backbone: str, metric: str, bar: Bar) -> Finding:
        """Return the verdict on a difference."""
        return Finding.from_row(self.rows.get((backbone, metric, bar.name)))

    def together(self, backbone: str, metric: str, kind: str) -> Finding | None:
        """Return whether the method is above all bars of a kind, or below one of them; None without such bars."""
        verdicts = {self.finding(backbone, metric, bar) for bar in self.against(kind)}
        if Finding.BELOW in verdicts:
            return Finding.BELOW
        return next(iter(verdicts), None) if len(verdicts) < 2 else Finding.UNCLEAR

    def headline(self, place: str, backbone: str, label: str) -> str:
        """Return how many bars the method is above on a backbone, and which bars these are."""
        bars = self.against("stated", "null")
        verdicts = Counter(self.finding(backbone, "auroc", bar) for bar in bars)
        counts = ", ".join(f"{verdict.value} {verdicts[verdict]}" for verdict in Finding if verdicts[verdict])
        named = [f"the {'null' if bar.kind == 'null' else 'stated confidence'} {bar.label}" for bar in bars]
        return f"AUROC of {self.label} on {place}, {label}, against {', '.join(named)}: {counts}."

    def lines(self, backbone: str, label: str) -> Iterator[tuple[str | None, ...]]:
        """Yield the lines of a backbone: AUROC, the bars, the other methods, CCG-AUC against the nulls."""
        if (auroc := self.rows.get((backbone, "auroc", None))) is None:
            yield (label, "AUROC", *[None] * 4, f"the study has no results of {self.label} here")
            return
        yield (label, "AUROC", *_of_value(auroc, self.unit))
        measured = {metric: row for metric in _CCG if (row := self.rows.get((backbone, metric, None)))}
        shown = {"auroc": self.bars}
        for metric in ("auroc", *measured):
            if row := measured.get(metric):
                yield (label, _CCG[metric], *_of_value(row, self.unit))
                shown[metric] = [] if row["estimate"] is None or row["short"] else self.against("null")
            for bar in shown[metric]:
                name = bar.label if bar.kind == "other" else f"{bar.label} ({bar.kind})"
                difference = _of_difference(self.rows.get((backbone, metric, bar.name)))
                yield (label, _CCG.get(metric, "AUROC"), name, *difference)
        if not measured:
            yield (label, "CCG-AUC", *[None] * 4, "not measured: the study has no donor pairs here")


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings, at the top of the report."""

    place: str = ""  # the label of the in-distribution test set
    backbones: Mapping[str, str] = field(default_factory=dict)  # {name: label}
    judged: Sequence[Judged] = ()  # the first screen is about the first of them
    units: Mapping[str, str] = field(default_factory=dict)  # what is resampled, by data set; by default images

    @property
    def headline(self) -> list[str]:
        """One sentence per judged method and backbone."""
        return [method.headline(self.place, *backbone) for method in self.judged for backbone in self.backbones.items()]

    @property
    def grids(self) -> list[Grid]:
        """One table of verdicts per judged method."""
        return [
            Grid(
                f"{method.label} on {self.place}: its values, and its differences from other methods",
                _COLUMNS,
                [line for backbone in self.backbones.items() for line in method.lines(*backbone)],
                (4, 5),
            )
            for method in self.judged
        ]


def find(
    contrasts: pl.DataFrame | None, layouts: Iterable[Mapping[str, Any]], units: Mapping[str, str] | None = None
) -> Findings:
    """Return what a study found on its in-distribution test set.

    The layouts are those of its tables (`dualread.schema.tables.Layout`, as mappings); `units` are as in `Findings`.
    """
    units = units or {}
    backbones: dict[str, str] = {}
    methods: dict[str, Mapping] = {}
    place = None
    for layout in layouts:
        backbones |= {entry["name"]: entry["label"] for entry in layout.get("backbones", ())}
        methods |= {entry["name"]: entry for entry in layout.get("methods", ())}
        place = next((entry for entry in layout.get("datasets", ()) if entry["id"]), place)
    if contrasts is None or place is None:
        return Findings(units=units)
    there = contrasts.filter(dataset=place["name"], split="test")
    judged = list(_judged(there, methods, units.get(place["name"], "image")))
    return Findings(place=place["label"], backbones=backbones, judged=judged, units=units)


def _judged(contrasts: pl.DataFrame, methods: Mapping[str, Mapping], unit: str) -> Iterator[Judged]:
    """Yield the methods that are tested against a bar, each with the contrast that compares it with most methods."""
    for name, entry in methods.items():
        rows = contrasts.filter(method=name)
        sizes = rows.group_by("contrast").agg(n=pl.col("baseline").n_unique()).drop_nulls().sort(["n", "contrast"])
        if sizes.is_empty() or entry["group"] == NULL_GROUP:
            continue
        rows = rows.filter(pl.col("contrast").is_null() | (pl.col("contrast") == sizes["contrast"][-1]))
        tested, kinds = set(rows["baseline"].drop_nulls()), ("stated", "null", "other")
        bars = []
        for bar, other in methods.items():
            is_stated = other["actor"] == entry["actor"] and list(other["readers"]) == _STATED
            kind = "null" if other["group"] == NULL_GROUP else "stated" if is_stated else "other"
            if bar != name and (kind != "other" or bar in tested):
                bars.append(Bar(bar, other["label"], kind))
        if any(bar.name in tested and bar.kind != "other" for bar in bars):
            yield Judged(
                name=name,
                label=entry["label"],
                unit=unit,
                bars=sorted(bars, key=lambda bar: kinds.index(bar.kind)),
                rows={(row["backbone"], row["metric"], row["baseline"]): row for row in rows.to_dicts()},
            )


def _of_value(row: Row, unit: str) -> tuple[str | None, ...]:
    """Return the line of a method's own value after its measure; a value on few images is not shown."""
    if row["estimate"] is None:
        return (None, "undefined", None, None, row["reason"])
    if row["short"]:
        few = f"fewer than {MINIMUM_IMAGES} distinct {row['short']} {unit}s: no evidence either way"
        return (None, "underpowered", None, None, few)
    seeds = f"mean over {row['n_seeds']} seeds"
    if row["n_seeds"] == 1:
        seeds = "one run, so the variation between training runs is unknown"
    rests = f"{seeds}; questions: {row['n']:,}, {unit}s: {row['n_clusters']:,}"
    return (None, f"{number(row['estimate'])}{interval(row)}", None, None, rests)


def _of_difference(row: Row | None) -> tuple[str | None, ...]:
    """Return the line of a difference after the bar."""
    verdict = Finding.from_row(row).value
    if row is None or row["estimate"] is None:
        return (None, None, None, f"{verdict}: {row['reason']}" if row else verdict)
    p = None if row["p_holm"] is None else p_text(row["p_holm"], at_most=row["p_holm_at_most"])
    retrained = None if row["p_holm_retrained"] is None else p_text(row["p_holm_retrained"])
    return (f"{signed(row['estimate'])}{interval(row, signed)}", p, retrained, verdict)


def interval(row: Row, show: Any = number) -> str:
    """Return the interval of a value after a space, [.941, .962]; nothing where it has none."""
    return "" if row["low"] is None else f" [{show(row['low'])}, {show(row['high'])}]"
