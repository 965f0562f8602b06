"""What an evaluation says of a data set, in sentences and tables that a terminal and a page show alike."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import polars as pl

from dualread.apps.evaluate.answer_sets import set_table
from dualread.apps.evaluate.claims import filter_table
from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.apps.evaluate.graded import grading_lines, wrong_pairs
from dualread.apps.evaluate.metrics import UNDEFINED
from dualread.apps.evaluate.printed import (
    DataSetReport,
    Difference,
    Estimate,
    EvaluationReport,
    PValue,
    ReportTable,
    number,
)
from dualread.apps.evaluate.results import Results
from dualread.apps.evaluate.subgroups import group_tables
from dualread.apps.evaluate.thresholds import threshold_table
from dualread.apps.evaluate.verdicts import SHOWN, findings, verdicts
from dualread.data.tables.contract import REPORT
from dualread.evaluation.answer_metrics import FEW_IMAGES, NOISE_FLOOR, WITH_PERCENTILES
from dualread.evaluation.explained import COUNTS, METRICS
from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.evaluation.metrics.grounding import MINIMUM_IMAGES
from dualread.evaluation.side_by_side import LENT

_MOST_DONORS = 5  # that a sentence lists


def evaluation_report(results: Results) -> EvaluationReport:
    """Return what is said of an evaluation."""
    parts = []
    for cells in results.parts:
        told = verdicts(cells, cells.rows_of(results.metrics))
        lines = list(findings(told))
        parts.append(
            DataSetReport(
                cells=cells,
                heading=_heading(cells),
                verdicts=told,
                findings=lines,
                remarks=list(_remarks(results, cells)),
                metrics=list(_metric_tables(results, cells)),
                counts=list(_count_tables(results, cells)),
                asked=list(_asked(results, cells)),
            )
        )
    return EvaluationReport(
        notes=results.notes,
        parts=parts,
        graded=list(grading_lines(results.graded)),
        warnings=[*results.warnings, *results.unused],
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


def _asked(results: Results, cells: EvaluationData) -> Iterator[ReportTable]:
    """Yield what was asked for: differences, thresholds, filters of claims, answer sets, and groups."""
    if results.differences is not None:
        yield _difference_table(results, cells, cells.rows_of(results.differences).filter(pl.col("n") > 0))
    if results.thresholds is not None:
        yield threshold_table(cells.rows_of(results.thresholds), cells)
    if results.claim_filter is not None:
        yield filter_table(cells.rows_of(results.claim_filter), cells, results.left_out)
    if results.answer_sets is not None:
        yield set_table(cells.rows_of(results.answer_sets))
    if results.groups is not None:
        yield from group_tables(results.groups, cells)


def _metric_tables(results: Results, cells: EvaluationData) -> Iterator[ReportTable]:
    """Yield every metric of every method, with its interval and what it means; answer types are tables of their own."""
    metrics, is_one = cells.rows_of(results.metrics), len(cells.methods) == 1
    for subset in cells.subsets:
        rows = metrics.filter(
            pl.col("metric").is_in(list(METRICS)), pl.col("reason").ne_missing(NO_PAIRS), subset=subset
        )
        by_method = _by_method(metrics.filter(subset=subset))
        order = {name: k for k, name in enumerate(rows["metric"].unique(maintain_order=True))}
        texts, said, explained = [], [], set()
        for row in sorted(rows.iter_rows(named=True), key=lambda row: order[row["metric"]]):
            name = row["metric"]
            estimate = Estimate(row["estimate"], row["low"], row["high"])
            texts.append((name, *([] if is_one else [row["method"]]), estimate, row["n"], row["n_clusters"]))
            meaning = "" if name in explained else METRICS[name]  # beside the first method
            said.append(row["reason"] or "; ".join(filter(None, [meaning, _remark(row, by_method, cells.unit)])))
            explained |= set() if row["reason"] else {name}
        note = (
            "ece15 has no interval: it contains an error by chance, which resamples would add once more."
            " squared_calibration_error leaves it out"
        )
        has_ece = rows.filter(pl.col("estimate").is_not_null(), metric="ece15").height
        yield ReportTable(
            caption="Every metric of all answers" if subset == "all" else f"Answers of type {subset}",
            columns=(
                "metric",
                *([] if is_one else ["method"]),
                "estimate [95%]",
                "n",
                cells.cluster or "rows",
            ),
            rows=texts,
            remarks=said,
            notes=[note] if has_ece else [],
        )


def _by_method(metrics: pl.DataFrame) -> dict[tuple[str, str], dict]:
    return {(row["method"], row["metric"]): row for row in metrics.iter_rows(named=True)}


def _remark(row: dict, by_method: Mapping[tuple[str, str], dict], unit: str) -> str:
    """Return the remark on a metric: undefined resamples, or what the images of a CCG-AUC are enough for, and ties."""

    def estimate(name: str) -> float | None:
        return by_method.get((row["method"], name), {}).get("estimate")

    if row["metric"] == "ece15":
        if (floor := estimate(NOISE_FLOOR)) is None:
            return ""
        if is_by_chance(row["estimate"], floor):
            return f"not above {number(floor, 4)}, which calibrated confidences reach by chance"
        return f"above {number(floor, 4)}, which calibrated confidences rarely exceed by chance"
    if not row["metric"].endswith("_ccg_auc"):
        few = _few_of_a_kind(row["metric"], [row["method"]], by_method, unit)
        undefined = estimate(f"{row['metric']}{UNDEFINED}")
        return few or (f"{undefined:.0f} resamples undefined" if undefined else "")
    kind, said = row["metric"].removesuffix("_ccg_auc"), []
    prefix = "" if kind == "natural" else f"{kind}_"
    few = [
        f"{estimate(f'{prefix}{side}_images'):.0f} {side} {unit}s"
        for side in ("source", "donor")
        if estimate(f"{kind}_few_{side}s")
    ]
    if few:
        told = estimate(f"{kind}_detectable")
        enough = f"tells {told:.2f} from .5" if told else "tells nothing from .5"
        said.append(f"underpowered: only {' and '.join(few)}, {enough} (power .8)")
    if ties := estimate(f"{kind}_ties"):
        said.append(f"{ties:.0%} ties")
    return "; ".join(said)


def _few_of_a_kind(metric: str, methods: Collection[str], by_method: Mapping[tuple[str, str], dict], unit: str) -> str:
    """Return which kind of answers is on few images (or what else `unit` is) only, for a metric that rests on both."""
    counted = []
    for kind in ("right", "wrong"):
        counts = [
            by_method[method, f"images_with_{kind}"]["estimate"] for method in methods if metric in WITH_PERCENTILES
        ]
        if counts and min(counts) < FEW_IMAGES:
            counted.append(f"{min(counts):.0f} {unit}{'' if min(counts) == 1 else 's'} with {kind} answers")
    return f"only {' and '.join(counted)}" if counted else ""


def _count_tables(results: Results, cells: EvaluationData) -> Iterator[ReportTable]:
    """Yield the counts behind metrics of pairs, where there are some, and the most common pairs that count as wrong."""
    metrics = cells.rows_of(results.metrics).filter(subset="all")
    if not metrics.filter(metric="natural_ccg_auc")["reason"].eq_missing(NO_PAIRS).all():
        by_method = _by_method(metrics)
        yield ReportTable(
            caption="Counts behind these metrics, which are no measures of quality",
            columns=("count", *cells.methods),
            rows=[(name, *(by_method[method, name]["estimate"] for method in cells.methods)) for name in COUNTS],
            remarks=[words.replace("{units}", f"{cells.unit}s") for words in COUNTS.values()],
        )
    for name in cells.graded["table"].unique(maintain_order=True):
        graded = cells.graded.filter(table=name)
        if not (pairs := wrong_pairs(graded)).is_empty():
            n_right, n_empty = int(graded["correct"].sum()), graded["answer"].null_count()
            yield ReportTable(
                caption=(
                    f"The most common pairs that count as wrong in the table of {name}, in which {n_right} of"
                    f" {len(graded)} answers are right and {n_empty} are empty; graded.csv has every row"
                ),
                columns=("answer", "reference", "n"),
                rows=pairs.select("answer", "reference_answer", "n").rows(),
                remarks=["one stands in the other" if contained else "" for contained in pairs["contained"]],
            )


def _difference_table(results: Results, cells: EvaluationData, rows: pl.DataFrame) -> ReportTable:
    by_method = _by_method(cells.rows_of(results.metrics).filter(subset="all"))
    texts, said = [], []
    for row in rows.iter_rows(named=True):
        p_values = (PValue(row[name], row[f"{name}_at_most"]) for name in ("p", "p_holm"))
        difference = Difference(row["estimate"], row["low"], row["high"])
        texts.append((row["metric"], f"{row['method']} - {row['baseline']}", difference, *p_values))
        few = f"underpowered: fewer than {MINIMUM_IMAGES} {row['short']} {cells.unit}s" if row["short"] else ""
        pair = (row["method"], row["baseline"])
        said.append(row["reason"] or few or _few_of_a_kind(row["metric"], pair, by_method, cells.unit))
    return ReportTable(
        caption=(
            f"Differences on the same {cells.unit}s between these answers of the methods; p (Holm) is adjusted for the"
            " number of baselines. Methods that were trained with one seed may differ otherwise when trained again"
        ),
        columns=("metric", "method - baseline", "difference [95%]", "p", "p (Holm)"),
        rows=texts,
        remarks=said,
        names=(0, 1),
        brief={k for k, metric in enumerate(rows["metric"]) if metric in SHOWN},
    )
