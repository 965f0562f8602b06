"""The metrics of every method on one data set, and the differences between methods on their common questions.

Metrics are computed as the workflow's stage `compute_metrics` computes them, differences as `compare_methods` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.errors import ConfigError, DataError, did_you_mean
from dualread.evaluation import controls
from dualread.evaluation.answer_metrics import CHANNEL_METRICS, FURTHER_METRICS, WITH_REPLICATES
from dualread.evaluation.columns import CellColumns
from dualread.evaluation.contrasts import Results, Run, compare
from dualread.evaluation.estimates import MethodEstimates, estimate
from dualread.evaluation.pair_metrics import COMPARABLE, PairValues
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.clusters import in_unit
from dualread.evaluation.without_confidences import OF_PROBABILITIES, WITHOUT_PROBABILITIES, without_numbers
from dualread.schema.columns import CONTRASTS, METRICS
from dualread.schema.metrics import ContrastSpec

UNDEFINED = "_undefined_replicates"
_OF_METRICS = ("dataset", "method", "subset", "metric", "estimate", "low", "high", "n", "n_clusters", "reason")
# These metrics need conditions, or results of the answer parser, that a plain table does not hold.
LEFT_OUT = {*CHANNEL_METRICS, *controls.FIXED_METRICS, *controls.SHUFFLED_METRICS}
_OF_DIFFERENCES = (
    *("dataset", "method", "baseline", "metric", "estimate", "low", "high", "p", "p_at_most", "p_holm"),
    *("p_holm_at_most", "n", "n_clusters", "n_undefined", "short", "reason"),
)
_SCHEMA = {name: CONTRASTS.columns[name].dtype for name in _OF_DIFFERENCES}
_WITHHELD = (
    "no interval and no p-value: calibrated methods differ in it by chance if one's confidences spread wider; see"
    " squared_calibration_error"
)


@dataclass(frozen=True, kw_only=True)
class DataSetMetrics:
    """The metrics of one data set."""

    cells: EvaluationData  # what they are computed from
    metrics: pl.DataFrame  # one row per (method, subset, metric), with the columns of `Evaluation.metrics`
    kept: Mapping[str, MethodEstimates]  # by method, what comparisons with other methods need


def measure(cells: EvaluationData, *, replicates: int, seed: int) -> DataSetMetrics:
    """Return every metric of every method, with its interval.

    Methods with the same clusters are evaluated on the same resamples, whether in one table or in several. A method
    with a single cluster has no percentile intervals.
    """
    rows, kept = [], {}
    for method, evaluated in cells.methods.items():
        draws = draws_of(cells, method, replicates=replicates, seed=seed)
        estimates, kept[method] = estimate(CellColumns.of(evaluated), draws, tuple(FURTHER_METRICS))
        rows += [
            {"dataset": cells.dataset, "method": method, **withheld(row, cells, method)}
            for row in estimates
            if row["subset"] in cells.subsets and row["metric"].removesuffix(UNDEFINED) not in LEFT_OUT
        ]
    frame = pl.DataFrame(rows, schema={name: METRICS.columns[name].dtype for name in _OF_METRICS})
    return DataSetMetrics(cells=cells, metrics=frame, kept=kept)


def draws_of(cells: EvaluationData, method: str, *, replicates: int, seed: int) -> ClusterDraws:
    """Return the resamples of the clusters of a method's answers; of a study's table, those of the study."""
    if cells.resamples is None:
        names = ("evaluate", str(seed), *([cells.dataset] if cells.dataset else []))
    else:
        names = (*cells.resamples, *([str(seed)] if seed else []))
    clusters = tuple(sorted(set(cells.methods[method].answers["cluster_id"])))
    n_draws = replicates if len(clusters) > 1 else 0  # all resamples of a single cluster are the same
    return ClusterDraws(names=names, cluster_ids=clusters, replicates=n_draws)


def withheld(row: dict, cells: EvaluationData, method: str) -> dict:
    """Return a row of a metric; without its numbers, and with the reason, where the table lacks what it needs."""
    row = {key: in_unit(value, cells.unit) if key.endswith("reason") else value for key, value in row.items()}
    reasons = dict(cells.withheld)
    if method in cells.ranked:
        reasons |= dict.fromkeys(OF_PROBABILITIES, WITHOUT_PROBABILITIES)
    for beginning, reason in reasons.items():
        if row["metric"].startswith(beginning) and row["reason"] != NO_PAIRS:
            return without_numbers(row, reason)
    return row


def differences(
    measured: DataSetMetrics, compared: Sequence[str], *, replicates: int, seed: int
) -> tuple[pl.DataFrame, list[str]]:
    """Return the differences of all metrics that have one, the first method minus each other one, and warnings.

    If it is compared alone, the others are all of the table. Both methods are judged on the questions that all compared
    methods answer: on the same resamples of the images or, for CCG-AUC, on the same pairs without each image in turn.
    Holm's adjustment is over the baselines, by metric. The difference of the ECE has neither interval nor p-value, and
    the reason why.

    Raises:
        ConfigError: A method is unknown, or there is none to compare with.
        DataError: The table names no questions, there is none that all methods answer, or one is about two images.
    """
    cells, method = measured.cells, compared[0]
    known = ", ".join(cells.methods)
    for name in compared:
        if name not in cells.methods:
            meant = did_you_mean(name, cells.methods)
            raise ConfigError(f"--compare {name}: no such method. Known: {known}.{meant}")
    others = [name for name in compared[1:] or cells.methods if name != method]
    if not others:
        raise ConfigError(f"--compare {method}: there is no other method in {cells.source}. Known: {known}.")
    if "sample_id" not in cells.identities:
        raise DataError(
            f"{cells.source}: no column 'sample_id', which --compare needs to find the answers to the same question."
        )
    names = compared if compared[1:] else list(cells.methods)
    measured, warnings = _on_common_questions(measured, names, replicates=replicates, seed=seed)
    for other in others:
        _check_same_images(measured.cells, method, other)
    rows = _compare(measured, method, others)
    return pl.DataFrame([{"dataset": cells.dataset, **row} for row in rows], schema=_SCHEMA), warnings


def _compare(measured: DataSetMetrics, method: str, others: Sequence[str]) -> list[dict]:
    """Call the study's comparison with the one run that there is."""
    pairs = _on_the_same_pairs(measured, (method, *others))
    run = {"backbone": pl.lit(""), "seed": pl.lit(0), "dataset": pl.lit(""), "split": pl.lit("test")}
    frame = measured.metrics.filter(pl.col("method").is_in([method, *others])).with_columns(**run)

    def read(run_key: Run, name: str) -> np.ndarray | PairValues:
        metric = name.rpartition("/")[2]
        return pairs[run_key[2]][metric] if metric in COMPARABLE else measured.kept[run_key[2]].replicates[metric]

    metrics = (*WITH_REPLICATES, *COMPARABLE)
    contrast = ContrastSpec(
        name="compare", method=method, baselines=tuple(others), datasets=("",), split="test", metrics=metrics
    )
    rows = [row for row in compare(Results(frame, read, {}, metrics), [contrast]) if "contrast" in row]
    rows += [_of_ece(frame, method, other) for other in others]
    order = frame["metric"].unique(maintain_order=True).to_list()
    rows.sort(key=lambda row: (order.index(row["metric"]), others.index(row["baseline"])))
    for row in rows:  # there is one run, so no seed to tell it from others
        row["reason"] = in_unit(row.get("reason") and row["reason"].replace(": seed 0: ", ": "), measured.cells.unit)
    return [{name: row.get(name) for name in _OF_DIFFERENCES if name != "dataset"} for row in rows]


def _of_ece(frame: pl.DataFrame, method: str, baseline: str) -> dict:
    """Return the difference of the ECE, without interval and p-value."""
    of_ece = {row["method"]: row for row in frame.filter(metric="ece15", subset="all").to_dicts()}
    sides = of_ece[method], of_ece[baseline]
    row = {"method": method, "baseline": baseline, "metric": "ece15"}
    row |= {name: min(side[name] for side in sides) for name in ("n", "n_clusters")}
    if None in (values := [side["estimate"] for side in sides]):
        return {**row, "reason": "; ".join(f"{side['method']}: {side['reason']}" for side in sides if side["reason"])}
    return {**row, "estimate": values[0] - values[1], "reason": _WITHHELD}


def _on_the_same_pairs(measured: DataSetMetrics, methods: Sequence[str]) -> dict[str, dict[str, PairValues]]:
    """Return, by method and metric, the values of all pairs of any of the methods, with images numbered alike."""
    key = ["sample_id", "source_cluster_id", "donor_cluster_id"]
    frames = {name: measured.cells.methods[name].pairs for name in methods}
    known = {name: frame.select(key) for name, frame in frames.items() if isinstance(frame, pl.DataFrame)}
    by_method: dict[str, dict[str, PairValues]] = {name: {} for name in methods}
    if not known:
        return by_method
    every = pl.concat(known.values()).unique().sort(key)
    images = pl.Enum(pl.concat([every[key[1]], every[key[2]].alias(key[1])]).unique().sort())
    source, donor = (every[name].cast(images).to_physical().cast(pl.Int64).to_numpy() for name in key[1:])
    for name, frame in known.items():
        rows = frame.join(every.with_row_index("row"), on=key, how="left", maintain_order="left")["row"].to_numpy()
        for metric, kept in measured.kept[name].pairs.items():
            values = np.full(len(every), np.nan)
            values[rows] = kept.values
            by_method[name][metric] = PairValues(values=values, source=source, donor=donor)
    return by_method


def _check_same_images(cells: EvaluationData, method: str, other: str) -> None:
    """Refuse a question that is about one image with one method, and about another one with the other."""
    mine, theirs = (
        dict(cells.methods[name].answers.select("sample_id", "cluster_id").rows()) for name in (method, other)
    )
    if different := mine.items() ^ theirs.items():
        first = min(different)[0]
        raise DataError(
            f"{cells.source}: --compare needs the same questions on the same {cells.unit}s, but sample_id {first!r} is"
            f" about {cells.unit} {mine[first]!r} with {method} and {theirs[first]!r} with {other}. Give both one."
        )


def _on_common_questions(
    measured: DataSetMetrics, names: Sequence[str], *, replicates: int, seed: int
) -> tuple[DataSetMetrics, list[str]]:
    """Return the metrics on the questions that all these methods answer, and a warning if there are others."""
    cells = measured.cells
    asked = {name: set(cells.methods[name].answers["sample_id"]) for name in names}
    every, common = set().union(*asked.values()), set.intersection(*asked.values())
    if every == common:
        return measured, []
    lacks = ", ".join(f"{name}: {len(every - mine)}" for name, mine in asked.items() if mine != every)
    if not common:
        raise DataError(
            f"{cells.source}: --compare needs questions that all methods answer, and there are none (of {len(every)},"
            f" without an answer: {lacks}). Give one question the same sample_id with every method."
        )
    methods = {}
    for name in names:
        joined, is_common = cells.methods[name], pl.col("sample_id").is_in(sorted(common))
        pairs = joined.pairs if isinstance(joined.pairs, str) else joined.pairs.filter(is_common)
        methods[name] = replace(joined, answers=joined.answers.filter(is_common), pairs=pairs)
    again = measure(replace(cells, methods=methods), replicates=replicates, seed=seed)
    left_out = ", ".join(sorted(every - common)[:5]) + (", ..." if len(every - common) > 5 else "")
    return again, [
        f"warning: {cells.source}: the differences are those on the {len(common)} of {len(every)} questions that all of"
        f" these methods answer; without an answer: {lacks}; left out: {left_out}"
    ]
