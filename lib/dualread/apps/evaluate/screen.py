"""What an evaluation says first: five numbers of each method with their intervals, and what each means in words.

`dualread evaluate` prints it, `print(evaluation)` shows it, and evaluate.html tells it. All lines fit 100 columns.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.apps.text import aligned
from dualread.data.tables.claims import REPORT
from dualread.evaluation.answer_metrics import ACCURACY, AURC, AUROC, ECE, FEW_IMAGES, NOISE_FLOOR
from dualread.evaluation.claim_filter import RATES
from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.evaluation.statistics.proportion import ALPHA
from dualread.evaluation.subgroups import FEWEST
from dualread.evaluation.thresholds import CERTIFIED

if TYPE_CHECKING:
    from dualread.apps.evaluate.evaluation import Evaluation
    from dualread.apps.evaluate.subgroups import Groups

WIDTH = 100
MOST_METHODS = 12  # which leave room for what is found of them, on a screen of 24 lines
GOOD, BAD, UNCLEAR = "good", "bad", ""
SHOWN = {
    ACCURACY.name: "share of correct answers",
    AUROC.name: "right and wrong answers told apart",
    ECE.name: "calibration error, 15 bins",
    AURC.name: "error rate as answers are left out",
    NATURAL_CCG_AUC.name: "confidence follows the image",
}
_BY_GROUP = (ACCURACY.name, AUROC.name, ECE.name, NATURAL_CCG_AUC.name)


@dataclass(frozen=True, kw_only=True)
class MethodVerdict:
    """A number of a method, and what it says.

    Attributes:
        metric: The name of the metric.
        value: The number, or a dash.
        interval: Its 95% interval, or what stands beside it; empty for nothing.
        words: What it says, in at most 12 words.
        kind: GOOD, BAD or UNCLEAR.
    """

    metric: str
    value: str
    interval: str
    words: str
    kind: str = UNCLEAR


def short(value: float, digits: int = 3) -> str:
    """Return a number between -1 and 1 without a leading zero: .812, -.030, 1."""
    text = f"{value:.{digits}f}"
    text = text.removeprefix("-") if float(text) == 0.0 else text
    return str(int(value)) if value.is_integer() else text.replace("0.", ".", 1)


def p_text(value: float | None, at_most: bool | None, digits: int = 3) -> str:
    """Return a p-value, with "<=" where the resamples can say no more."""
    return "-" if value is None else f"{'<=' if at_most else ''}{value:.{digits}g}"


def verdicts(cells: EvaluationData, metrics: pl.DataFrame, method: str) -> list[MethodVerdict]:
    """Return the five numbers of a method on a data set; without pairs, four.

    Args:
        cells: The data set.
        metrics: Its rows of `Evaluation.metrics`.
        method: One of its methods.
    """
    rows = {row["metric"]: row for row in metrics.filter(subset="all", method=method).to_dicts()}
    return [_verdict(rows, metric, cells) for metric in SHOWN if rows[metric]["reason"] != NO_PAIRS]


def _verdict(rows: Mapping[str, dict[str, Any]], metric: str, cells: EvaluationData) -> MethodVerdict:
    row = rows[metric]
    if row["estimate"] is None:
        return MethodVerdict(metric=metric, value="-", interval="", words=f"undefined: {row['reason']}")
    interval = "" if row["low"] is None else f"[{short(row['low'])}, {short(row['high'])}]"
    if metric == ECE.name and (floor := rows[NOISE_FLOOR]["estimate"]) is not None:
        interval = f"by chance {short(floor)}"
    words, kind = _WORDS[metric](rows, row, cells)
    if row["reason"]:  # why it has no interval
        words, kind = row["reason"], UNCLEAR
    return MethodVerdict(metric=metric, value=short(row["estimate"]), interval=interval, words=words, kind=kind)


def _of_auroc(rows: Mapping[str, dict], row: dict, cells: EvaluationData) -> tuple[str, str]:
    if row["low"] is None:
        counts = {kind: rows[f"images_with_{kind}"]["estimate"] for kind in ("right", "wrong")}
        few = [f"{n:.0f} with {kind}" for kind, n in counts.items() if n is not None and n < FEW_IMAGES]
        because = f"{cells.unit}s: {', '.join(few)} answers" if few else "nothing to resample"
        return f"no interval: {because}", UNCLEAR
    if row["low"] > 0.5:
        return "right answers get more confidence than wrong ones", GOOD
    if row["high"] < 0.5:
        return "wrong answers get MORE confidence than right ones", BAD
    return "not shown to tell right from wrong answers", UNCLEAR


def _of_ece(rows: Mapping[str, dict], row: dict, cells: EvaluationData) -> tuple[str, str]:
    floor = rows[NOISE_FLOOR]["estimate"]
    if floor is None:
        return "no floor: nothing to resample", UNCLEAR
    if is_by_chance(row["estimate"], floor):
        return "no more than calibrated confidences have by chance", GOOD
    ends = rows["accuracy"]["estimate"], rows["calibration_in_the_large"]["estimate"]
    side = "" if None in ends else ", too high on average" if ends[1] < 0 else ", too low on average"
    return f"not calibrated{side}", BAD


def _of_ccg(rows: Mapping[str, dict], row: dict, cells: EvaluationData) -> tuple[str, str]:
    sides = [side for side in ("source", "donor") if rows[f"natural_few_{side}s"]["estimate"]]
    if sides or row["low"] is None:
        few = " and ".join(f"{rows[f'{side}_images']['estimate']:.0f} {side}" for side in sides)
        return f"too few {cells.unit}s{f' ({few})' if few else ''} for a verdict", UNCLEAR
    if row["low"] > 0.5:
        return "confidence falls with another image", GOOD
    if row["high"] < 0.5:
        return "confidence RISES with another image", BAD
    return "not shown to depend on the image", UNCLEAR


_WORDS = {
    ACCURACY.name: lambda rows, row, cells: (f"of {row['n']} answers", UNCLEAR),
    AUROC.name: _of_auroc,
    ECE.name: _of_ece,
    AURC.name: lambda rows, row, cells: (
        f"mean error of the most confident; {short(1.0 - rows[ACCURACY.name]['estimate'])} without an order",
        UNCLEAR,
    ),
    NATURAL_CCG_AUC.name: _of_ccg,
}


@dataclass(frozen=True, kw_only=True)
class ScreenLine:
    """A line of the screen and its kind; what a terminal may color is its text from `start` on."""

    text: str
    kind: str = UNCLEAR
    start: int = 0


def summary(evaluation: "Evaluation") -> Iterator[ScreenLine]:
    """Yield the lines of all data sets with their differences and thresholds, each of at most `WIDTH` characters."""
    for k, cells in enumerate(evaluation.parts):
        if k:
            yield ScreenLine(text="")
        yield from of_data_set(evaluation, cells)
        if evaluation.differences is not None:
            yield ScreenLine(text="")
            yield from _differences(cells.rows_of(evaluation.differences), f"{cells.unit}s")
        if evaluation.thresholds is not None:
            yield ScreenLine(text="")
            yield from _thresholds(cells.rows_of(evaluation.thresholds))
        if evaluation.claim_filter is not None:
            yield ScreenLine(text="")
            yield from filter_lines(cells.rows_of(evaluation.claim_filter))
        if evaluation.answer_sets is not None:
            yield ScreenLine(text="")
            yield from set_lines(cells.rows_of(evaluation.answer_sets))
        if evaluation.groups is not None:
            yield from group_lines(evaluation.groups, cells)


def wrapped(texts: Iterable[str]) -> Iterator[str]:
    """Yield sentences in lines of at most `WIDTH` characters; a longer word, such as a path, stays whole."""
    for text in texts:
        yield from textwrap.wrap(
            text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ) or [""]


def of_data_set(evaluation: "Evaluation", cells: EvaluationData) -> Iterator[ScreenLine]:
    """Yield the lines of one data set: of one method line by line, of several as a table and a line per metric."""
    metrics = cells.rows_of(evaluation.metrics)
    told = {method: verdicts(cells, metrics, method) for method in cells.methods}
    yield ScreenLine(text=_cut(heading(cells)))
    if len(told) > 1:
        yield from _side_by_side(told)
        return
    for verdict in next(iter(told.values())):
        numbers = f"{verdict.metric:<16}{verdict.value:>6}  {verdict.interval:<16}  "
        yield ScreenLine(text=_cut(numbers + verdict.words), kind=verdict.kind, start=len(numbers))


def heading(cells: EvaluationData) -> str:
    """Return what was evaluated: the table, the data set, and how many answers, images and methods there are."""
    counts = [len(evaluated.answers) for evaluated in cells.methods.values()]
    images = max(evaluated.answers["cluster_id"].n_unique() for evaluated in cells.methods.values())
    source = Path(cells.source).name
    source += "" if cells.dataset is None else f", {cells.dataset}"
    about = "" if cells.cluster is None else f", {images} {cells.unit}s"
    methods = f", {len(counts)} methods" if len(counts) > 1 else ""
    answers = "answers"
    if cells.has_claims:
        answers = f"claims of {cells.groups.group_by('method').agg(pl.n_unique(REPORT))[REPORT].max()} reports"
        about = "" if cells.cluster == REPORT else about
    return f"{source}: {max(counts)} {answers}{about}{methods}"


def _side_by_side(told: Mapping[str, Sequence[MethodVerdict]]) -> Iterator[ScreenLine]:
    metrics = list(dict.fromkeys(verdict.metric for numbers in told.values() for verdict in numbers))
    width = min(max(map(len, told), default=0), WIDTH - 16 * len(metrics))
    head = {"natural_ccg_auc": "natural_ccg"}
    yield ScreenLine(text=f"{'method':<{width}}" + "".join(f"{head.get(name, name):>16}" for name in metrics))
    for method, numbers in list(told.items())[:MOST_METHODS]:
        cells = {verdict.metric: verdict for verdict in numbers}
        line = "".join(f"{_compact(cells[name]) if name in cells else '-':>16}" for name in metrics)
        yield ScreenLine(text=f"{_cut(method, width):<{width}}{line}")
    if len(told) > MOST_METHODS:
        yield ScreenLine(text=f"... and {len(told) - MOST_METHODS} more methods")
    yield from sentences(told, WIDTH)


def sentences(told: Mapping[str, Sequence[MethodVerdict]], width: int | None = None) -> Iterator[ScreenLine]:
    """Yield, metric by metric, what was found of which methods, as many as fit; what is unclear is not said."""
    for name in SHOWN:
        by_words: dict[tuple[str, str], list[str]] = {}
        for method, numbers in told.items():
            for verdict in numbers:
                if verdict.metric == name and verdict.kind != UNCLEAR:
                    by_words.setdefault((verdict.words, verdict.kind), []).append(method)
        for (words, kind), methods in by_words.items():
            beginning = f"{name}: {words}: "
            who = "all" if len(methods) == len(told) else _named(methods, width and width - len(beginning))
            yield ScreenLine(text=beginning + who, kind=kind, start=len(name) + 2)


def _named(names: Sequence[str], width: int | None) -> str:
    """Return the names, or the first ones and how many others there are."""
    for n in range(len(names), -1, -1):
        others = f" and {len(names) - n} more" if n < len(names) else ""
        text = ", ".join(names[:n]) + others if n else f"{len(names)} methods"
        if width is None or len(text) <= width:
            break
    return text


def _differences(rows: pl.DataFrame, units: str) -> Iterator[ScreenLine]:
    shown = [row for row in rows.iter_rows(named=True) if row["metric"] in SHOWN and row["n"] > 0]
    yield ScreenLine(
        text=f"{'metric':<16}{'method - baseline':<34}{'difference':>10}  {'95% interval':<16}{'p':>9}{'p (Holm)':>12}"
    )
    for row in shown:
        pair = _cut(f"{row['method']} - {row['baseline']}", 33)
        ends = "" if row["low"] is None else f"[{_signed(row['low'])}, {_signed(row['high'])}]"
        value = "-" if row["estimate"] is None else _signed(row["estimate"])
        p, adjusted = (p_text(row[name], row[f"{name}_at_most"], 2) for name in ("p", "p_holm"))
        yield ScreenLine(text=f"{row['metric']:<16}{pair:<34}{value:>10}  {ends:<16}{p:>9}{adjusted:>12}")
    few = [row["metric"] for row in shown if row["short"]]
    if few:
        yield ScreenLine(text=f"too few {units} for a verdict: {', '.join(dict.fromkeys(few))}")


def _thresholds(rows: pl.DataFrame) -> Iterator[ScreenLine]:
    yield ScreenLine(
        text=f"{'target':<8}{'method':<26}{'rule':<11}{'threshold':>9}  {'share kept':<20}  {'risk of these':<20}"
    )
    for row in rows.iter_rows(named=True):
        cells = []
        for name in ("coverage", "risk"):
            ends = [row[f"{name}_{end}"] for end in ("low", "high")]
            interval = "" if None in ends else f" [{short(ends[0])}, {short(ends[1])}]"
            cells.append("-" if row[name] is None else short(row[name]) + interval)
        threshold = "none" if row["threshold"] is None else short(row["threshold"])
        start = f"{row['target_risk']:<8g}{_cut(row['method'], 25):<26}{row['rule']:<11}{threshold:>9}"
        yield ScreenLine(text=f"{start}  {cells[0]:<20}  {cells[1]:<20}".rstrip())


def filter_rows(rows: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    """Yield the cells of what is known per report, with all claims and with those that each certified filter keeps."""
    for row in rows.iter_rows(named=True):
        target = "all claims" if row["target_risk"] is None else short(row["target_risk"], 2)
        cells = [target, row["method"], row["loss"], "none" if row["threshold"] is None else short(row["threshold"])]
        for name in RATES:
            ends = [row[f"{name}_{end}"] for end in ("low", "high")]
            interval = "" if None in ends else f" {'-'.join(short(end, 2) for end in ends)}"
            cells.append("-" if row[name] is None else short(row[name]) + interval)
        yield *cells, row["reason"] or ""


FILTER_HEAD = ("target", "method", "loss", "threshold", "kept", "unsupported", "reports: none", "risk")


def filter_lines(rows: pl.DataFrame) -> Iterator[ScreenLine]:
    """Yield the table of `filter_rows`, and why there is no filter."""
    shown = list(filter_rows(rows))
    table = [(row[0], _cut(row[1], 18), *row[2:-1]) for row in ((*FILTER_HEAD, ""), *shown)]
    yield from (ScreenLine(text=_cut(text)) for text in aligned(table, numbers=(3,)))
    yield from (
        ScreenLine(text=text) for text in wrapped(dict.fromkeys(f"{row[2]}: {row[-1]}" for row in shown if row[-1]))
    )


def set_lines(rows: pl.DataFrame) -> Iterator[ScreenLine]:
    """Yield what answer sets are like, of all answers and by group."""
    table: list[tuple[str, ...]] = [
        (f"answer sets, miss {short(rows['miss'][0])}", "choices from p", "right one in", "size", "empty", "single")
    ]
    for row in rows.iter_rows(named=True):
        group = "" if row["by"] is None else f", {row['by']} {row['group'] or '(no value)'}"
        ends = "" if row["low"] is None else f" [{short(row['low'])}, {short(row['high'])}]"
        shares = [row[name] if row[name] is None else short(row[name]) for name in ("mean_size", "empty", "single")]
        covered = f"none: {row['reason']}" if row["reason"] else f"{short(row['coverage'])}{ends}"
        cut = "-" if row["threshold"] is None else short(row["threshold"])
        table.append((_cut(f"{row['method']}{group}", 30), cut, covered, *(share or "-" for share in shares)))
    yield from (ScreenLine(text=_cut(text)) for text in aligned(table, numbers=(1, 3, 4, 5)))


def group_lines(groups: "Groups", cells: EvaluationData) -> Iterator[ScreenLine]:
    """Yield what is said of the groups of each column; intervals are those that hold for all of them together."""
    for (column, method), of_column in cells.rows_of(groups.metrics).group_by("by", "method", maintain_order=True):
        rows = {(row["group"], row["metric"]): row for row in of_column.iter_rows(named=True)}
        sizes = {group: row for (group, metric), row in rows.items() if metric == ACCURACY.name}
        names = sorted((group for group in sizes if group is not None), key=lambda group: -sizes[group]["n"])
        metrics = [metric for metric in _BY_GROUP if any(rows[group, metric]["n"] for group in sizes)]
        about = f"by {column}" if len(cells.methods) == 1 else f"by {column}, {method}"
        table = [(_cut(about, 30), "answers", _cut(f"{cells.unit}s", 12), *metrics)]
        for group in (*names[:MOST_METHODS], *([None] if None in sizes else [])):
            numbers = (str(sizes[group]["n"]), str(sizes[group]["n_clusters"]))
            table.append(
                (_cut(group or "(no value)", 30), *numbers, *(_of_group(rows[group, name]) for name in metrics))
            )
        yield ScreenLine(text="")
        yield from (ScreenLine(text=text) for text in aligned(table, numbers=range(1, len(table[0]))))
        if len(names) > MOST_METHODS:
            yield ScreenLine(text=f"... and {len(names) - MOST_METHODS} more groups")
        worst = cells.rows_of(groups.worst).filter(pl.col("metric").is_in(metrics), by=column, method=method).to_dicts()
        told = _about_groups([sizes[group] for group in names], [*rows.values()], worst, f"{cells.unit}s")
        yield from (ScreenLine(text=text) for text in wrapped(told))
    if groups.thresholds is not None:
        certified = cells.rows_of(groups.thresholds).filter(rule=CERTIFIED)
        known = certified.drop_nulls("threshold")
        n_groups = f"{len(known)} of {len(certified)} certified thresholds of groups, which share delta"
        yield from (ScreenLine(text=text) for text in ("", n_groups))
        yield from _thresholds(
            known.head(MOST_METHODS).with_columns(method=pl.format("{} {}, {}", "by", "group", "method"))
        )


def _of_group(row: Mapping[str, Any]) -> str:
    ends = [short(row[f"simultaneous_{end}"], 2) for end in ("low", "high") if row["simultaneous_low"] is not None]
    return "-" if row["estimate"] is None else f"{short(row['estimate'])} {'-'.join(ends)}".rstrip()


def _about_groups(sizes: Sequence[dict], rows: Sequence[dict], worst: Sequence[dict], units: str) -> Iterator[str]:
    """Yield what is found of the groups of one column and method, whose rows of accuracy are `sizes`."""
    few = [row for row in sizes if row["n_clusters"] < FEWEST]
    if len(few) == len(sizes):
        n = max((row["n_clusters"] for row in sizes), default=0)
        yield f"no intervals: none of {len(sizes)} groups has {FEWEST} {units}, the largest has {n}; write larger ones"
        return
    none = f"; the {len(few)} groups with fewer than {FEWEST} {units} have none" if few else ""
    yield f"intervals: of all groups of the column together (95%){none}"
    for row in worst:
        if row["estimate"] is not None:
            value, ends = short(row["estimate"]), f"[{short(row['low'])}, {short(row['high'])}]"
            chosen = f"{row['group']!r}, {value}, of {row['n_groups']} groups"
            yield f"worst {row['metric']}: {chosen}; the worst group, whichever it is: {ends}"
    for metric in _BY_GROUP:
        tested = [row for row in rows if row["metric"] == metric and row["p_holm"] is not None]
        differing = [
            f"{row['group']!r} {_signed(row['difference'])} (p {p_text(row['p_holm'], row['p_holm_at_most'], 2)})"
            for row in tested
            if row["p_holm"] < ALPHA
        ]
        if tested:
            yield f"{metric} minus that of the rest (Holm): {', '.join(differing) or 'no group differs significantly'}"


def _signed(value: float) -> str:
    text = short(value)
    return text if text.startswith("-") or float(text) == 0.0 else f"+{text}"


def _compact(verdict: MethodVerdict) -> str:
    """Return a value and its interval with two decimals, ".812 .76-.89"; of the ECE, what is there by chance."""
    ends = verdict.interval.removeprefix("by chance ")
    if ends == verdict.interval:
        numbers = [part.strip("[] ") for part in ends.split(",")] if ends else []
        return f"{verdict.value} {'-'.join(short(float(end), 2) for end in numbers)}".rstrip()
    return f"{verdict.value} (≤{short(float(ends), 2)})"


def _cut(text: str, width: int = WIDTH) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
