"""What a forest plot shows: methods down, AUROC and Natural CCG-AUC with intervals across, beside what needs no image.

The figure `forest` draws it for print, and the template `forest.html.jinja` for pages, where text stays text and the
plot fits any width. Both draw one table, `VALUES`: a row per measure and method. A null is a method that sees no image.
A method is marked where it is above every null, for these seeds and for retrained actors; p-values are adjusted by
Holm's method over all methods and nulls of a plot. Without nulls, it is marked where its interval lies above .5.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import polars as pl

from dualread.evaluation.answer_metrics import AUROC
from dualread.evaluation.metrics.grounding import MINIMUM_IMAGES
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.evaluation.statistics.p_values import P, holm
from dualread.reporting.tables.significance import is_significant
from dualread.reporting.tables.values import number

Row = Mapping[str, Any]

MEASURES = {AUROC.name: "AUROC", NATURAL_CCG_AUC.name: "Natural CCG-AUC"}
CHANCE = 0.5
METHOD, NULL, LIMIT = "method", "null", "limit"  # roles; a limit is what the image alone can tell at most

_ESTIMATE = {
    **dict.fromkeys(("estimate", "low", "high", "low_retrained", "high_retrained"), pl.Float64),
    **dict.fromkeys(("n_seeds", "n", "n_clusters"), pl.Int64),
    **dict.fromkeys(("short", "reason"), pl.String),
}
VALUES = {
    **dict.fromkeys(("study", "backbone", "dataset", "metric", "method", "label", "role"), pl.String),
    **_ESTIMATE,
    **dict.fromkeys(("p", "p_retrained"), pl.Float64),
    "above": pl.Boolean,
}

LIMIT_LABEL = "True difficulty of the image"
_SAYS = {
    "dot": "Dot and thick line: the value and its 95% interval over other {units}.",
    "retrained": "The thick line is for these seeds, the thin one for retrained actors as well.",
    "groups": "The thick line is for each group by itself, the thin one for all groups together (Bonferroni).",
    "few": f"Pale, with †: fewer than {MINIMUM_IMAGES} {{units}} on a side, so no evidence either way.",
    "nulls": "Nulls see no image: they predict from the question, or from question and answer. Band: their interval.",
    "limit": "Dotted: AUROC of the true difficulty of the images, the most that an image can tell without question.",
    "ccg": "CCG-AUC: how often confidence is higher with the question's own image than with another one; .5 is chance.",
    "adjusted": "p-values are adjusted by Holm's method over all methods and nulls of a plot.",
}


def says(units: str = "images") -> dict[str, str]:
    """Return what is said of a plot whose intervals are over other `units`."""
    return {name: text.format(units=units) for name, text in _SAYS.items()}


def filled_means(nulls: Sequence[str]) -> str:
    """Return what a filled dot means, given the labels of the nulls."""
    return ("interval above .5", "above the null", "above both nulls", f"above all {len(nulls)} nulls")[
        min(len(nulls), 3)
    ]


def judged(differences: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return by method p, p_retrained and above: the largest adjusted p-values of its differences from the nulls.

    The differences are rows of one measure with the columns of a contrasts table, each a method minus a null.
    """
    p_values = [None if row["p"] is None else P(row["p"], at_most=bool(row["p_at_most"])) for row in differences]
    retrained = [None if (p := row["p_retrained"]) is None else P(p, at_most=False) for row in differences]
    verdicts: dict[str, list[tuple[float | None, float | None, bool]]] = {}
    for row, p, again in zip(differences, holm(p_values), holm(retrained), strict=True):
        ps = None if p is None else p.value, None if again is None else again.value
        adjusted = dict(zip(("p_holm", "p_holm_retrained"), ps, strict=True))
        is_above = is_significant({**row, **adjusted}) and row["estimate"] > 0
        verdicts.setdefault(row["method"], []).append((*ps, is_above))
    return {
        method: {
            "p": _largest([p for p, _, _ in triples]),
            "p_retrained": _largest([again for _, again, _ in triples]),
            "above": all(is_above for _, _, is_above in triples),
        }
        for method, triples in verdicts.items()
    }


def _largest(p_values: Sequence[float | None]) -> float | None:
    """Return the largest p-value; None if one is missing, so that no method looks better for it."""
    known = [p for p in p_values if p is not None]
    return max(known) if len(known) == len(p_values) else None


def rows_of(
    estimates: Sequence[Row],
    differences: Sequence[Row],
    labels: Mapping[str, str],
    *,
    limit: Row | None = None,
    **names: str,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `VALUES` of one plot of the methods in `labels`, in their order.

    Args:
        estimates: The values of the methods: metric, method, estimate, low, high, and what else of `VALUES` is known.
        differences: Each method minus each null, with the columns of a contrasts table; empty without nulls.
        labels: {method: label}.
        limit: The AUROC of what the image alone can tell at most, where it is known.
        names: study, backbone, dataset.
    """
    nulls = {row["baseline"] for row in differences}
    for metric in MEASURES:
        values = {row["method"]: row for row in estimates if row["metric"] == metric}
        verdicts = judged([row for row in differences if row["metric"] == metric and row["method"] in labels])
        for method, label in labels.items():
            if (row := values.get(method)) is not None:
                named = {"metric": metric, "method": method, "label": label}
                shown = {name: row.get(name) for name in _ESTIMATE}
                ends = [shown["low"], *([] if shown["low_retrained"] is None else [shown["low_retrained"]])]
                above_chance = None not in ends and min(ends) > CHANCE and not shown["short"]
                verdict = {"above": above_chance and not nulls} | verdicts.get(method, {})
                role = {"role": NULL} if method in nulls else {"role": METHOD, **verdict}
                yield {**names, **named, **shown, **role}
        if limit is not None and metric == AUROC.name:
            shown = {name: limit.get(name) for name in _ESTIMATE}
            yield {**names, "metric": metric, "label": LIMIT_LABEL, "role": LIMIT, **shown}


def rows_of_groups(rows: Iterable[Row], labels: Mapping[str, str], **names: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of `VALUES` of one plot of groups of answers, of those that have an interval.

    The rows are those of `evaluation.subgroups.by_group`, of one column, with the method of each; its label stands
    before its groups. The names are study, backbone, dataset.
    """
    shown = [
        {**row, "low_retrained": row["simultaneous_low"], "high_retrained": row["simultaneous_high"]}
        | {"method": f"{labels[row['method']]}{row['group']}"}
        for row in rows
        if None not in (row["group"], row["simultaneous_low"])
    ]
    yield from rows_of(shown, [], {row["method"]: row["method"] for row in shown}, limit=None, **names)


def scale(values: pl.DataFrame) -> tuple[float, float]:
    """Return the ends of the axis that shows all values and .5, in tenths."""
    numbers = [values[name] for name in ("estimate", "low", "high", "low_retrained", "high_retrained")]
    known = [number for column in numbers for number in column.drop_nulls()]
    low, high = min([*known, CHANCE]), max([*known, CHANCE])
    first, last = floor(low * 10 + 1e-9), ceil(high * 10 - 1e-9)
    return max(first, 0) / 10, max(last, first + 1) / 10


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A value in a plot of a page; places are percent of the width."""

    text: str  # the value, or a dash
    note: str  # the interval, and what is to be known of it
    at: float | None = None  # where the value is; None for no value
    inner: tuple[float, float] | None = None  # where the interval begins, and its width; None for no interval
    outer: tuple[float, float] | None = None  # the same of the interval for retrained actors
    kind: str = ""  # classes for the style: above, few


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A measure of a plot of a page: its name, its ticks {text: place}, .5, the marks of nulls, and the limit."""

    name: str
    ticks: Mapping[str, float]
    chance: float
    nulls: Mapping[str, Mark]
    limit: Mark | None


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot of a page: its caption, its measures, and per method a label and one mark per measure."""

    caption: str
    axes: Sequence[Axis]
    lines: Sequence[tuple[str, Sequence[Mark]]]

    @property
    def nulls(self) -> list[str]:
        """The labels of the nulls."""
        return list(dict.fromkeys(label for axis in self.axes for label in axis.nulls))

    @property
    def filled(self) -> str:
        """What a filled dot means."""
        return filled_means(self.nulls)


def plot(values: pl.DataFrame, caption: str, ends: tuple[float, float], units: str = "images") -> Plot:
    """Return the plot of a page for the rows of one backbone and data set, on an axis between `ends`."""
    marks: dict[str, dict[str, dict[str, Mark]]] = {}
    for row in values.to_dicts():
        marks.setdefault(row["metric"], {}).setdefault(row["role"], {})[row["label"]] = _mark(row, ends, units)
    low, high = ends
    step = (
        1 if high - low < 0.55 else 2
    )  # on a longer axis the texts of all tenths would touch; .5 is always one of them
    tenths = [k for k in range(round(low * 10), round(high * 10) + 1) if (k - 5) % step == 0]
    axes = [
        Axis(
            name=MEASURES[metric],
            ticks={number(k / 10, 1): _place(k / 10, ends) for k in tenths},
            chance=_place(CHANCE, ends),
            nulls=roles.get(NULL, {}),
            limit=next(iter(roles.get(LIMIT, {}).values()), None),
        )
        for metric, roles in marks.items()
    ]
    nothing = Mark(text="—", note="not measured")
    labels = dict.fromkeys(values.filter(role=METHOD)["label"])
    lines = [(label, [roles.get(METHOD, {}).get(label, nothing) for roles in marks.values()]) for label in labels]
    return Plot(caption=caption, axes=axes, lines=lines)


def _place(value: float, ends: tuple[float, float]) -> float:
    return round(100 * (value - ends[0]) / (ends[1] - ends[0]), 2)


def _mark(row: Row, ends: tuple[float, float], units: str) -> Mark:
    if row["estimate"] is None:
        return Mark(text="—", note=f"undefined: {row['reason']}")
    notes = [] if row["low"] is None else [f"[{number(row['low'])}, {number(row['high'])}]"]
    notes += [f"few {row['short']} {units}"] if row["short"] else []
    notes += ["above the bar"] if row["above"] else []
    spans: list[tuple[float, float] | None] = []
    for low, high in ((row["low"], row["high"]), (row["low_retrained"], row["high_retrained"])):
        places = None if low is None else (_place(low, ends), _place(high, ends))
        spans.append(places and (places[0], round(places[1] - places[0], 2)))
    return Mark(
        text=number(row["estimate"]) + ("†" if row["short"] else ""),
        note="; ".join(notes),
        at=_place(row["estimate"], ends),
        inner=spans[0],
        outer=spans[1],
        kind=" ".join([*(["above"] if row["above"] else []), *(["few"] if row["short"] else [])]),
    )
