"""What a study found, in sentences that are computed from its tested differences and intervals.

A method is judged by its AUROC on the in-distribution test set against two kinds of bars: the confidence that its actor
states, and the null methods, which never see the image. A difference is significant if its p-value, adjusted by Holm's
method over all comparisons of the method, is below the level of Table significance. Differences that were not tested
are reported as such, without a conclusion.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import read_table
from dualread.declared.columns import CONTRASTS
from dualread.declared.tables import NULL_GROUP
from dualread.reporting.report import _sentences as say

_STATED = ["verbalized"]  # the readers of a method that is the confidence that its actor states
_CCG = {"natural_ccg_auc": "Natural CCG-AUC", "strict_ccg_auc": "Strict CCG-AUC"}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings, at the top of the report.

    Attributes:
        headline: One or two sentences on the study.
        details: (backbone, sentences), one per backbone and judged method.
        reading: An explanation of the numbers in the details; empty where there are no details.
    """

    headline: str
    details: Sequence[tuple[str, Sequence[str]]] = ()
    reading: str = ""


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A method and its comparisons, in the order of the config; rows are rows of the contrasts table.

    Attributes:
        label: The method's label.
        bars: Names and labels of the bars in the study, the stated confidence first.
        nulls: The names of the bars that are nulls.
        tests: (backbone, metric, baseline) -> row.
        own: (backbone, metric) -> row.
        others: Names and labels of all other methods that the method is tested against.
    """

    label: str
    bars: Mapping[str, str]
    nulls: frozenset[str]
    tests: Mapping[tuple[str, str, str], Mapping[str, Any]]
    own: Mapping[tuple[str, str], Mapping[str, Any]]
    others: Mapping[str, str]

    def verdicts(self, backbone: str) -> dict[str, say.Verdict]:
        """Return the verdict on the AUROC of the method against each bar, on one backbone."""
        return {bar: say.verdict(self.tests.get((backbone, "auroc", bar))) for bar in self.bars}


def read(study: Path, layouts: Iterable[Mapping[str, Any]]) -> Findings:
    """Return what the study in a folder found; see `find`."""
    folder = study / "contrasts"
    found = read_table(folder / "contrasts.parquet", CONTRASTS) if (folder / "MANIFEST.json").exists() else None
    return find(found, layouts)


def find(contrasts: pl.DataFrame | None, layouts: Iterable[Mapping[str, Any]]) -> Findings:
    """Return what a study found on its in-distribution test set.

    Args:
        contrasts: A contrasts table; None where the study has none.
        layouts: The layouts of the study's tables (`dualread.reporting.tables.layout.Layout`, as mappings).
    """
    backbones, methods, place = _shown(layouts)
    judged = [] if contrasts is None or place is None else _judged(contrasts, methods, place["name"])
    if place is None or not judged:
        return Findings(headline=say.NOT_TESTED)
    headline, details = [], []
    for one in judged:
        kinds = say.bars(one.bars, one.nulls)
        verdicts = {label: list(one.verdicts(name).values()) for name, label in backbones.items()}
        headline.append(say.headline(one.label, place["label"], kinds, verdicts))
        details += [(label, _details(one, name)) for name, label in backbones.items()]
    if not any(one.nulls for one in judged):
        headline.append(say.NO_NULLS)
    return Findings(headline=" ".join(headline), details=details, reading=say.READING)


def _shown(layouts: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], dict[str, Mapping], Mapping | None]:
    """Return the labels of all backbones, the entries of all methods, and the in-distribution data set."""
    backbones: dict[str, str] = {}
    methods: dict[str, Mapping] = {}
    place = None
    for layout in layouts:
        backbones |= {entry["name"]: entry["label"] for entry in layout.get("backbones", ())}
        methods |= {entry["name"]: entry for entry in layout.get("methods", ())}
        place = next((entry for entry in layout.get("datasets", ()) if entry["id"]), place)
    return backbones, methods, place


def _judged(contrasts: pl.DataFrame, methods: Mapping[str, Mapping], dataset: str) -> list[_Judged]:
    """Return the methods that are tested against a bar, each with the contrast that compares it with most methods."""
    there = contrasts.filter(dataset=dataset, split="test")
    own = there.filter(pl.col("contrast").is_null())
    found = []
    for name, entry in methods.items():
        tests = there.filter(pl.col("contrast").is_not_null(), method=name)
        sizes = tests.group_by("contrast").agg(n=pl.col("baseline").n_unique()).sort(["n", "contrast"])
        if sizes.is_empty() or entry["group"] == NULL_GROUP:
            continue
        tests = tests.filter(contrast=sizes["contrast"][-1])
        stated = [
            bar
            for bar, other in methods.items()
            if bar != name and other["actor"] == entry["actor"] and list(other["readers"]) == _STATED
        ]
        nulls = [bar for bar, other in methods.items() if other["group"] == NULL_GROUP]
        tested = set(tests["baseline"])
        if tested.isdisjoint([*stated, *nulls]):
            continue
        found.append(
            _Judged(
                label=entry["label"],
                bars={bar: methods[bar]["label"] for bar in (*stated, *nulls)},
                nulls=frozenset(nulls),
                tests={(row["backbone"], row["metric"], row["baseline"]): row for row in tests.to_dicts()},
                own={(row["backbone"], row["metric"]): row for row in own.filter(method=name).to_dicts()},
                others={
                    other: each["label"]
                    for other, each in methods.items()
                    if other in tested and other not in (*stated, *nulls)
                },
            )
        )
    return found


def _details(one: _Judged, backbone: str) -> list[str]:
    """Return the sentences on one method and backbone: AUROC, the bars, the other methods, CCG-AUC."""
    if (backbone, "auroc") not in one.own:
        return [f"The study has no results of {one.label} here."]
    sentences = [say.value(one.label, "AUROC", one.own[backbone, "auroc"])]
    rows = {label: one.tests.get((backbone, "auroc", bar)) for bar, label in one.bars.items()}
    sentences += say.comparisons(rows)
    others = {label: one.tests.get((backbone, "auroc", name)) for name, label in one.others.items()}
    sentences += say.among_others(one.label, others)
    measured = {metric: row for metric in _CCG if (row := one.own.get((backbone, metric)))}
    for metric, row in measured.items():
        against = {label: one.tests.get((backbone, metric, bar)) for bar, label in one.bars.items() if bar in one.nulls}
        sentences.append(say.grounding(_CCG[metric], row, against))
    return sentences if measured else [*sentences, say.NO_PAIRS]
