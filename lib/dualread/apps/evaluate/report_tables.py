"""The tables of a report on one data set: every metric, the counts behind them, and what was asked for."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.apps.evaluate.graded import wrong_pairs
from dualread.apps.evaluate.metrics import UNDEFINED
from dualread.apps.evaluate.printed import SHOWN, Cell, Difference, Estimate, PValue, ReportTable, number
from dualread.apps.evaluate.results import Groups, Results
from dualread.apps.evaluate.thresholds import MODEL
from dualread.data.tables.contract import REPORT
from dualread.evaluation.answer_metrics import ACCURACY, AUROC, ECE, FEW_IMAGES, NOISE_FLOOR, WITH_PERCENTILES
from dualread.evaluation.claim_filter import RATES
from dualread.evaluation.explained import COUNTS, METRICS
from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.evaluation.metrics.grounding import FEW_IMAGES_OF, MINIMUM_IMAGES
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.evaluation.planning import ENOUGH, LARGEST, Expected, images_needed
from dualread.evaluation.statistics.proportion import ALPHA
from dualread.evaluation.subgroups import FEWEST
from dualread.evaluation.thresholds import CERTIFIED

Row = Mapping[str, Any]
_OF_GROUPS = (ACCURACY.name, AUROC.name, ECE.name, NATURAL_CCG_AUC.name)


def _table(
    caption: str,
    rows: Sequence[Row],
    columns: Sequence[tuple[str, str | Callable[[Row], Cell]]],
    remark: str = "reason",
    **more: Any,
) -> ReportTable:
    """Return a table of rows: under each head is a column of theirs, or what a function makes of a row."""
    cells = [tuple(row[cell] if isinstance(cell, str) else cell(row) for _, cell in columns) for row in rows]
    remarks = [row[remark] or "" for row in rows]
    return ReportTable(caption=caption, columns=[head for head, _ in columns], rows=cells, remarks=remarks, **more)


def _estimate(value: str = "estimate", low: str = "low", high: str = "high") -> Callable[[Row], Estimate]:
    return lambda row: Estimate(row[value], row[low], row[high])


def _rate(name: str) -> Callable[[Row], Estimate]:
    return _estimate(name, f"{name}_low", f"{name}_high")


def _target(row: Row) -> Cell:
    return "all claims" if row["target_risk"] is None else f"{row['target_risk']:g}"


def _threshold(row: Row) -> Cell:
    return "none" if row["threshold"] is None else row["threshold"]


def asked_tables(results: Results, cells: EvaluationData) -> Iterator[ReportTable]:
    """Yield what was asked for: differences, thresholds, filters of claims, answer sets, and groups."""
    if results.differences is not None:
        yield _difference_table(cells.rows_of(results.differences).filter(pl.col("n") > 0), results, cells)
    if results.thresholds is not None:
        rows = cells.rows_of(results.thresholds)
        yield _threshold_table(
            rows,
            caption="Answers kept above a threshold that the calibration answers choose; a certified one allows for"
            f" chance. Intervals (95%) are for new {cells.unit}s and this threshold; other calibration answers would"
            " choose another one",
            notes=list(_about_thresholds(rows.filter(rule=CERTIFIED), cells)),
        )
    if results.claim_filter is not None:
        yield _filter_table(cells.rows_of(results.claim_filter), cells, results.left_out)
    if results.answer_sets is not None:
        yield _set_table(cells.rows_of(results.answer_sets))
    if results.groups is not None:
        yield from _group_tables(results.groups, cells)


def metric_tables(results: Results, cells: EvaluationData) -> Iterator[ReportTable]:
    """Yield every metric of every method, with its interval and what it means; answer types are tables of their own."""
    for subset in cells.subsets:
        of_subset = cells.rows_of(results.metrics).filter(subset=subset)
        by_method = _by_method(of_subset)
        known = of_subset.filter(pl.col("metric").is_in(list(METRICS)), pl.col("reason").ne_missing(NO_PAIRS))
        order = known["metric"].unique(maintain_order=True).to_list()
        rows = sorted(known.to_dicts(), key=lambda row: order.index(row["metric"]))
        explained: set[str] = set()  # metrics, beside their first method
        for row in rows:
            if row["reason"]:
                row["remark"] = row["reason"]
                continue
            meaning = "" if row["metric"] in explained else METRICS[row["metric"]]
            explained.add(row["metric"])
            row["remark"] = "; ".join(filter(None, [meaning, _remark(row, by_method, cells.unit)]))
        note = (
            "ece15 has no interval: it contains an error by chance, which resamples would add once more."
            " squared_calibration_error leaves it out"
        )
        has_ece = any(row["metric"] == ECE.name and row["estimate"] is not None for row in rows)
        methods = [("method", "method")] if len(cells.methods) > 1 else []
        sizes = [("n", "n"), (cells.cluster or "rows", "n_clusters")]
        yield _table(
            "Every metric of all answers" if subset == "all" else f"Answers of type {subset}",
            rows,
            [("metric", "metric"), *methods, ("estimate [95%]", _estimate()), *sizes],
            "remark",
            notes=[note] if has_ece else [],
        )


def _by_method(metrics: pl.DataFrame) -> dict[tuple[str, str], dict]:
    return {(row["method"], row["metric"]): row for row in metrics.iter_rows(named=True)}


def _remark(row: Row, by_method: Mapping[tuple[str, str], Row], unit: str) -> str:
    """Return the remark on a metric: undefined resamples, or what the images of a CCG-AUC are enough for, and ties."""

    def estimate(name: str) -> float | None:
        return by_method.get((row["method"], name), {}).get("estimate")

    if row["metric"] == ECE.name:
        if (floor := estimate(NOISE_FLOOR)) is None:
            return ""
        if is_by_chance(row["estimate"], floor):
            return f"not above {number(floor, 4)}, which calibrated confidences reach by chance"
        return f"above {number(floor, 4)}, which calibrated confidences rarely exceed by chance"
    if not row["metric"].endswith("_ccg_auc"):
        undefined = estimate(f"{row['metric']}{UNDEFINED}")
        few = _few_of_a_kind(row["metric"], [row["method"]], by_method, unit)
        return few or (f"{undefined:.0f} resamples undefined" if undefined else "")
    kind, said = row["metric"].removesuffix("_ccg_auc"), []
    prefix = "" if kind == "natural" else f"{kind}_"
    few = [
        f"{estimate(f'{prefix}{side}_images'):.0f} {side} {unit}s"
        for side, flag in FEW_IMAGES_OF.items()
        if estimate(f"{kind}_{flag}")
    ]
    if few:
        told = estimate(f"{kind}_detectable")
        enough = f"tells {told:.2f} from .5" if told else "tells nothing from .5"
        said.append(f"underpowered: only {' and '.join(few)}, {enough} (power .8)")
    if ties := estimate(f"{kind}_ties"):
        said.append(f"{ties:.0%} ties")
    return "; ".join(said)


def _few_of_a_kind(metric: str, methods: Collection[str], by_method: Mapping[tuple[str, str], Row], unit: str) -> str:
    """Return which kind of answers is on few images (or what else `unit` is) only, for a metric that rests on both."""
    if metric not in WITH_PERCENTILES:
        return ""
    counted = []
    for kind in ("right", "wrong"):
        n = min(by_method[method, f"images_with_{kind}"]["estimate"] for method in methods)
        if n < FEW_IMAGES:
            counted.append(f"{n:.0f} {unit}{'' if n == 1 else 's'} with {kind} answers")
    return f"only {' and '.join(counted)}" if counted else ""


def count_tables(results: Results, cells: EvaluationData) -> Iterator[ReportTable]:
    """Yield the counts behind metrics of pairs, where there are some, and the most common pairs that count as wrong."""
    metrics = cells.rows_of(results.metrics).filter(subset="all")
    if not metrics.filter(metric=NATURAL_CCG_AUC.name)["reason"].eq_missing(NO_PAIRS).all():
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
            near = pl.when("contained").then(pl.lit("one stands in the other")).alias("near")
            yield _table(
                f"The most common pairs that count as wrong in the table of {name}, in which {n_right} of"
                f" {len(graded)} answers are right and {n_empty} are empty; graded.csv has every row",
                pairs.with_columns(near).to_dicts(),
                [("answer", "answer"), ("reference", "reference_answer"), ("n", "n")],
                "near",
            )


def _difference_table(rows: pl.DataFrame, results: Results, cells: EvaluationData) -> ReportTable:
    by_method = _by_method(cells.rows_of(results.metrics).filter(subset="all"))
    differences = rows.to_dicts()
    for row in differences:
        few = f"underpowered: fewer than {MINIMUM_IMAGES} {row['short']} {cells.unit}s" if row["short"] else ""
        pair = (row["method"], row["baseline"])
        row["reason"] = row["reason"] or few or _few_of_a_kind(row["metric"], pair, by_method, cells.unit)
    return _table(
        f"Differences on the same {cells.unit}s between these answers of the methods; p (Holm) is adjusted for the"
        " number of baselines. Methods that were trained with one seed may differ otherwise when trained again",
        differences,
        [
            ("metric", "metric"),
            ("method - baseline", lambda row: f"{row['method']} - {row['baseline']}"),
            ("difference [95%]", lambda row: Difference(row["estimate"], row["low"], row["high"])),
            ("p", lambda row: PValue(row["p"], row["p_at_most"])),
            ("p (Holm)", lambda row: PValue(row["p_holm"], row["p_holm_at_most"])),
        ],
        names=(0, 1),
        brief=SHOWN,
    )


def _threshold_table(rows: pl.DataFrame, caption: str, notes: Sequence[str]) -> ReportTable:
    """Return what thresholds keep; `rows` are those of `thresholds`."""
    columns = [("target", _target), ("method", "method"), ("rule", "rule"), ("threshold", _threshold)]
    columns += [("share kept", _rate("coverage")), ("risk of these", _rate("risk"))]
    return _table(caption, rows.to_dicts(), columns, names=(1,), notes=notes)


def _about_thresholds(certified: pl.DataFrame, cells: EvaluationData) -> Iterator[str]:
    """Yield sentences about certified thresholds; nothing can be certified of methods whose scores only rank."""
    bound = _bound(certified, "answer", None if cells.cluster is None else cells.unit)
    yield f"a certified threshold is wrong with a probability of at most {bound}"
    n = len(certified)
    if n > certified["share_delta"][0]:
        yield f"each one by itself; if you choose one of the {n} by what it certifies, add --share-delta {n}"
    without = certified.filter(pl.col("threshold").is_null(), ~pl.col("method").is_in(cells.ranked))
    methods: dict[tuple[float, str], list[str]] = {}
    for row in without.iter_rows(named=True):
        if sentence := _needed(row, cells.unit):
            methods.setdefault((row["target_risk"], sentence), []).append(row["method"])
    for (risk, sentence), names in methods.items():
        yield f"{', '.join(names)}, target {risk:g}: {sentence}"


def _bound(certified: pl.DataFrame, item: str, unit: str | None) -> str:
    """Return how often what is certified may be wrong, as long as no unit has too many items; None if each is one."""
    row, limit = certified.row(0, named=True), "max_per_image" if item == "answer" else "max_reports"
    shared = "" if row["share_delta"] == 1 else f" / {row['share_delta']}"
    bound = f"if {'rows' if item == 'answer' else f'{item}s'} are independent"
    if unit is not None:
        most, source = row[limit], f"--{limit.replace('_', '-')}"
        if most is None:
            most, source = max(certified[f"calibration_{limit}"]), f"the most among the calibration {item}s"
        bound = f"as long as no {unit} has more than {most} {item}{'' if most == 1 else 's'} ({source})"
    return f"{row['delta']:g}{shared}, {bound}"


def _needed(row: Row, unit: str) -> str | None:
    """Return how many images would certify something; None where accuracy or AUROC leave no room for that."""
    accuracy, auroc = row["calibration_accuracy"], row["calibration_auroc"]
    per_image = max(round(row["calibration_n"] / row["calibration_images"]), 1)
    if auroc is None or round(auroc, 2) in (0.5, 1.0) or auroc < 0.5:
        return None
    # Rounded, because the sample does not know more, and so that methods that are alike are simulated once.
    expected = Expected(
        accuracy=min(max(round(accuracy, 2), 0.01), 0.99),
        auroc=round(auroc, 2),
        per_image=per_image,
        max_per_image=row["max_per_image"] or row["calibration_max_per_image"],
    )
    n = images_needed(expected, target_risk=row["target_risk"], delta=row["delta"] / row["share_delta"])
    each = f"{unit}s with {per_image} {'answer' if per_image == 1 else 'answers'} each"
    alike = f"{MODEL} of this accuracy ({expected.accuracy:.2f}) and AUROC ({expected.auroc:.2f})"
    if n is None:
        return f"with {alike}, {LARGEST // per_image} {each} would not be enough"
    enough = f"certify something in {ENOUGH:.0%} of cases; these are {row['calibration_images']}"
    return f"with {alike}, about {n} {each} {enough}"


def _filter_table(rows: pl.DataFrame, cells: EvaluationData, left_out: Mapping[str, int]) -> ReportTable:
    """Return what is known per report, with all claims, and with those that each certified filter keeps."""
    note = (
        "of claims: the loss of a report is the share of unsupported claims among those that are kept (share), or 1 if"
        " any of these is unsupported (any), and 0 if none is kept; risk is its mean over reports"
    )
    if len(certified := rows.filter(pl.col("target_risk").is_not_null())):
        bound = _bound(certified, "report", None if cells.cluster == REPORT else cells.unit)
        note += f". A filter is certified wrongly with a probability of at most {bound}"
    columns = [("target", _target), ("method", "method"), ("loss", "loss"), ("threshold", _threshold)]
    columns += [({"none_kept": "reports: none"}.get(name, name), _rate(name)) for name in RATES]
    caption = "Per report" + "".join(f". Left out: {n} ({why})" for why, n in left_out.items())
    return _table(caption, rows.to_dicts(), columns, names=(1,), notes=[note])


def _set_table(rows: pl.DataFrame) -> ReportTable:
    """Return what answer sets are like, of all answers and by group; `rows` are those of `answer_sets`."""
    return _table(
        f"Answer sets, which may miss the right choice in {number(rows['miss'][0])} of answers: all choices"
        " that are at least as probable as the smallest p",
        rows.to_dicts(),
        [
            ("answer sets of", "method"),
            ("group", lambda row: "" if row["by"] is None else f"{row['by']} {row['group'] or '(no value)'}"),
            ("right one in", _estimate("coverage")),
            *[("smallest p", "threshold"), ("size", "mean_size"), ("empty", "empty"), ("single", "single")],
        ],
        names=(0, 1),
    )


def _group_tables(groups: Groups, cells: EvaluationData) -> Iterator[ReportTable]:
    """Yield what is known of the groups of each column and method, the largest first, and of their thresholds."""
    if groups.thresholds is not None:
        certified = cells.rows_of(groups.thresholds).filter(rule=CERTIFIED)
        known = certified.drop_nulls("threshold").with_columns(method=pl.format("{} {}, {}", "by", "group", "method"))
        n_groups = f"{len(known)} of {len(certified)} certified thresholds of groups, which share delta"
        yield _threshold_table(known, caption=n_groups, notes=[n_groups])
    interval = _estimate("estimate", "simultaneous_low", "simultaneous_high")
    for (column, method), of_column in cells.rows_of(groups.metrics).group_by("by", "method", maintain_order=True):
        rows = {(row["group"], row["metric"]): row for row in of_column.iter_rows(named=True)}
        sizes = [row for (_, metric), row in rows.items() if metric == ACCURACY.name]
        sizes.sort(key=lambda row: (row["group"] is not None, -row["n"]))
        metrics = [name for name in _OF_GROUPS if any(rows[row["group"], name]["n"] for row in sizes)]
        worst = cells.rows_of(groups.worst).filter(pl.col("metric").is_in(metrics), by=column, method=method).to_dicts()
        of_method = f", {method}" if len(cells.methods) > 1 else ""
        yield ReportTable(
            caption=f"By {column}, {method}: intervals hold for all groups together",
            columns=(f"by {column}{of_method}", "answers", f"{cells.unit}s", *metrics),
            rows=[
                (
                    row["group"] or "(no value)",
                    *(row["n"], row["n_clusters"]),
                    *(interval(rows[row["group"], name]) for name in metrics),
                )
                for row in sizes
            ],
            notes=list(_about_groups([row for row in sizes if row["group"] is not None], rows, worst, cells.unit)),
        )


def _about_groups(
    sizes: Sequence[Row], rows: Mapping[tuple[str, str], Row], worst: Sequence[Row], unit: str
) -> Iterator[str]:
    """Yield what is found of the groups of one column and method, whose rows of accuracy are `sizes`."""
    few = [row for row in sizes if row["n_clusters"] < FEWEST]
    if len(few) == len(sizes):
        n = max((row["n_clusters"] for row in sizes), default=0)
        yield f"no intervals: none of {len(sizes)} groups has {FEWEST} {unit}s, the largest has {n}; write larger ones"
        return
    none = f"; the {len(few)} groups with fewer than {FEWEST} {unit}s have none" if few else ""
    yield f"intervals: of all groups of the column together (95%){none}"
    for row in worst:
        if row["estimate"] is not None:
            chosen = f"{row['group']!r}, of {row['n_groups']} groups"
            shown = Estimate(row["estimate"], row["low"], row["high"])
            yield f"worst {row['metric']}: {chosen}: {shown}, the interval of the worst group, whichever it is"
    for metric in _OF_GROUPS:
        tested = [row for (_, name), row in rows.items() if name == metric and row["p_holm"] is not None]
        differing = [
            f"{row['group']!r} {Difference(row['difference'])} (p {PValue(row['p_holm'], row['p_holm_at_most'])})"
            for row in tested
            if row["p_holm"] < ALPHA
        ]
        if tested:
            yield f"{metric} minus that of the rest (Holm): {', '.join(differing) or 'no group differs significantly'}"
