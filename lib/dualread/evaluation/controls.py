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

import numpy as np
import polars as pl

from dualread.evaluation.columns import Columns, decisive, on_columns, strict_decisive
from dualread.evaluation.metric import Metric, PairMean, PairMetric
from dualread.evaluation.metrics import discrimination, grounding
from dualread.evaluation.pair_metrics import PairValues, drop, of_sample, preference

_FIXED, _SHUFFLED, _IMAGE = decisive("fixed"), decisive("shuffled"), "shuffled_cluster_id"
_CANONICAL = ("canonical_answer_real", "canonical_answer_donor")

# On the donor pairs with a forced answer.
FIXED_PREFIX_CCG_AUC = PairMetric(
    name="fixed_prefix_ccg_auc",
    head="Fixed prefix",
    better="higher",
    value=on_columns(grounding.natural_ccg_auc, "confidence_real", "confidence_fixed", "correct_real", "correct_fixed"),
    mask=_FIXED,
    of_pairs=PairMean(values=preference("fixed", _FIXED)),
)


def _right_twice(rows: Columns) -> np.ndarray:
    return grounding.decisive(rows["correct_real"], 1 - np.asarray(rows["correct_fixed"], np.int64))


SUPPORTED_ON_BOTH_CCG_AUC = PairMetric(
    name="supported_on_both_ccg_auc",
    head="Both",
    value=lambda rows: grounding.natural_ccg_auc(
        rows["confidence_real"], rows["confidence_fixed"], rows["correct_real"], 1 - rows["correct_fixed"].astype(int)
    ),
    mask=_right_twice,
    of_pairs=PairMean(values=preference("fixed", _right_twice)),
)
STRICT_SAME_ANSWER_CCG_AUC = PairMetric(
    name="strict_same_answer_ccg_auc",
    head="Same answer",
    better="higher",
    value=on_columns(
        grounding.strict_ccg_auc, *("confidence_real", "confidence_fixed", "correct_real", "correct_donor", *_CANONICAL)
    ),
    mask=strict_decisive,
    of_pairs=PairMean(values=preference("fixed", strict_decisive)),
)
# On the questions with another image.
SHUFFLED_ACCURACY = PairMetric(
    name="shuffled_accuracy",
    head="Acc.",
    is_of_actor=True,
    value=on_columns(discrimination.accuracy, "correct_shuffled"),
)
# The accuracy on the own images minus that on the shuffled ones.
SHUFFLED_ACCURACY_DROP = PairMetric(
    name="shuffled_accuracy_drop",
    head="Drop",
    is_of_actor=True,
    value=on_columns(grounding.vrs, "correct_real", "correct_shuffled"),
    of_pairs=PairMean(values=drop("shuffled"), other=_IMAGE, low=-1.0),
)
SHUFFLED_AUROC = PairMetric(
    name="shuffled_auroc",
    head="AUROC",
    better="higher",
    value=on_columns(discrimination.auroc, "confidence_shuffled", "correct_shuffled"),
)
SHUFFLED_CCG_AUC = PairMetric(
    name="shuffled_ccg_auc",
    head="CCG-AUC",
    better="higher",
    value=on_columns(
        grounding.natural_ccg_auc, "confidence_real", "confidence_shuffled", "correct_real", "correct_shuffled"
    ),
    mask=_SHUFFLED,
    of_pairs=PairMean(values=preference("shuffled", _SHUFFLED), other=_IMAGE),
)

# In the order of the metrics table, each before what is said of its sample.
FORCED_METRICS: dict[str, PairMetric] = {
    metric.name: metric
    for metric in (
        FIXED_PREFIX_CCG_AUC,
        of_sample("fixed_prefix_decisive_pairs", _FIXED, "pairs"),
        of_sample("fixed_prefix_few_sources", _FIXED, "few_sources"),
        of_sample("fixed_prefix_few_donors", _FIXED, "few_donors"),
    )
}
SAME_ANSWER_METRICS: dict[str, PairMetric] = {
    metric.name: metric
    for metric in (
        STRICT_SAME_ANSWER_CCG_AUC,
        of_sample("strict_same_answer_decisive_pairs", strict_decisive, "pairs"),
        of_sample("strict_same_answer_few_sources", strict_decisive, "few_sources"),
        of_sample("strict_same_answer_few_donors", strict_decisive, "few_donors"),
    )
}
FIXED_METRICS: dict[str, PairMetric] = {**FORCED_METRICS, **SAME_ANSWER_METRICS}
# Of claims of reports, in the place of those that ask what the actor itself answers on the donor's image.
CLAIM_METRICS: dict[str, PairMetric] = {
    metric.name: metric
    for metric in (
        SUPPORTED_ON_BOTH_CCG_AUC,
        of_sample("supported_on_both_pairs", _right_twice, "pairs"),
        of_sample("supported_on_both_few_sources", _right_twice, "few_sources"),
        of_sample("supported_on_both_few_donors", _right_twice, "few_donors"),
    )
}
# By these, methods that judge claims can be compared.
OF_FORCED_CLAIMS = (FIXED_PREFIX_CCG_AUC, SUPPORTED_ON_BOTH_CCG_AUC)
SHUFFLED_METRICS: dict[str, PairMetric] = {
    metric.name: metric
    for metric in (
        *(SHUFFLED_ACCURACY, SHUFFLED_ACCURACY_DROP, SHUFFLED_AUROC, SHUFFLED_CCG_AUC),
        of_sample("shuffled_decisive_pairs", _SHUFFLED, "pairs", images=_IMAGE),
        of_sample("shuffled_few_sources", _SHUFFLED, "few_sources", images=_IMAGE),
        of_sample("shuffled_few_donors", _SHUFFLED, "few_donors", images=_IMAGE),
    )
}


def forced_claims_in(metrics: pl.DataFrame) -> list[str]:
    """Return the names of `OF_FORCED_CLAIMS` if a metrics table is about claims: of answers, no pairs are kept."""
    has_claims = SUPPORTED_ON_BOTH_CCG_AUC.name in set(metrics["metric"])
    return [metric.name for metric in OF_FORCED_CLAIMS] if has_claims else []


def report_pairs(claims: Columns, questions: pl.Series, asked: pl.DataFrame) -> dict[str, PairValues]:
    """Return `OF_FORCED_CLAIMS` pair by pair, of which each is a report and its donor.

    Other actors, and other seeds of one, write other claims, but reports on the same pairs of images.

    Args:
        claims: The forced claims.
        questions: The sample_id of the question that each claim's report answers.
        asked: sample_id, source_cluster_id and donor_cluster_id of all questions with a donor.
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
REPORT_COUNTS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="reports", head="Reports", digits=0, is_count=True, is_of_actor=True),
        Metric(name="reports_without_claim", head="None", digits=0, is_count=True, is_of_actor=True),
        Metric(name="claims", head="Claims", digits=0, is_count=True, is_of_actor=True),
        Metric(name="claims_without_label", head="No label", digits=0, is_count=True, is_of_actor=True),
    )
}


def report_counts(claims: pl.DataFrame, questions: pl.DataFrame) -> list[dict]:
    """Return a row of the metrics table for each of `REPORT_COUNTS`.

    Args:
        claims: The committed claims of the reports, with a label or not: question and label.
        questions: The manifest table: one row per report.
    """
    counts = (len(questions), len(questions) - claims["question"].n_unique(), len(claims), claims["label"].null_count())
    sizes = {"n": len(questions), "n_clusters": questions["cluster_id"].n_unique()}
    empty = dict.fromkeys(("low", "high", "reason"))
    rows = zip(REPORT_COUNTS, counts, strict=True)
    return [{"subset": "all", "metric": name, "estimate": float(n), **sizes, **empty} for name, n in rows]
