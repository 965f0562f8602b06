"""What an evaluation says of each data set: sentences, five numbers of each method with a verdict, tables and plots."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.apps.evaluate.graded import grading_lines
from dualread.apps.evaluate.printed import (
    BAD,
    GOOD,
    SHOWN,
    UNCLEAR,
    DataSetReport,
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


def evaluation_report(results: Results) -> EvaluationReport:
    """Return what is said of an evaluation."""
    return EvaluationReport(
        notes=results.notes,
        parts=[_data_set_report(results, cells) for cells in results.parts],
        graded=list(grading_lines(results.graded)),
        warnings=[*results.warnings, *results.unused],
    )


def _data_set_report(results: Results, cells: EvaluationData) -> DataSetReport:
    told = _verdicts(cells, cells.rows_of(results.metrics))
    return DataSetReport(
        cells=cells,
        heading=_heading(cells),
        verdicts=told,
        findings=list(_findings(told)),
        remarks=list(_remarks(results, cells)),
        forests=_forests(results, cells),
        metrics=list(metric_tables(results, cells)),
        counts=list(count_tables(results, cells)),
        asked=list(asked_tables(results, cells)),
    )


def _heading(cells: EvaluationData) -> str:
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


def _remarks(results: Results, cells: EvaluationData) -> Iterator[str]:
    """Yield sentences about a data set: its intervals, and what has to be known to compare methods and read metrics."""
    methods, metrics = cells.methods.values(), cells.rows_of(results.metrics)
    has_pairs = any(not isinstance(evaluated.pairs, str) for evaluated in methods)
    if results.replicates == 0:
        yield f"no intervals{' but those of pairs' if has_pairs else ''} (--replicates 0)"
    elif all(evaluated.answers["cluster_id"].n_unique() == 1 for evaluated in methods):
        yield f"no intervals: there is only one {cells.cluster or 'row'}, so nothing to resample"
    else:
        drawn = f"95% intervals: {results.replicates} resamples of {cells.cluster or 'rows'}, seed {results.seed}"
        drawn += "; of accuracy, error_rate and hce90: binomial, for as many answers as are independent"
        drawn += "; of CCG-AUC, VRS and VBR: without each source and donor in turn" if has_pairs else ""
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
    for pairs, answers in ((evaluated.pairs, evaluated.answers) for evaluated in methods):
        donors = [] if isinstance(pairs, str) else pairs["donor_cluster_id"]
        others |= {name for name in donors if not name.startswith(LENT)} - set(answers["cluster_id"])
    if others:
        more = f", ... ({len(others)} in all)" if len(others) > _MOST_DONORS else ""
        shown = ", ".join(sorted(others)[:_MOST_DONORS]) + more
        yield f"donors whose {cells.cluster} has no answer in {cells.source}, each a cluster by itself: {shown}"
    for row in metrics.filter(metric="auroc", subset="all").iter_rows(named=True):
        if row["high"] is not None and row["high"] < 0.5 and cells.confidence is not None:
            yield (
                f"{row['method']}: the interval of its AUROC lies below .5: higher seems to mean less sure. If it is an"
                f" uncertainty, give it the other sign: --columns score=-{cells.confidence}"
            )
    if metrics["reason"].eq_missing(NO_PAIRS).any():
        yield "CCG-AUC needs a table of donor pairs (--pairs)"


def _verdicts(cells: EvaluationData, metrics: pl.DataFrame) -> dict[str, list[MethodVerdict]]:
    """Return the five numbers of each method on a data set; without pairs, four."""
    told = {}
    for method in cells.methods:
        rows = {row["metric"]: row for row in metrics.filter(subset="all", method=method).to_dicts()}
        told[method] = [_verdict(rows, metric, cells) for metric in SHOWN if rows[metric]["reason"] != NO_PAIRS]
    return told


def _verdict(rows: Mapping[str, dict[str, Any]], metric: str, cells: EvaluationData) -> MethodVerdict:
    row = rows[metric]
    if row["estimate"] is None:
        return MethodVerdict(metric=metric, value="-", interval="", words=f"undefined: {row['reason']}")
    ends = "" if row["low"] is None else f"[{number(row['low'])}, {number(row['high'])}]"
    if metric == ECE.name and (floor := rows[NOISE_FLOOR]["estimate"]) is not None:
        ends = f"by chance {number(floor)}"
    words, kind = _WORDS[metric](rows, row, cells)
    if row["reason"]:  # why it has no interval
        words, kind = row["reason"], UNCLEAR
    return MethodVerdict(metric=metric, value=number(row["estimate"]), interval=ends, words=words, kind=kind)


def _of_auroc(rows: Mapping[str, dict], row: dict, cells: EvaluationData) -> tuple[str, str]:
    if row["low"] is None:
        counts = {kind: rows[f"images_with_{kind}"]["estimate"] for kind in ("right", "wrong")}
        few = [f"{n:.0f} with {kind}" for kind, n in counts.items() if n is not None and n < FEW_IMAGES]
        because = f"{cells.unit}s: {', '.join(few)} answers" if few else "nothing to resample"
        return f"no interval: {because}", UNCLEAR
    return _beside_half(
        row,
        "right answers get more confidence than wrong ones",
        "wrong answers get MORE confidence than right ones",
        "not shown to tell right from wrong answers",
    )


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
    return _beside_half(
        row,
        "confidence falls with another image",
        "confidence RISES with another image",
        "not shown to depend on the image",
    )


def _beside_half(row: dict, above: str, below: str, neither: str) -> tuple[str, str]:
    """Return what an interval says that lies above .5, below it, or on both sides."""
    return (above, GOOD) if row["low"] > 0.5 else (below, BAD) if row["high"] < 0.5 else (neither, UNCLEAR)


_WORDS = {
    ACCURACY.name: lambda rows, row, cells: (f"of {row['n']} answers", UNCLEAR),
    AUROC.name: _of_auroc,
    ECE.name: _of_ece,
    AURC.name: lambda rows, row, cells: (
        f"mean error of the most confident; {number(1.0 - rows[ACCURACY.name]['estimate'])} without an order",
        UNCLEAR,
    ),
    NATURAL_CCG_AUC.name: _of_ccg,
}


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
            yield ScreenLine(text=f"{name}: {words}: {who}", kind=kind, start=len(name) + 2)


def _forests(results: Results, cells: EvaluationData) -> dict[str, pl.DataFrame]:
    """Return what forest plots of a data set show: of its methods, under "", and of the groups of each column.

    A method is marked where its interval lies above .5. Groups are those that have an interval.
    """
    metrics = cells.rows_of(results.metrics).filter(subset="all")
    flags = {(row["method"], row["metric"]): row["estimate"] for row in metrics.iter_rows(named=True)}

    def few(method: str) -> str | None:
        sides = [side for side, flag in FEW_IMAGES_OF.items() if flags.get((method, f"natural_{flag}"))]
        return " and ".join(sides) or None

    estimates = [
        {**row, "short": few(row["method"]) if row["metric"] == "natural_ccg_auc" else None}
        for row in metrics.iter_rows(named=True)
        if row["reason"] != NO_PAIRS
    ]
    source, dataset = Path(cells.source).name, cells.dataset or ""
    labels = {method: method for method in cells.methods}
    shown = {"": list(rows_of(estimates, [], labels, study=source, backbone="", dataset=dataset))}
    if results.groups is not None:
        labels = {method: f"{method}: " if len(cells.methods) > 1 else "" for method in cells.methods}
        for (column,), rows in cells.rows_of(results.groups.metrics).group_by("by", maintain_order=True):
            shown[str(column)] = list(
                rows_of_groups(rows.to_dicts(), labels, study=source, backbone="", dataset=dataset)
            )
    return {name: pl.DataFrame(rows, schema=VALUES) for name, rows in shown.items() if rows or name == ""}
