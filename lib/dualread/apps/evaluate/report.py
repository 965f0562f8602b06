"""The lines that `dualread evaluate` prints: what each metric means, how a number is written, what is remarked on it.

With --expect, there are no answers yet: how many calibration images would certify a threshold.
"""

import argparse
from collections.abc import Collection, Iterator, Mapping

import polars as pl

from dualread.apps.evaluate.claims import about_filters
from dualread.apps.evaluate.evaluation import Evaluation
from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.apps.evaluate.graded import grading_lines
from dualread.apps.evaluate.metrics import UNDEFINED
from dualread.apps.evaluate.screen import ScreenLine, filter_lines, group_lines, p_text, summary, wrapped
from dualread.apps.evaluate.thresholds import ThresholdOptions
from dualread.apps.text import aligned
from dualread.errors import ConfigError
from dualread.evaluation.answer_metrics import FEW_IMAGES, NOISE_FLOOR, WITH_PERCENTILES
from dualread.evaluation.explained import COUNTS, METRICS
from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.evaluation.metrics.grounding import MINIMUM_IMAGES
from dualread.evaluation.planning import ENOUGH, LARGEST, REPETITIONS, Expected, images_needed, planned

MODEL = "calibrated confidences"  # of which answers are simulated, to say how many images are needed


def interval_text(row: Mapping) -> str:
    """Return the ends of an interval, `low` and `high` of a row; "" where there is none."""
    return "" if row["low"] is None else f"{number_text(row['low'])} to {number_text(row['high'])}"


def number_text(value: float | None) -> str:
    """Return a whole number without decimals, so that "1" means exactly 1, and other numbers with four."""
    return "-" if value is None else str(int(value)) if value.is_integer() else f"{value:.4f}"


def remark_on(row: dict, cell: dict[tuple[str, str], dict], unit: str) -> str:
    """Return the remark on a metric: undefined resamples, or what the images of a CCG-AUC are enough for, and ties.

    Resampled are values of `unit`.
    """

    def estimate(name: str) -> float | None:
        return cell.get((row["method"], name), {}).get("estimate")

    if row["metric"] == "ece15":
        if (floor := estimate(NOISE_FLOOR)) is None:
            return ""
        if is_by_chance(row["estimate"], floor):
            return f"not above {floor:.4f}, which calibrated confidences reach by chance"
        return f"above {floor:.4f}, which calibrated confidences rarely exceed by chance"
    if not row["metric"].endswith("_ccg_auc"):
        few = few_of_a_kind(row["metric"], [row["method"]], cell, unit)
        undefined = estimate(f"{row['metric']}{UNDEFINED}")
        return few or (f"{undefined:.0f} resamples undefined" if undefined else "")
    kind, remarks = row["metric"].removesuffix("_ccg_auc"), []
    prefix = "" if kind == "natural" else f"{kind}_"
    few = [
        f"{estimate(f'{prefix}{side}_images'):.0f} {side} {unit}s"
        for side in ("source", "donor")
        if estimate(f"{kind}_few_{side}s")
    ]
    if few:
        told = estimate(f"{kind}_detectable")
        enough = f"tells {told:.2f} from .5" if told else "tells nothing from .5"
        remarks.append(f"underpowered: only {' and '.join(few)}, {enough} (power .8)")
    if ties := estimate(f"{kind}_ties"):
        remarks.append(f"{ties:.0%} ties")
    return "; ".join(remarks)


def few_of_a_kind(metric: str, methods: Collection[str], cell: Mapping[tuple[str, str], dict], unit: str) -> str:
    """Return which kind of answers is on few images (or what else `unit` is) only, for a metric that rests on both."""
    counted = []
    for kind in ("right", "wrong"):
        counts = [cell[method, f"images_with_{kind}"]["estimate"] for method in methods if metric in WITH_PERCENTILES]
        if counts and min(counts) < FEW_IMAGES:
            counted.append(f"{min(counts):.0f} {unit}{'' if min(counts) == 1 else 's'} with {kind} answers")
    return f"only {' and '.join(counted)}" if counted else ""


_NO_PAIRS = "CCG-AUC needs a table of donor pairs (--pairs)"
_SHOWN = 5  # number of donors that a message lists
_WITHOUT_INTERVAL = (
    "ece15 has no interval: it contains an error by chance, which resamples would add once more."
    " squared_calibration_error leaves it out"
)
_RANKS_ONLY = "metrics of probabilities have no value, those of ranks (AUROC, AURC, CCG-AUC) have"


def first(evaluation: Evaluation) -> Iterator[ScreenLine]:
    """Yield the lines of one screen, each of at most 100 characters: five numbers of each method, and what they say."""
    yield from (ScreenLine(text=text) for text in wrapped(evaluation.notes))
    yield from summary(evaluation)
    yield ScreenLine(text="")
    for line in grading_lines(evaluation.graded):
        yield from (ScreenLine(text=text) for text in ([line] if line.startswith(" ") else wrapped([line])))
    remarks: list[str] = []
    for cells in evaluation.parts:
        _, intervals, *others = _about(cells, evaluation)
        metrics = cells.rows_of(evaluation.metrics)
        remarks += [intervals.partition("; ")[0], *others, *_turned(cells, metrics)]
        remarks += [_NO_PAIRS] if metrics["reason"].eq_missing(NO_PAIRS).any() else []
        if evaluation.thresholds is not None:
            remarks += _remarks(cells.rows_of(evaluation.thresholds), unit=_unit(cells), ranked=cells.ranked)
        if evaluation.claim_filter is not None:
            remarks.append(about_filters(cells.rows_of(evaluation.claim_filter), cells))
    remarks += [*evaluation.warnings, *evaluation.unused]
    remarks.append("--all prints every metric, what it means, and what it rests on.")
    yield from (ScreenLine(text=text) for text in wrapped(dict.fromkeys(remarks)))


def lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield everything: all metrics, all subsets, and the counts."""
    for cells in evaluation.parts:
        yield from _of_data_set(evaluation, cells)
        yield ""
    yield from grading_lines(evaluation.graded)
    yield from evaluation.warnings
    yield from evaluation.unused


def _of_data_set(evaluation: Evaluation, cells: EvaluationData) -> Iterator[str]:
    yield from _about(cells, evaluation)
    metrics = cells.rows_of(evaluation.metrics)
    if metrics["reason"].eq_missing(NO_PAIRS).any():
        yield _NO_PAIRS
    for subset in cells.subsets:
        yield ""
        if len(cells.subsets) > 1:
            yield f"answer_type: {subset}"
        yield from _metrics(cells, metrics.filter(subset=subset))
    yield from _turned(cells, metrics)
    if not metrics["reason"].eq_missing(NO_PAIRS).all():
        yield ""
        yield from _counts(cells, metrics.filter(subset="all"))
    if evaluation.differences is not None:
        yield ""
        yield from _differences(cells, cells.rows_of(evaluation.differences), metrics)
    if evaluation.thresholds is not None:
        yield ""
        yield from _thresholds(cells, cells.rows_of(evaluation.thresholds))
        yield from _remarks(cells.rows_of(evaluation.thresholds), unit=_unit(cells), ranked=cells.ranked)
    if evaluation.claim_filter is not None:
        filters = cells.rows_of(evaluation.claim_filter)
        yield from ("", *(line.text for line in filter_lines(filters)), about_filters(filters, cells))
    if evaluation.groups is not None:
        yield from (line.text for line in group_lines(evaluation.groups, cells))


def _about(cells: EvaluationData, evaluation: Evaluation) -> Iterator[str]:
    counts = {name: len(evaluated.answers) for name, evaluated in cells.methods.items()}
    source = cells.source if cells.dataset is None else f"{cells.source}, {cells.dataset}"
    yield f"{source}: {sum(counts.values())} answers, {len(counts)} method{'s' if len(counts) > 1 else ''}"
    yield _about_intervals(cells, evaluation)
    if len({frozenset(evaluated.answers["sample_id"]) for evaluated in cells.methods.values()}) > 1:
        listed = ", ".join(f"{name}: {n}" for name, n in counts.items())
        yield f"the methods answer different questions ({listed} answers): compare them with care"
    if cells.ranked:
        yield f"scores, of which only the order counts: {', '.join(sorted(cells.ranked))}; {_RANKS_ONLY}"
    others = set()
    for evaluated in cells.methods.values():
        if not isinstance(evaluated.pairs, str):
            others |= set(evaluated.pairs["donor_cluster_id"]) - set(evaluated.answers["cluster_id"])
    if others:
        shown = ", ".join(sorted(others)[:_SHOWN]) + (f", ... ({len(others)} in all)" if len(others) > _SHOWN else "")
        yield f"donors whose {cells.cluster} has no answer in {cells.source}, each a cluster by itself: {shown}"


def _about_intervals(cells: EvaluationData, evaluation: Evaluation) -> str:
    has_pairs = any(not isinstance(evaluated.pairs, str) for evaluated in cells.methods.values())
    if evaluation.replicates == 0:
        return f"no intervals{' but those of pairs' if has_pairs else ''} (--replicates 0)"
    if all(evaluated.answers["cluster_id"].n_unique() == 1 for evaluated in cells.methods.values()):
        return f"no intervals: there is only one {cells.cluster or 'row'}, so nothing to resample"
    drawn = f"95% intervals: {evaluation.replicates} resamples of {cells.cluster or 'rows'}, seed {evaluation.seed}"
    drawn += "; of accuracy, error_rate and hce90: binomial, for as many answers as are independent"
    if has_pairs:
        drawn += "; of CCG-AUC, VRS and VBR: without each source and donor in turn"
    if cells.cluster is None:
        drawn += ". Without a column image_id, the intervals are too narrow if several answers share an image"
    return drawn


def _metrics(cells: EvaluationData, metrics: pl.DataFrame) -> Iterator[str]:
    """Yield one line per (metric, method); the column of methods is left out if there is only one."""
    cell = {(row["method"], row["metric"]): row for row in metrics.iter_rows(named=True)}
    table = [("metric", "method", "estimate", "95% interval", "n", cells.cluster or "rows", "")]
    for metric in (name for name in dict.fromkeys(metrics["metric"]) if name in METRICS):
        meaning = METRICS[metric]  # beside the first method
        for method in cells.methods:
            row = cell[method, metric]
            if row["reason"] != NO_PAIRS:
                counts = (str(row["n"]), str(row["n_clusters"]))
                remark = row["reason"] or "; ".join(filter(None, [meaning, remark_on(row, cell, cells.unit)]))
                table.append((metric, method, number_text(row["estimate"]), interval_text(row), *counts, remark))
                meaning = ""
    if len(cells.methods) == 1:
        yield from aligned([(row[0], *row[2:]) for row in table], numbers=(1, 2, 3, 4))
    else:
        yield from aligned(table, numbers=(2, 3, 4, 5))
    if any(cell[method, "ece15"]["estimate"] is not None for method in cells.methods):
        yield _WITHOUT_INTERVAL


def _turned(cells: EvaluationData, metrics: pl.DataFrame) -> Iterator[str]:
    """Yield a sentence about each method whose confidence seems to grow where answers are wrong."""
    for row in metrics.filter(metric="auroc", subset="all").iter_rows(named=True):
        if row["high"] is not None and row["high"] < 0.5 and cells.confidence is not None:
            yield (
                f"{row['method']}: the interval of its AUROC lies below .5: higher seems to mean less sure. If it is an"
                f" uncertainty, give it the other sign: --columns score=-{cells.confidence}"
            )


def _counts(cells: EvaluationData, metrics: pl.DataFrame) -> Iterator[str]:
    """Yield one line per count, with the value of every method; they are no measures of quality."""
    estimates = {(row["metric"], row["method"]): row["estimate"] for row in metrics.iter_rows(named=True)}
    table = [("count", *cells.methods, "")]
    for name, words in COUNTS.items():
        meaning = words.replace("{units}", f"{_unit(cells)}s")
        table.append((name, *(number_text(estimates.get((name, method))) for method in cells.methods), meaning))
    yield from aligned(table, numbers=range(1, len(cells.methods) + 1))


def _differences(cells: EvaluationData, rows: pl.DataFrame, metrics: pl.DataFrame) -> Iterator[str]:
    cell = {(row["method"], row["metric"]): row for row in metrics.filter(subset="all").iter_rows(named=True)}
    yield f"difference between these answers of the methods, on the same {cells.unit}s; p (Holm) is adjusted for"
    yield "the number of baselines. Methods that were trained with one seed may differ otherwise when trained again"
    table = [("metric", "method - baseline", "difference", "95% interval", "p", "p (Holm)", "")]
    for row in rows.iter_rows(named=True):
        if row["n"] > 0:
            pair = f"{row['method']} - {row['baseline']}"
            p, adjusted = (p_text(row[name], row[f"{name}_at_most"]) for name in ("p", "p_holm"))
            few = f"underpowered: fewer than {MINIMUM_IMAGES} {row['short']} {cells.unit}s" if row["short"] else ""
            pair_of_methods = (row["method"], row["baseline"])
            remark = row["reason"] or few or few_of_a_kind(row["metric"], pair_of_methods, cell, cells.unit)
            table.append((row["metric"], pair, number_text(row["estimate"]), interval_text(row), p, adjusted, remark))
    yield from aligned(table, numbers=(2, 3, 4, 5))


def _thresholds(cells: EvaluationData, rows: pl.DataFrame) -> Iterator[str]:
    yield "answers kept above a threshold that the calibration answers choose; a certified one allows for chance"
    table = [["target risk", "method", "rule", "threshold", "kept", "95%", "risk of these", "95%", ""]]
    for row in rows.iter_rows(named=True):
        values = [number_text(row["threshold"])]
        for name in ("coverage", "risk"):
            values += [number_text(row[name]), interval_text({end: row[f"{name}_{end}"] for end in ("low", "high")})]
        table.append([f"{row['target_risk']:g}", row["method"], row["rule"], *values, row["reason"] or ""])
    yield from aligned(table, numbers=(3, 4, 5, 6, 7))
    yield f"95%: intervals for new {cells.unit}s and this threshold; other calibration answers would choose another one"


def _unit(cells: EvaluationData) -> str:
    return "row" if cells.cluster is None else cells.unit


def _remarks(rows: pl.DataFrame, *, unit: str, ranked: Collection[str]) -> Iterator[str]:
    """Yield lines about the certified thresholds of one data set; nothing can be certified of `ranked` methods."""
    certified = rows.filter(rule="certified")
    row, n = certified.row(0, named=True), len(certified)
    shared = "" if row["share_delta"] == 1 else f" / {row['share_delta']}"
    level = f"{row['delta']:g}{shared}"
    bound = "if rows are independent"
    if unit != "row":
        stated = row["max_per_image"]
        most = max(certified["calibration_max_per_image"]) if stated is None else stated
        source = "the most among the calibration answers" if stated is None else "--max-per-image"
        bound = f"as long as no {unit} has more than {most} answer{'' if most == 1 else 's'} ({source})"
    yield f"a certified threshold is wrong with a probability of at most {level}, {bound}"
    if n > row["share_delta"]:
        yield f"each one by itself; if you choose one of the {n} by what it certifies, add --share-delta {n}"
    for row in certified.filter(pl.col("threshold").is_null(), ~pl.col("method").is_in(ranked)).iter_rows(named=True):
        if sentence := _needed(row, unit):
            yield f"{row['method']}, target {row['target_risk']:g}: {sentence}"


def _needed(row: dict, unit: str) -> str | None:
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
    answers = "answer" if per_image == 1 else "answers"
    alike = f"{MODEL} of this accuracy ({expected.accuracy:.2f}) and AUROC ({expected.auroc:.2f})"
    if n is None:
        return f"with {alike}, {LARGEST // per_image} {unit}s with {per_image} {answers} each would not be enough"
    return (
        f"with {alike}, about {n} {unit}s with {per_image} {answers} each certify something in {ENOUGH:.0%} of cases;"
        f" these are {row['calibration_images']}"
    )


def plan(options: argparse.Namespace) -> Iterator[str]:
    """Yield lines about how many calibration images certify a threshold, for what a user expects.

    Raises:
        ConfigError: An option is missing or out of range.
    """
    if not options.target_risk:
        raise ConfigError("--expect: needs --target-risk, the largest error rate of the answers that are kept.")
    wanted = ThresholdOptions(
        target_risks=options.target_risk,
        delta=options.delta,
        share_delta=options.share_delta,
        max_per_image=options.max_per_image or options.per_image,
    )
    accuracy, auroc = options.expect
    try:
        expected = Expected(
            accuracy=accuracy,
            auroc=auroc,
            per_image=options.per_image,
            max_per_image=wanted.max_per_image or options.per_image,
        )
    except ValueError as error:
        raise ConfigError(f"--expect {accuracy:g} {auroc:g} --per-image {options.per_image}: {error}") from error
    each = "1 answer" if expected.per_image == 1 else f"{expected.per_image} answers"
    most = "" if expected.max_per_image == expected.per_image else f" (at most {expected.max_per_image})"
    yield (
        f"calibration images with {each} each{most}, {MODEL} with accuracy {expected.accuracy:g} and AUROC"
        f" {expected.auroc:g}, delta {wanted.level:g}, {REPETITIONS} simulated sets for each number of images"
    )
    for risk in options.target_risk:
        sizes = planned(expected, target_risk=risk, delta=wanted.level)
        yield ""
        if not sizes:
            yield f"target risk {risk:g}: {LARGEST // expected.per_image} images are not enough"
            continue
        table = [("target risk", "images", "certify a threshold", "answers kept, mean")]
        table += [(f"{risk:g}", str(size.images), f"{size.certified:.0%}", f"{size.kept:.0%}") for size in sizes]
        yield from aligned(table, numbers=(0, 1, 2, 3))
