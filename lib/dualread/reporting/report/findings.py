"""What a study found: a verdict on each tested difference, and a few fixed sentences about how to read them.

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
from dualread.evaluation.metrics.grounding import ENOUGH_IMAGES, MINIMUM_IMAGES
from dualread.reporting.report._grid import Grid
from dualread.reporting.tables.format import number, p_text, signed
from dualread.reporting.tables.significance import LEVEL, is_significant
from dualread.schema.columns import CONTRASTS
from dualread.schema.tables import NULL_GROUP

Row = Mapping[str, Any]

_STATED = ["verbalized"]  # the readers of a method that is the confidence that its actor states
_CCG = {"natural_ccg_auc": "Natural CCG-AUC", "strict_ccg_auc": "Strict CCG-AUC"}
_COLUMNS = ("Backbone", "Measure", "Compared with", "Value or difference", "p", "p, retrained", "Verdict")
_NOTHING = "—"

NOT_TESTED = (
    "This study tests no method against the confidence that its model states, nor against a null that never sees the "
    "image. Its numbers describe each method; they do not show that one method is better than another."
)
NO_NULLS = (
    "The study has no null methods, which never see the image. So nothing here shows that a confidence depends on more "
    "than the question."
)
READING = (
    "AUROC: how well confidence separates correct answers from incorrect ones. In brackets: 95% intervals over "
    "other test images, for these seeds. p: p-value of the paired difference, adjusted by Holm's method over all "
    "methods that the study compares, for these seeds; if there are several, then for retrained actors. A difference "
    f"is significant if each p is below {number(LEVEL, 2)}. A null method predicts from the question, or from question "
    "and answer, without the image. CCG-AUC: how often confidence is higher with the question's own image than with a "
    "donor's image; .5 is chance. Where it is significantly above every null, confidence falls with another image by "
    "more than question and answer explain. Otherwise there is no evidence that confidence comes from the image. It "
    f"takes about {ENOUGH_IMAGES} images on both sides to tell .6 from .5."
)


class Finding(Enum):
    """What a tested difference shows, method minus bar, where higher values are better."""

    ABOVE = "significantly above"
    BELOW = "significantly below"
    UNCLEAR = "not distinguishable"
    UNDEFINED = "no value or p-value"
    UNTESTED = "not tested"

    @classmethod
    def of(cls, row: Row | None) -> "Finding":
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
        headline: One sentence per judged method and backbone, or why there is none.
        subject: The name and the label of the first judged method; None where there is none.
        backbones: {name: label} of the backbones.
        verdicts: (backbone, metric, whether the bars are nulls) -> what the first judged method's tests show together.
        grids: One table of verdicts per judged method.
        reading: An explanation of the tables; empty where there are none.
    """

    headline: Sequence[str]
    grids: Sequence[Grid] = ()
    reading: str = ""
    subject: tuple[str, str] | None = None
    backbones: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[tuple[str, str, bool], Finding] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A method and its comparisons, in the order of the config; rows are rows of the contrasts table.

    Attributes:
        name: The method's name.
        label: Its label.
        stated: Names and labels of the confidences that its actor states.
        nulls: Names and labels of the null methods.
        others: Names and labels of all other methods that the method is tested against.
        tests: (backbone, metric, baseline) -> row.
        values: (backbone, metric) -> row.
    """

    name: str
    label: str
    stated: Mapping[str, str]
    nulls: Mapping[str, str]
    others: Mapping[str, str]
    tests: Mapping[tuple[str, str, str], Row]
    values: Mapping[tuple[str, str], Row]

    def headline(self, place: str, backbone: str, label: str) -> str:
        """Return how many bars the method is above on a backbone, and which bars these are."""
        bars = {**self.stated, **self.nulls}
        verdicts = Counter(Finding.of(self.tests.get((backbone, "auroc", bar))) for bar in bars)
        counts = ", ".join(f"{verdict.value} {verdicts[verdict]}" for verdict in Finding if verdicts[verdict])
        named = [f"the stated confidence {name}" for name in self.stated.values()]
        named += [f"the null {name}" for name in self.nulls.values()]
        return f"AUROC of {self.label} on {place}, {label}, against {', '.join(named)}: {counts}."

    def verdicts(self, backbones: Iterable[str]) -> Iterator[tuple[tuple[str, str, bool], Finding]]:
        """Yield, by backbone, metric and kind of bar, whether the method is above every bar, or below one."""
        for backbone in backbones:
            for metric in ("auroc", *_CCG):
                for of_nulls, bars in ((False, self.stated), (True, self.nulls)):
                    if bars:
                        verdicts = {Finding.of(self.tests.get((backbone, metric, bar))) for bar in bars}
                        together = verdicts.pop() if len(verdicts) == 1 else Finding.UNCLEAR
                        yield (backbone, metric, of_nulls), Finding.BELOW if Finding.BELOW in verdicts else together

    def rows(self, backbone: str, label: str) -> Iterator[tuple[str, ...]]:
        """Yield the lines of a backbone: AUROC, the bars, the other methods, CCG-AUC against the nulls."""
        if (auroc := self.values.get((backbone, "auroc"))) is None:
            yield (label, "AUROC", *[_NOTHING] * 4, f"the study has no results of {self.label} here")
            return
        yield _of_value(label, "AUROC", auroc)
        named = {
            **{bar: f"{name} (stated)" for bar, name in self.stated.items()},
            **{bar: f"{name} (null)" for bar, name in self.nulls.items()},
            **self.others,
        }
        for bar, name in named.items():
            yield _of_difference(label, "AUROC", name, self.tests.get((backbone, "auroc", bar)))
        measured = {metric: row for metric in _CCG if (row := self.values.get((backbone, metric)))}
        for metric, row in measured.items():
            yield _of_value(label, _CCG[metric], row)
            if row["estimate"] is not None and not row["short"]:
                for bar in self.nulls:
                    yield _of_difference(label, _CCG[metric], named[bar], self.tests.get((backbone, metric, bar)))
        if not measured:
            yield (label, "CCG-AUC", *[_NOTHING] * 4, "not measured: the study has no donor pairs here")


def read(study: Path, layouts: Iterable[Mapping[str, Any]]) -> Findings:
    """Return what the study in a folder found; see `find`."""
    folder = study / "contrasts"
    contrasts = read_table(folder / "contrasts.parquet", CONTRASTS) if (folder / "MANIFEST.json").exists() else None
    return find(contrasts, layouts)


def find(contrasts: pl.DataFrame | None, layouts: Iterable[Mapping[str, Any]]) -> Findings:
    """Return what a study found on its in-distribution test set.

    Args:
        contrasts: A contrasts table; None where the study has none.
        layouts: The layouts of the study's tables (`dualread.schema.tables.Layout`, as mappings).
    """
    backbones: dict[str, str] = {}
    methods: dict[str, Mapping] = {}
    place = None
    for layout in layouts:
        backbones |= {entry["name"]: entry["label"] for entry in layout.get("backbones", ())}
        methods |= {entry["name"]: entry for entry in layout.get("methods", ())}
        place = next((entry for entry in layout.get("datasets", ()) if entry["id"]), place)
    judged = [] if contrasts is None or place is None else list(_judged(contrasts, methods, place["name"]))
    if place is None or not judged:
        return Findings(headline=[NOT_TESTED])
    headline = [method.headline(place["label"], *backbone) for method in judged for backbone in backbones.items()]
    grids = [
        Grid(
            caption=f"{method.label} on {place['label']}: its values, and its differences from other methods",
            columns=_COLUMNS,
            rows=[row for backbone in backbones.items() for row in method.rows(*backbone)],
            right=frozenset({4, 5}),
        )
        for method in judged
    ]
    has_nulls = any(method.nulls for method in judged)
    return Findings(
        headline=[*headline, *([] if has_nulls else [NO_NULLS])],
        grids=grids,
        reading=READING,
        subject=(judged[0].name, judged[0].label),
        backbones=backbones,
        verdicts=dict(judged[0].verdicts(backbones)),
    )


def _judged(contrasts: pl.DataFrame, methods: Mapping[str, Mapping], dataset: str) -> Iterator[_Judged]:
    """Yield the methods that are tested against a bar, each with the contrast that compares it with most methods."""
    there = contrasts.filter(dataset=dataset, split="test")
    values = there.filter(pl.col("contrast").is_null())
    for name, entry in methods.items():
        tests = there.filter(pl.col("contrast").is_not_null(), method=name)
        sizes = tests.group_by("contrast").agg(n=pl.col("baseline").n_unique()).sort(["n", "contrast"])
        if sizes.is_empty() or entry["group"] == NULL_GROUP:
            continue
        tests = tests.filter(contrast=sizes["contrast"][-1])
        labels = {bar: other["label"] for bar, other in methods.items() if bar != name}
        stated = {
            bar: label
            for bar, label in labels.items()
            if methods[bar]["actor"] == entry["actor"] and list(methods[bar]["readers"]) == _STATED
        }
        nulls = {bar: label for bar, label in labels.items() if methods[bar]["group"] == NULL_GROUP}
        tested = set(tests["baseline"])
        if tested.isdisjoint([*stated, *nulls]):
            continue
        yield _Judged(
            name=name,
            label=entry["label"],
            stated=stated,
            nulls=nulls,
            others={bar: label for bar, label in labels.items() if bar in tested and bar not in (*stated, *nulls)},
            tests={(row["backbone"], row["metric"], row["baseline"]): row for row in tests.to_dicts()},
            values={(row["backbone"], row["metric"]): row for row in values.filter(method=name).to_dicts()},
        )


def _of_value(label: str, measure: str, row: Row) -> tuple[str, ...]:
    """Return the line of a method's own value; a value on few images is not shown."""
    if row["estimate"] is None:
        return (label, measure, _NOTHING, "undefined", _NOTHING, _NOTHING, row["reason"])
    seeds = f"mean over {row['n_seeds']} seeds"
    if row["n_seeds"] == 1:
        seeds = "one run, so the variation between training runs is unknown"
    rests = f"{seeds}; questions: {row['n']:,}, images: {row['n_clusters']:,}"
    value = f"{number(row['estimate'])}{interval(row, number)}"
    if row["short"]:
        value = "underpowered"
        rests = f"fewer than {MINIMUM_IMAGES} distinct {row['short']} images: no evidence either way"
    return (label, measure, _NOTHING, value, _NOTHING, _NOTHING, rests)


def _of_difference(label: str, measure: str, bar: str, row: Row | None) -> tuple[str, ...]:
    verdict = Finding.of(row)
    if row is None or row["estimate"] is None:
        reason = f"{verdict.value}: {row['reason']}" if row else verdict.value
        return (label, measure, bar, _NOTHING, _NOTHING, _NOTHING, reason)
    difference = f"{signed(row['estimate'])}{interval(row, signed)}"
    p = _NOTHING if row["p_holm"] is None else p_text(row["p_holm"], at_most=row["p_holm_at_most"])
    retrained = _NOTHING if row["p_holm_retrained"] is None else p_text(row["p_holm_retrained"])
    return (label, measure, bar, difference, p, retrained, verdict.value)


def interval(row: Row, show: Any = number) -> str:
    """Return the interval of a value after a space, [.941, .962]; nothing where it has none."""
    return "" if row["low"] is None else f" [{show(row['low'])}, {show(row['high'])}]"
