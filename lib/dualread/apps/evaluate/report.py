"""What an evaluation says of each data set: sentences, five numbers of each method with a verdict, tables and plots."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.apps.evaluate.graded import wrong_pairs
from dualread.apps.evaluate.printed import (
    BAD,
    GOOD,
    SHOWN,
    UNCLEAR,
    DataSetReport,
    Estimate,
    EvaluationReport,
    MethodVerdict,
    ScreenLine,
    number,
)
from dualread.apps.evaluate.report_tables import asked_tables, count_tables, metric_tables
from dualread.apps.evaluate.results import Results
from dualread.data.tables.contract import REPORT
from dualread.evaluation.answer_metrics import ACCURACY, AURC, AUROC, ECE, FEW_IMAGES, NOISE_FLOOR
from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.evaluation.metrics.grounding import FEW_IMAGES_OF
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.evaluation.side_by_side import LENT
from dualread.reporting.forest import VALUES, rows_of, rows_of_groups

_MOST_DONORS = 5  # that a sentence lists
_LONGEST = 16  # characters of an answer that are shown
# What an interval says that lies above .5, below it, or on both sides.
_BESIDE_HALF = {
    AUROC.name: (
        ("right answers get more confidence than wrong ones", GOOD),
        ("wrong answers get MORE confidence than right ones", BAD),
        ("not shown to tell right from wrong answers", UNCLEAR),
    ),
    NATURAL_CCG_AUC.name: (
        ("confidence falls with another image", GOOD),
        ("confidence RISES with another image", BAD),
        ("not shown to depend on the image", UNCLEAR),
    ),
}


def evaluation_report(results: Results) -> EvaluationReport:
    """Return what is said of an evaluation."""
    return EvaluationReport(
        notes=results.notes,
        graded=list(grading_lines(results.graded)),
        parts=[_data_set_report(results, cells) for cells in results.parts],
        warnings=[*results.warnings, *results.unused],
    )


def grading_lines(rows: pl.DataFrame) -> Iterator[str]:
    """Yield what was graded, of `graded_rows`: counts, and the most common pairs that count as wrong."""
    for table in rows["table"].unique(maintain_order=True):
        graded = rows.filter(table=table)
        n, n_wrong = len(graded), int((~graded["correct"]).sum())
        empty = f", {graded['answer'].null_count() / n:.1%} empty" if "answer" in graded.columns else ""
        yield f"{table}: {n - n_wrong} of {n} right{empty}"
        if (pairs := wrong_pairs(graded)).is_empty():
            continue
        yield "  most common wrong answers, each with its reference (~: one stands in the other):"
        texts = [
            f"{n:>6} {'~' if contained else ' '} {answer[:_LONGEST]!r} / {reference[:_LONGEST]!r}"
            for answer, reference, n, contained in pairs.rows()
        ]
        half = (len(texts) + 1) // 2
        yield from (
            f"{first:<50}{second}".rstrip() for first, second in zip_longest(texts[:half], texts[half:], fillvalue="")
        )


def _data_set_report(results: Results, cells: EvaluationData) -> DataSetReport:
    metrics = cells.rows_of(results.metrics).filter(subset="all")
    rows = {
        method: {row["metric"]: row for row in metrics.filter(method=method).to_dicts()} for method in cells.methods
    }
    verdicts = {
        method: [_verdict(of_method, name, cells.unit) for name in SHOWN if of_method[name]["reason"] != NO_PAIRS]
        for method, of_method in rows.items()
    }
    return DataSetReport(
        cells=cells,
        heading=_heading(cells),
        verdicts=verdicts,
        findings=list(_findings(verdicts)),
        remarks=list(_remarks(results, cells)),
        forests=_forests(results, cells, rows),
        metrics=list(metric_tables(results, cells)),
        counts=list(count_tables(results, cells)),
        asked=list(asked_tables(results, cells)),
    )


def _heading(cells: EvaluationData) -> str:
    """Return what was evaluated: the table, the data set, and how many answers, images and methods there are."""
    counts = [len(evaluated.answers) for evaluated in cells.methods.values()]
    images = max(evaluated.answers["cluster_id"].n_unique() for evaluated in cells.methods.values())
    about = "" if cells.cluster is None else f", {images} {cells.unit}s"
    methods = f", {len(counts)} methods" if len(counts) > 1 else ""
    answers = "answers"
    if cells.has_claims:
        answers = f"claims of {cells.groups.group_by('method').agg(pl.n_unique(REPORT))[REPORT].max()} reports"
        about = "" if cells.cluster == REPORT else about
    return f"{cells.title}: {max(counts)} {answers}{about}{methods}"


def _remarks(results: Results, cells: EvaluationData) -> Iterator[str]:
    """Yield sentences about a data set: its intervals, and what has to be known to compare methods and read metrics."""
    methods, metrics = cells.methods.values(), cells.rows_of(results.metrics)
    pairs = [(joined.pairs, joined.answers) for joined in methods if not isinstance(joined.pairs, str)]
    if results.replicates == 0:
        yield f"no intervals{' but those of pairs' if pairs else ''} (--replicates 0)"
    elif all(evaluated.answers["cluster_id"].n_unique() == 1 for evaluated in methods):
        yield f"no intervals: there is only one {cells.cluster or 'row'}, so nothing to resample"
    else:
        drawn = f"95% intervals: {results.replicates} resamples of {cells.cluster or 'rows'}, seed {results.seed}"
        drawn += "; of accuracy, error_rate and hce90: binomial, for as many answers as are independent"
        drawn += "; of CCG-AUC, VRS and VBR: without each source and donor in turn" if pairs else ""
        alone = ". Without a column image_id, the intervals are too narrow if several answers share an image"
        yield drawn + (alone if cells.cluster is None else "")
    if len({frozenset(evaluated.answers["sample_id"]) for evaluated in methods}) > 1:
        listed = ", ".join(f"{name}: {len(evaluated.answers)}" for name, evaluated in cells.methods.items())
        yield f"the methods answer different questions ({listed} answers): compare them with care"
    if cells.ranked:
        yield (
            f"scores, of which only the order counts: {', '.join(sorted(cells.ranked))}; metrics of probabilities have"
            " no value, those of ranks (AUROC, AURC, CCG-AUC) have"
        )
    others = set()
    for frame, answers in pairs:
        donors = {name for name in frame["donor_cluster_id"] if not name.startswith(LENT)}
        others |= donors - set(answers["cluster_id"])
    if others:
        more = f", ... ({len(others)} in all)" if len(others) > _MOST_DONORS else ""
        shown = ", ".join(sorted(others)[:_MOST_DONORS]) + more
        yield f"donors whose {cells.cluster} has no answer in {cells.source}, each a cluster by itself: {shown}"
    for method in metrics.filter(pl.col("high") < 0.5, metric="auroc", subset="all")["method"]:
        if cells.confidence is not None:
            yield (
                f"{method}: the interval of its AUROC lies below .5: higher seems to mean less sure. If it is an"
                f" uncertainty, give it the other sign: --columns score=-{cells.confidence}"
            )
    if metrics["reason"].eq_missing(NO_PAIRS).any():
        yield "CCG-AUC needs a table of donor pairs (--pairs)"


def _verdict(rows: Mapping[str, dict[str, Any]], metric: str, unit: str) -> MethodVerdict:
    """Return a number of a method and what it says, of the rows of all its metrics."""
    row = rows[metric]
    if row["estimate"] is None:
        return MethodVerdict(metric=metric, estimate=Estimate(None), words=f"undefined: {row['reason']}")
    words, kind = _words(rows, metric, unit)
    if row["reason"]:  # why it has no interval
        words, kind = row["reason"], UNCLEAR
    estimate = Estimate(row["estimate"], row["low"], row["high"])
    floor = rows[NOISE_FLOOR]["estimate"] if metric == ECE.name else None
    return MethodVerdict(metric=metric, estimate=estimate, by_chance=floor, words=words, kind=kind)


def _words(rows: Mapping[str, dict[str, Any]], metric: str, unit: str) -> tuple[str, str]:
    """Return what a defined number says, and whether it is good."""
    row, value = rows[metric], {name: row["estimate"] for name, row in rows.items()}
    if metric == ACCURACY.name:
        return f"of {row['n']} answers", UNCLEAR
    if metric == AURC.name:
        return f"mean error of the most confident; {number(1.0 - value[ACCURACY.name])} without an order", UNCLEAR
    if metric == ECE.name:
        if (floor := value[NOISE_FLOOR]) is None:
            return "no floor: nothing to resample", UNCLEAR
        if is_by_chance(row["estimate"], floor):
            return "no more than calibrated confidences have by chance", GOOD
        too_low = value["calibration_in_the_large"]
        side = "" if too_low is None else f", too {'high' if too_low < 0 else 'low'} on average"
        return f"not calibrated{side}", BAD
    if metric == NATURAL_CCG_AUC.name:
        sides = [side for side, flag in FEW_IMAGES_OF.items() if value[f"natural_{flag}"]]
        if sides or row["low"] is None:
            few = " and ".join(f"{value[f'{side}_images']:.0f} {side}" for side in sides)
            return f"too few {unit}s{f' ({few})' if few else ''} for a verdict", UNCLEAR
    elif row["low"] is None:
        counts = {kind: value[f"images_with_{kind}"] for kind in ("right", "wrong")}
        few = [f"{n:.0f} with {kind}" for kind, n in counts.items() if n is not None and n < FEW_IMAGES]
        because = f"{unit}s: {', '.join(few)} answers" if few else "nothing to resample"
        return f"no interval: {because}", UNCLEAR
    above, below, neither = _BESIDE_HALF[metric]
    return above if row["low"] > 0.5 else below if row["high"] < 0.5 else neither


def _findings(told: Mapping[str, Sequence[MethodVerdict]]) -> Iterator[ScreenLine]:
    """Yield, metric by metric, what was found of which methods; what is unclear is not said."""
    for name in SHOWN:
        by_words: dict[tuple[str, str], list[str]] = {}
        for method, numbers in told.items():
            for verdict in numbers:
                if verdict.metric == name and verdict.kind != UNCLEAR:
                    by_words.setdefault((verdict.words, verdict.kind), []).append(method)
        for (words, kind), methods in by_words.items():
            who = "all" if len(methods) == len(told) else ", ".join(methods)
            yield ScreenLine(f"{name}: {words}: {who}", kind, len(name) + 2)


def _forests(
    results: Results, cells: EvaluationData, by_method: Mapping[str, Mapping[str, dict[str, Any]]]
) -> dict[str, pl.DataFrame]:
    """Return what forest plots of a data set show: of its methods, under "", and of the groups of each column.

    A method is marked where its interval lies above .5. Groups are those that have an interval.
    """
    estimates = []
    for rows in by_method.values():
        few = [side for side, flag in FEW_IMAGES_OF.items() if rows[f"natural_{flag}"]["estimate"]]
        short = {NATURAL_CCG_AUC.name: " and ".join(few) or None}
        estimates += [{**row, "short": short.get(name)} for name, row in rows.items() if row["reason"] != NO_PAIRS]
    place = {"study": Path(cells.source).name, "backbone": "", "dataset": cells.dataset or ""}
    methods = rows_of(estimates, [], {method: method for method in cells.methods}, limit=None, **place)
    shown = {"": list(methods)}
    if results.groups is not None:
        labels = {method: f"{method}: " if len(cells.methods) > 1 else "" for method in cells.methods}
        for (column,), rows in cells.rows_of(results.groups.metrics).group_by("by", maintain_order=True):
            shown[str(column)] = list(rows_of_groups(rows.to_dicts(), labels, **place))
    return {name: pl.DataFrame(rows, schema=VALUES) for name, rows in shown.items() if rows or name == ""}
