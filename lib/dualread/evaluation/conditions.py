"""Metrics of answers under any condition that is none of the paper's: other images, other prompts.

In the metrics table the subset is condition:<name>. Each answer is compared with the answer of the same question under
the condition `original`, whose own values are beside them as condition:original. Beside these are the metrics per
content family, family:<name>, and the share of answers that differ from those of another actor.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import polars as pl

from dualread.evaluation.answer_metrics import ANSWER_METRICS, NOISE_FLOOR
from dualread.evaluation.columns import Columns, decisive, on_columns
from dualread.evaluation.estimates import masked_row, noise_floor
from dualread.evaluation.join import Rows
from dualread.evaluation.metric import Metric, PairMean, PairMetric, measure, metric_row, with_limits
from dualread.evaluation.metrics import calibration_error, discrimination
from dualread.evaluation.pair_metrics import ccg_auc, drop, limits, sample_metrics
from dualread.evaluation.side_by_side import ORIGINAL, check_same_questions
from dualread.evaluation.statistics.bootstrap import ClusterDraws, image_cluster_replicates, including, interval
from dualread.evaluation.statistics.clusters import Clusters
from dualread.evaluation.statistics.kernels import auroc_kernel
from dualread.evaluation.statistics.proportion import share_interval
from dualread.evaluation.statistics.t_intervals import Limits
from dualread.evaluation.statistics.t_replicates import spread_of_ranks

PREFIX = "condition:"
FAMILY_PREFIX = "family:"
FAMILY_METRICS = ("accuracy", "auroc", "ece15", "brier")
_IMAGE = "other_cluster_id"


def _mean(values: Callable[[Columns], np.ndarray], *, low: float = 0.0) -> PairMean:
    return PairMean(values=values, other=_IMAGE, low=low)


ACCURACY = PairMetric(
    name="accuracy",
    head="Acc.",
    better="higher",
    is_of_actor=True,
    value=on_columns(discrimination.accuracy, "correct_other"),
)
CONFIDENCE = PairMetric(
    name="mean_confidence",
    head="Conf.",
    value=lambda rows: float(np.mean(rows["confidence_other"])),
    of_pairs=_mean(lambda rows: rows["confidence_other"]),
)
AUROC = PairMetric(
    name="auroc",
    head="AUROC",
    better="higher",
    value=on_columns(discrimination.auroc, "confidence_other", "correct_other"),
)
BRIER = PairMetric(
    name="brier",
    head="Brier",
    better="lower",
    value=on_columns(calibration_error.brier, "confidence_other", "correct_other"),
    of_pairs=_mean(lambda rows: (rows["confidence_other"] - rows["correct_other"]) ** 2),
)
# What is under the condition `original` minus what is here.
ACCURACY_DROP = drop(name="accuracy_drop", head="Acc. drop", other="other", images=_IMAGE, is_of_actor=True)
CONFIDENCE_DROP = PairMetric(
    name="confidence_drop",
    head="Conf. drop",
    value=lambda rows: float(np.mean(rows["confidence_real"] - rows["confidence_other"])),
    of_pairs=_mean(lambda rows: (1.0 + rows["confidence_real"] - rows["confidence_other"]) / 2, low=-1.0),
)
# Of the questions with a right answer under `original` and a wrong one here.
CCG_AUC = ccg_auc(name="ccg_auc", head="CCG-AUC", other="other", mask=decisive("other"), images=_IMAGE, better="higher")

# In the order of the metrics table. The condition `original` has those that compare it with nothing.
_ALONE = {metric.name: metric for metric in (ACCURACY, CONFIDENCE, AUROC, BRIER)}
_COMPARED = (ACCURACY_DROP, CONFIDENCE_DROP, CCG_AUC, *sample_metrics(CCG_AUC, "decisive_pairs", "ccg_few_sources"))
CONDITION_METRICS = _ALONE | {metric.name: metric for metric in _COMPARED}
# Of the original images: the share of questions to which another actor gives another answer in canonical form.
ANSWERS_CHANGED = Metric(name="answers_changed", head="Changed", is_of_actor=True)


def condition_rows(conditions: Mapping[str, Rows], draws: ClusterDraws) -> Iterator[dict]:
    """Yield one `metric_row` per (condition, metric) of `join.Joined.conditions`; resamples are for the AUROC."""
    for name, joined in conditions.items():
        if isinstance(joined, str):
            yield from undefined_rows([name], joined)
        else:
            rows = Columns.of(joined)
            yield from (_row(f"{PREFIX}{name}", rows, metric, draws) for metric in _metrics_of(name).values())


def undefined_rows(conditions: Iterable[str], reason: str) -> Iterator[dict]:
    """Yield one `metric_row` per (condition, metric) without a value."""
    for name in conditions:
        yield from (metric_row(f"{PREFIX}{name}", metric, reason=reason) for metric in _metrics_of(name))


def _metrics_of(condition: str) -> Mapping[str, PairMetric]:
    return _ALONE if condition == ORIGINAL else CONDITION_METRICS


def _row(subset: str, rows: Columns, metric: PairMetric, draws: ClusterDraws) -> dict:
    row = masked_row(subset, rows, metric)
    if row["estimate"] is None or draws.replicates == 0:
        return row
    ends: Limits = None
    if metric is ACCURACY:
        ends = share_interval(rows["correct_other"], rows.codes("source_cluster_id"))
    elif metric is AUROC:
        ends = _of_auroc(rows, row["estimate"], draws)
    elif metric.of_pairs is not None:
        ends = limits(metric.of_pairs, rows, row["estimate"])
    return with_limits(row, ends, rows.codes("source_cluster_id")[rows.mask(metric.mask)])


def _of_auroc(rows: Columns, estimate: float, draws: ClusterDraws) -> Limits:
    image, n_images = rows.cluster("source_cluster_id", draws), len(draws.cluster_ids)
    images = Clusters.of(rows["correct_other"], image, n_images)
    if images.in_effect.reason:
        return None
    kernel = images.resampled(auroc_kernel(rows["confidence_other"], rows["correct_other"], image, n_images))
    values = image_cluster_replicates({"auroc": kernel}, draws, n_rows=len(rows))["auroc"]
    percentiles = interval(spread_of_ranks(values, estimate, images))
    low, high = including(percentiles.low, percentiles.high, estimate)
    return None if low is None or high is None else (low, high)


def family_rows(answers: pl.DataFrame, manifest: pl.DataFrame, draws: ClusterDraws) -> list[dict]:
    """Return one `metric_row` per (family, metric); none if the manifest has no families.

    The families of questions, such as organ, position or abnormality, are those that the data set names. These metrics
    have no intervals and use the original images alone; `draws` are for the noise floor of the ECE.
    """
    families = manifest.select("sample_id", "content_family").drop_nulls()
    if families.is_empty():
        return []
    joined = answers.join(families, on="sample_id", how="inner", validate="1:1").sort("content_family", "sample_id")
    metrics = {
        **{name: ANSWER_METRICS[name].value for name in FAMILY_METRICS},
        NOISE_FLOOR: partial(noise_floor, draws=draws),
    }
    return [
        measure(subset, name, metric, rows, n=len(frame), n_clusters=n_clusters)
        for frame in joined.partition_by("content_family", maintain_order=True)
        for subset in [FAMILY_PREFIX + frame["content_family"][0]]
        for rows, n_clusters in [(Columns.of(frame), frame["cluster_id"].n_unique())]
        for name, metric in metrics.items()
    ]


def changed_row(answers: pl.DataFrame, others: pl.DataFrame, clusters: Mapping[str, str], where: str) -> dict:
    """Return the `metric_row` of `ANSWERS_CHANGED`, of the graded answers of two actors to one (data set, split).

    Both are sorted by sample_id; `clusters` has the cluster of each image. An ArtifactError says that they are not
    answers to the same questions.
    """
    check_same_questions(where, answers, "answers", others, "those that they are compared with")
    if not len(answers):
        return metric_row("all", ANSWERS_CHANGED.name, reason="no rows")
    changed = answers["canonical_answer"].ne_missing(others["canonical_answer"]).to_numpy()
    image = answers["image_id"].replace_strict(clusters).rank("dense").to_numpy()
    sizes = {"n": len(answers), "n_clusters": len(np.unique(image))}
    row = metric_row("all", ANSWERS_CHANGED.name, float(changed.mean()), **sizes)
    return with_limits(row, share_interval(changed, image), image)
