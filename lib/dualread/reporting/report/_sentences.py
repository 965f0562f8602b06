"""The English of the findings: a verdict on each tested difference, and the sentences about them."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from dualread.evaluation.metrics.grounding import ENOUGH_IMAGES, MINIMUM_IMAGES
from dualread.reporting.tables.format import number, p_text, signed
from dualread.reporting.tables.significance import LEVEL, is_significant

Row = Mapping[str, Any]

NOT_TESTED = (
    "This study tests no method against the confidence that its model states, nor against a null that never sees the "
    "image. Its numbers describe each method; they do not show that one method is better than another."
)
NO_NULLS = (
    "The study has no null methods, which never see the image. So nothing here shows that a confidence depends on more "
    "than the question."
)
NO_PAIRS = "CCG-AUC was not measured: the study has no donor pairs here."
READING = (
    "AUROC: how well confidence separates correct answers from incorrect ones. In brackets: 95% intervals over "
    "other test images, for these seeds. p: p-value of the paired difference, adjusted by Holm's method over all "
    "methods that the study compares, for these seeds; if there are several, then for retrained actors. A difference "
    f"is significant if each p is below {number(LEVEL, 2)}. A null method predicts from the question, or from question "
    "and answer, without the image. CCG-AUC: how often confidence is higher with the question's own image than with a "
    "donor's image; .5 is chance."
)


class Verdict(Enum):
    """What a tested difference shows."""

    ABOVE = "above"
    BELOW = "below"
    UNCLEAR = "cannot be told from chance"
    UNDEFINED = "has no value"
    UNTESTED = "not tested"


def verdict(row: Row | None) -> Verdict:
    """Return what a difference, method minus bar, shows where higher values are better; None: not tested."""
    if row is None:
        return Verdict.UNTESTED
    if row["estimate"] is None or row["p_holm"] is None:
        return Verdict.UNDEFINED
    if not is_significant(row):
        return Verdict.UNCLEAR
    return Verdict.ABOVE if row["estimate"] > 0 else Verdict.BELOW


def bars(labels: Mapping[str, str], nulls: frozenset[str]) -> str:
    """Name the bars: the stated confidence of the same model, and the nulls."""
    stated = [f"the stated confidence ({label})" for bar, label in labels.items() if bar not in nulls]
    of_nulls = [label for bar, label in labels.items() if bar in nulls]
    count = {1: "the null", 2: "both nulls"}.get(len(of_nulls), f"all {len(of_nulls)} nulls")
    return listed([*stated, *([f"{count} ({listed(of_nulls)})"] if of_nulls else [])])


def headline(method: str, place: str, against: str, verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    """Return one or two sentences on a method.

    Args:
        method: Its label.
        place: The in-distribution data set's label.
        against: The bars, by name.
        verdicts: By the backbone's label, one per bar.
    """
    decided = {Verdict.ABOVE, Verdict.BELOW, Verdict.UNCLEAR}
    absent = [label for label, found in verdicts.items() if decided.isdisjoint(found)]
    tested = {label: found for label, found in verdicts.items() if label not in absent}
    clear = [label for label, found in tested.items() if set(found) == {Verdict.ABOVE}]
    rest = [label for label in tested if label not in clear]
    better = f"On {place}, {method} separates correct answers from incorrect ones significantly better than {against}"
    if not tested:
        return f"On {place}, {method} cannot be compared with {against}: no difference has a p-value."
    if not rest:
        text = f"{better}, on {listed(clear)}."
    elif clear:
        text = f"{better} on {listed(clear)}, but not on {listed(rest)}."
    elif any({Verdict.ABOVE, Verdict.BELOW}.intersection(found) for found in tested.values()):
        all_of = "all of these: " if len(tested[rest[0]]) > 1 else ""
        text = f"On {place}, {method} does not significantly outperform {all_of}{against}"
        text += f"{',' if all_of else ''} on {listed(rest, last=' or ')}."
    else:
        text = f"On {place}, {method} is neither significantly better nor worse than {against} on "
        text += f"{listed(rest, last=' or ')}: the study cannot tell them apart."
    return text + (f" For {listed(absent)} no difference has a p-value." if absent else "")


def value(method: str, measure: str, row: Row) -> str:
    """Return the sentence on a method's own value."""
    if row["estimate"] is None:
        return f"{method}: {measure} is undefined ({row['reason']})."
    seeds = f"mean over {row['n_seeds']} seeds"
    if row["n_seeds"] == 1:
        seeds = "one run, so the variation between training runs is unknown"
    rests = f"{_count(row['n'], 'question')} on {_count(row['n_clusters'], 'image')}"
    return f"{method}: {measure} {number(row['estimate'])}{_interval(row, number)} ({seeds}; {rests})."


def comparisons(rows: Mapping[str, Row | None]) -> list[str]:
    """Return the sentences on the differences in AUROC from each bar, by the bar's label."""
    found: dict[Verdict, list[str]] = {}
    for label, row in rows.items():
        found.setdefault(verdict(row), []).append(_against(label, row))
    openings = {
        Verdict.ABOVE: "Significantly above",
        Verdict.BELOW: "Significantly below",
        Verdict.UNCLEAR: "Not distinguishable from",
        Verdict.UNDEFINED: "No value or p-value for the difference from",
        Verdict.UNTESTED: "Not tested against",
    }
    return [f"{opening} {listed(found[kind])}." for kind, opening in openings.items() if kind in found]


def among_others(method: str, rows: Mapping[str, Row | None]) -> list[str]:
    """Return the sentence on the differences in AUROC from the methods that are no bars; none without such methods."""
    kinds = {label: verdict(row) for label, row in rows.items()}
    by_kind = {kind: [label for label, of in kinds.items() if of is kind] for kind in Verdict}
    if not (n := sum(len(by_kind[kind]) for kind in (Verdict.ABOVE, Verdict.BELOW, Verdict.UNCLEAR))):
        return []
    better = listed(by_kind[Verdict.BELOW]) or "none"
    return [
        f"Of {_count(n, 'further method')}, significantly better than {method}: {better}; significantly worse: "
        f"{len(by_kind[Verdict.ABOVE])}; not distinguishable: {len(by_kind[Verdict.UNCLEAR])}."
    ]


def grounding(measure: str, row: Row, nulls: Mapping[str, Row | None]) -> str:
    """Return the sentence on a CCG-AUC: does confidence fall with a donor's image, and more than that of the nulls?"""
    if row["estimate"] is None:
        return f"{measure} is undefined ({row['reason']})."
    if row["short"]:
        return (
            f"{measure} is underpowered: the decisive pairs have fewer than {MINIMUM_IMAGES} distinct {row['short']} "
            f"images. It is no evidence either way: it takes about {ENOUGH_IMAGES} on both sides to tell .6 from .5."
        )
    text = f"{measure} {number(row['estimate'])}{_interval(row, number)}"
    kinds = {label: verdict(found) for label, found in nulls.items()}
    if set(kinds.values()) <= {Verdict.UNTESTED, Verdict.UNDEFINED}:
        return f"{text}; not tested against a null, so it does not show that confidence comes from the image."
    if set(kinds.values()) == {Verdict.ABOVE}:
        cleared = listed([_against(label, found) for label, found in nulls.items()])
        text += f", significantly above {cleared}: confidence falls with another image by more than question and "
        return f"{text}answer explain."
    unclear = listed([_against(label, nulls[label]) for label, kind in kinds.items() if kind is not Verdict.ABOVE])
    return f"{text}, not significantly above {unclear}: no evidence that confidence comes from the image."


def listed(names: Sequence[str], last: str = " and ") -> str:
    """Return "a", "a and b" or "a, b and c"; `last` stands before the last name."""
    return last.join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def p_words(p: float, *, at_most: bool = False) -> str:
    """Return a p-value in a sentence: "= .034", "≤ .004" or "< .001"."""
    text = p_text(p, at_most=at_most)
    return f"{text[0]} {text[1:]}" if text[0] in "<≤" else f"= {text}"


def _against(label: str, row: Row | None) -> str:
    """Return the name of a bar with the difference from it."""
    if row is None:
        return label
    if row["estimate"] is None:
        return f"{label} ({row['reason']})"
    p = ", no p-value"
    if row["p_holm"] is not None:
        p = f", p {p_words(row['p_holm'], at_most=row['p_holm_at_most'])}"
        if row["p_holm_retrained"] is not None:
            p += f"; retrained, p {p_words(row['p_holm_retrained'])}"
    return f"{label} ({signed(row['estimate'])}{_interval(row, signed)}{p})"


def _interval(row: Row, show: Any) -> str:
    return "" if row["low"] is None else f" [{show(row['low'])}, {show(row['high'])}]"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
