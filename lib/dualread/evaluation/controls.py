"""Controls of grounding: does confidence fall because of the image, or because of the answer generated on it?

Fixed prefix: the source's answer is forced on the donor's image, so that only the image differs. A pair is decisive
where the source's answer is right on the source image and wrong on the donor's image; what the actor would answer there
plays no part.
Strict same answer: the pairs of Strict CCG-AUC, in which the actor itself gives the source's answer on the donor's
image. The forced answer replaces its own, so that even the wording is the same.
Supported on both images: of claims of reports alone, those that are right on the donor's image too. Nothing says that
confidence should fall there, so that a value far above 1/2 is a response to another image, not to another finding.
Shuffled image: a new answer on another image of the split, judged against the question's own gold answer. Unlike a
donor, this image may have the same gold answer and may not fit the question.

References:
    DualRead, app:baseline_protocols ("Fixed-prefix and strict-same-answer controls").
"""

from typing import Any

import numpy as np
import polars as pl

from dualread.evaluation.columns import Columns, decisive, on_columns, strict_decisive
from dualread.evaluation.metric import Metric, PairMetric, metric_row
from dualread.evaluation.metrics import discrimination, grounding
from dualread.evaluation.pair_metrics import PairValues, ccg_auc, drop, sample_metrics

_IMAGE = "shuffled_cluster_id"


def _right_twice(rows: Columns) -> np.ndarray:
    return grounding.decisive(rows["correct_real"], 1 - np.asarray(rows["correct_fixed"], np.int64))


# On the donor pairs with a forced answer.
FIXED_PREFIX_CCG_AUC = ccg_auc(
    name="fixed_prefix_ccg_auc", head="Fixed prefix", other="fixed", mask=decisive("fixed"), better="higher"
)
SUPPORTED_ON_BOTH_CCG_AUC = ccg_auc(name="supported_on_both_ccg_auc", head="Both", other="fixed", mask=_right_twice)
STRICT_SAME_ANSWER_CCG_AUC = ccg_auc(
    name="strict_same_answer_ccg_auc", head="Same answer", other="fixed", mask=strict_decisive, better="higher"
)
# On the questions with another image.
SHUFFLED_ACCURACY = PairMetric(
    name="shuffled_accuracy",
    head="Acc.",
    is_of_actor=True,
    value=on_columns(discrimination.accuracy, "correct_shuffled"),
)
SHUFFLED_ACCURACY_DROP = drop(
    name="shuffled_accuracy_drop", head="Drop", other="shuffled", images=_IMAGE, is_of_actor=True
)
SHUFFLED_AUROC = PairMetric(
    name="shuffled_auroc",
    head="AUROC",
    better="higher",
    value=on_columns(discrimination.auroc, "confidence_shuffled", "correct_shuffled"),
)
SHUFFLED_CCG_AUC = ccg_auc(
    name="shuffled_ccg_auc", head="CCG-AUC", other="shuffled", mask=decisive("shuffled"), images=_IMAGE, better="higher"
)


def _with_sample(ccg: PairMetric, pairs: str, *others: PairMetric) -> dict[str, PairMetric]:
    """Return metrics by name, in the order of the metrics table: each CCG-AUC before what its pairs are like."""
    prefix = ccg.name.removesuffix("_ccg_auc")
    sample = sample_metrics(ccg, *(f"{prefix}_{field}" for field in (pairs, *grounding.FEW_IMAGES_OF.values())))
    return {metric.name: metric for metric in (*others, ccg, *sample)}


FORCED_METRICS = _with_sample(FIXED_PREFIX_CCG_AUC, "decisive_pairs")
SAME_ANSWER_METRICS = _with_sample(STRICT_SAME_ANSWER_CCG_AUC, "decisive_pairs")
FIXED_METRICS = FORCED_METRICS | SAME_ANSWER_METRICS
# Of claims of reports, in the place of those that ask what the actor itself answers on the donor's image.
CLAIM_METRICS = _with_sample(SUPPORTED_ON_BOTH_CCG_AUC, "pairs")
SHUFFLED_METRICS = _with_sample(
    SHUFFLED_CCG_AUC, "decisive_pairs", SHUFFLED_ACCURACY, SHUFFLED_ACCURACY_DROP, SHUFFLED_AUROC
)
# By these, methods that judge claims can be compared.
OF_FORCED_CLAIMS = (FIXED_PREFIX_CCG_AUC, SUPPORTED_ON_BOTH_CCG_AUC)


def forced_claims_in(metrics: pl.DataFrame) -> list[str]:
    """Return the names of `OF_FORCED_CLAIMS` if a metrics table is about claims: of answers, no pairs are kept."""
    has_claims = SUPPORTED_ON_BOTH_CCG_AUC.name in set(metrics["metric"])
    return [metric.name for metric in OF_FORCED_CLAIMS] if has_claims else []


def report_pairs(claims: Columns, questions: pl.Series, asked: pl.DataFrame) -> dict[str, PairValues]:
    """Return `OF_FORCED_CLAIMS` pair by pair, of which each is a report and its donor.

    Other actors, and other seeds of one, write other claims, but reports on the same pairs of images. `claims` are the
    forced ones, and `questions` has the sample_id of the question that each one's report answers; `asked` has
    sample_id, source_cluster_id and donor_cluster_id of all questions with a donor.
    """
    places = dict(zip(asked["sample_id"], range(len(asked)), strict=True))
    place = np.array([places[question] for question in questions], np.int64)
    source, donor = Columns.of(asked).cluster_numbers("source_cluster_id", "donor_cluster_id")
    pairs = {}
    for metric in OF_FORCED_CLAIMS:
        values = metric.of_pairs.values(claims)  # type: ignore[union-attr]  # both are means over pairs
        used = ~np.isnan(values)
        totals, counts = (
            np.bincount(place[used], weight, len(asked)) for weight in (values[used], np.ones(used.sum()))
        )
        values = np.where(counts > 0, totals, np.nan)
        pairs[metric.name] = PairValues(values=values, source=source, donor=donor, counts=counts)
    return pairs


# Of reports, whatever confidence says; a claim without a label is in no other number.
def _of_reports(**declared: Any) -> Metric:
    return Metric(digits=0, is_count=True, is_of_actor=True, **declared)


REPORT_COUNTS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _of_reports(name="reports", head="Reports"),
        _of_reports(name="reports_without_claim", head="None"),
        _of_reports(name="claims", head="Claims"),
        _of_reports(name="claims_without_label", head="No label"),
    )
}


def report_counts(claims: pl.DataFrame, questions: pl.DataFrame) -> list[dict]:
    """Return a `metric_row` for each of `REPORT_COUNTS`, of the committed claims of `questions`, labeled or not."""
    counts = (len(questions), len(questions) - claims["question"].n_unique(), len(claims), claims["label"].null_count())
    sizes = {"n": len(questions), "n_clusters": questions["cluster_id"].n_unique()}
    return [metric_row("all", name, float(n), **sizes) for name, n in zip(REPORT_COUNTS, counts, strict=True)]
