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

from dualread.evaluation.columns import (
    Mask,
    Metric,
    all_rows,
    decisive,
    on_columns,
    power,
    strict_decisive,
)
from dualread.evaluation.metrics import correctness, discrimination, grounding

_FIXED, _SHUFFLED = decisive("fixed"), decisive("shuffled")
_CANONICAL = ("canonical_answer_real", "canonical_answer_donor")

# On the donor pairs with a forced answer: the metric, and the pairs that it uses.
FIXED_METRICS: dict[str, tuple[Metric, Mask]] = {
    "fixed_prefix_ccg_auc": (
        on_columns(grounding.natural_ccg_auc, "confidence_real", "confidence_fixed", "correct_real", "correct_fixed"),
        _FIXED,
    ),
    "fixed_prefix_decisive_pairs": (power(_FIXED, "pairs"), _FIXED),
    "fixed_prefix_few_sources": (power(_FIXED, "few_sources"), _FIXED),
    "fixed_prefix_few_donors": (power(_FIXED, "few_donors"), _FIXED),
    "strict_same_answer_ccg_auc": (
        on_columns(
            grounding.strict_ccg_auc,
            *("confidence_real", "confidence_fixed", "correct_real", "correct_donor", *_CANONICAL),
        ),
        strict_decisive,
    ),
    "strict_same_answer_decisive_pairs": (power(strict_decisive, "pairs"), strict_decisive),
    "strict_same_answer_few_sources": (power(strict_decisive, "few_sources"), strict_decisive),
    "strict_same_answer_few_donors": (power(strict_decisive, "few_donors"), strict_decisive),
}

# On the questions with another image: the metric, and the questions that it uses.
SHUFFLED_METRICS: dict[str, tuple[Metric, Mask]] = {
    "shuffled_accuracy": (on_columns(correctness.accuracy, "correct_shuffled"), all_rows),
    # The accuracy on the own images minus that on the shuffled ones.
    "shuffled_accuracy_drop": (on_columns(grounding.vrs, "correct_real", "correct_shuffled"), all_rows),
    "shuffled_auroc": (on_columns(discrimination.auroc, "confidence_shuffled", "correct_shuffled"), all_rows),
    "shuffled_ccg_auc": (
        on_columns(
            grounding.natural_ccg_auc, "confidence_real", "confidence_shuffled", "correct_real", "correct_shuffled"
        ),
        _SHUFFLED,
    ),
    "shuffled_decisive_pairs": (power(_SHUFFLED, "pairs", "shuffled_image_id"), _SHUFFLED),
    "shuffled_few_sources": (power(_SHUFFLED, "few_sources", "shuffled_image_id"), _SHUFFLED),
    "shuffled_few_donors": (power(_SHUFFLED, "few_donors", "shuffled_image_id"), _SHUFFLED),
}
