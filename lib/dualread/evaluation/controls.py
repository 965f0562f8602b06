"""Controls of grounding: does confidence fall because of the image, or because of the answer generated on it?

Fixed prefix: the source's answer is forced on the donor's image, so that only the image differs. A pair is decisive
where the source's answer is right on the source image and wrong on the donor's image; what the actor would answer there
plays no part.
Strict same answer: the pairs of Strict CCG-AUC, in which the actor itself gives the source's answer on the donor's
image. The forced answer replaces its own, so that even the wording is the same.
Shuffled image: a new answer on another image of the split, judged against the question's own gold answer. Unlike a
donor, this image may have the same gold answer and may not fit the question.

References:
    DualRead, app:baseline_protocols ("Fixed-prefix and strict-same-answer controls").
"""

from dualread.evaluation.columns import decisive, on_columns, strict_decisive
from dualread.evaluation.metric import PairMean, PairMetric
from dualread.evaluation.metrics import discrimination, grounding
from dualread.evaluation.pair_metrics import drop, of_sample, preference

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
FIXED_METRICS: dict[str, PairMetric] = {
    metric.name: metric
    for metric in (
        FIXED_PREFIX_CCG_AUC,
        of_sample("fixed_prefix_decisive_pairs", _FIXED, "pairs"),
        of_sample("fixed_prefix_few_sources", _FIXED, "few_sources"),
        of_sample("fixed_prefix_few_donors", _FIXED, "few_donors"),
        STRICT_SAME_ANSWER_CCG_AUC,
        of_sample("strict_same_answer_decisive_pairs", strict_decisive, "pairs"),
        of_sample("strict_same_answer_few_sources", strict_decisive, "few_sources"),
        of_sample("strict_same_answer_few_donors", strict_decisive, "few_donors"),
    )
}
SHUFFLED_METRICS: dict[str, PairMetric] = {
    metric.name: metric
    for metric in (
        *(SHUFFLED_ACCURACY, SHUFFLED_ACCURACY_DROP, SHUFFLED_AUROC, SHUFFLED_CCG_AUC),
        of_sample("shuffled_decisive_pairs", _SHUFFLED, "pairs", images=_IMAGE),
        of_sample("shuffled_few_sources", _SHUFFLED, "few_sources", images=_IMAGE),
        of_sample("shuffled_few_donors", _SHUFFLED, "few_donors", images=_IMAGE),
    )
}
