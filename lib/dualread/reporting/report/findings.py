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
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import read_table
from dualread.evaluation.metrics.grounding import MINIMUM_IMAGES
from dualread.reporting.pages import Grid
from dualread.reporting.tables.significance import is_significant
from dualread.reporting.tables.values import number, p_text, signed
from dualread.schema.columns import CONTRASTS
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


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings, at the top of the report.

    Attributes:
        headline: One sentence per judged method and backbone; empty where no method is tested against a bar.
        subject: The name and the label of the first judged method; None where there is none.
        backbones: {name: label} of the backbones.
        verdicts: (backbone, metric, whether the bars are nulls) -> what the first judged method's tests show together.
        grids: One table of verdicts per judged method.
        has_nulls: Whether a judged method has null methods among its bars.
        units: What is resampled, by data set; the image of those that are not in it.
    """

    headline: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    has_nulls: bool = False
    subject: tuple[str, str] | None = None
    backbones: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[tuple[str, str, bool], Finding] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)


def read(study: Path, layouts: Iterable[Mapping[str, Any]], units: Mapping[str, str]) -> Findings:
    """Return what the study in a folder found; see `find`."""
    folder = study / "contrasts"
    contrasts = read_table(folder / "contrasts.parquet", CONTRASTS) if (folder / "MANIFEST.json").exists() else None
    return find(contrasts, layouts, units)


def find(
    contrasts: pl.DataFrame | None, layouts: Iterable[Mapping[str, Any]], units: Mapping[str, str] | None = None
) -> Findings:
    """Return what a study found on its in-distribution test set.

    Args:
        contrasts: A contrasts table; None where the study has none.
        layouts: The layouts of the study's tables (`dualread.schema.tables.Layout`, as mappings).
        units: As in `Findings`.
    """
    units = units or {}
    backbones: dict[str, str] = {}
    methods: dict[str, Mapping] = {}
    place = None
    for layout in layouts:
        backbones |= {entry["name"]: entry["label"] for entry in layout.get("backbones", ())}
        methods |= {entry["name"]: entry for entry in layout.get("methods", ())}
        place = next((entry for entry in layout.get("datasets", ()) if entry["id"]), place)
    judged = (
        []
        if contrasts is None or place is None
        else list(_judged(contrasts, methods, place["name"], units.get(place["name"], "image")))
    )
    if place is None or not judged:
        return Findings(units=units)
    headline = [method.headline(place["label"], *backbone) for method in judged for backbone in backbones.items()]
    caption = f"{{}} on {place['label']}: its values, and its differences from other methods".format
    of_methods = {
        method.label: [row for backbone in backbones.items() for row in method.rows(*backbone)] for method in judged
    }
    return Findings(
        headline=headline,
        grids=[Grid(caption(label), _COLUMNS, rows, (4, 5)) for label, rows in of_methods.items()],
        has_nulls=any(method.nulls for method in judged),
        subject=(judged[0].name, judged[0].label),
        backbones=backbones,
        verdicts=dict(judged[0].verdicts(backbones)),
        units=units,
    )


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A method, {name: label} of its bars and of other methods that it is tested against, and its rows of contrasts."""

    name: str
    label: str
    unit: str  # that is resampled
    stated: Mapping[str, str]
    nulls: Mapping[str, str]
    others: Mapping[str, str]
    tests: Mapping[tuple[str, str, str], Row]  # by backbone, metric, baseline
    values: Mapping[tuple[str, str], Row]  # by backbone, metric

    def headline(self, place: str, backbone: str, label: str) -> str:
        """Return how many bars the method is above on a backbone, and which bars these are."""
        verdicts = Counter(self._verdict(backbone, "auroc", bar) for bar in {**self.stated, **self.nulls})
        counts = ", ".join(f"{verdict.value} {verdicts[verdict]}" for verdict in Finding if verdicts[verdict])
        bars = [f"the stated confidence {name}" for name in self.stated.values()]
        bars += [f"the null {name}" for name in self.nulls.values()]
        return f"AUROC of {self.label} on {place}, {label}, against {', '.join(bars)}: {counts}."

    def verdicts(self, backbones: Iterable[str]) -> Iterator[tuple[tuple[str, str, bool], Finding]]:
        """Yield, by backbone, metric and kind of bar, whether the method is above every bar, or below one."""
        kinds = [(of_nulls, bars) for of_nulls, bars in ((False, self.stated), (True, self.nulls)) if bars]
        for backbone in backbones:
            for metric in ("auroc", *_CCG):
                for of_nulls, bars in kinds:
                    verdicts = {self._verdict(backbone, metric, bar) for bar in bars}
                    together = verdicts.pop() if len(verdicts) == 1 else Finding.UNCLEAR
                    yield (backbone, metric, of_nulls), Finding.BELOW if Finding.BELOW in verdicts else together

    def rows(self, backbone: str, label: str) -> Iterator[tuple[str | None, ...]]:
        """Yield the lines of a backbone: AUROC, the bars, the other methods, CCG-AUC against the nulls."""
        if (auroc := self.values.get((backbone, "auroc"))) is None:
            yield (label, "AUROC", *[None] * 4, f"the study has no results of {self.label} here")
            return
        nulls = {bar: f"{name} (null)" for bar, name in self.nulls.items()}
        stated = {bar: f"{name} (stated)" for bar, name in self.stated.items()}
        yield (label, "AUROC", *_of_value(auroc, self.unit))
        for bar, name in {**stated, **nulls, **self.others}.items():
            yield (label, "AUROC", name, *_of_difference(self.tests.get((backbone, "auroc", bar))))
        measured = {metric: row for metric in _CCG if (row := self.values.get((backbone, metric)))}
        for metric, row in measured.items():
            yield (label, _CCG[metric], *_of_value(row, self.unit))
            if row["estimate"] is not None and not row["short"]:
                for bar, name in nulls.items():
                    yield (label, _CCG[metric], name, *_of_difference(self.tests.get((backbone, metric, bar))))
        if not measured:
            yield (label, "CCG-AUC", *[None] * 4, "not measured: the study has no donor pairs here")

    def _verdict(self, backbone: str, metric: str, bar: str) -> Finding:
        return Finding.from_row(self.tests.get((backbone, metric, bar)))


def _judged(contrasts: pl.DataFrame, methods: Mapping[str, Mapping], dataset: str, unit: str) -> Iterator[_Judged]:
    """Yield the methods that are tested against a bar, each with the contrast that compares it with most methods."""
    there = contrasts.filter(dataset=dataset, split="test")
    values = there.filter(pl.col("contrast").is_null())
    for name, entry in methods.items():
        tests = there.filter(pl.col("contrast").is_not_null(), method=name)
        sizes = tests.group_by("contrast").agg(n=pl.col("baseline").n_unique()).sort(["n", "contrast"])
        if sizes.is_empty() or entry["group"] == NULL_GROUP:
            continue
        tests = tests.filter(contrast=sizes["contrast"][-1])
        kinds: dict[str, dict[str, str]] = {"stated": {}, "nulls": {}, "others": {}}
        for bar, other in methods.items():
            is_stated = other["actor"] == entry["actor"] and list(other["readers"]) == _STATED
            kind = "nulls" if other["group"] == NULL_GROUP else "stated" if is_stated else "others"
            if bar != name and (kind != "others" or bar in set(tests["baseline"])):
                kinds[kind][bar] = other["label"]
        if not set(tests["baseline"]).isdisjoint([*kinds["stated"], *kinds["nulls"]]):
            yield _Judged(
                name=name,
                label=entry["label"],
                unit=unit,
                tests={(row["backbone"], row["metric"], row["baseline"]): row for row in tests.to_dicts()},
                values={(row["backbone"], row["metric"]): row for row in values.filter(method=name).to_dicts()},
                **kinds,
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
