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
    CellColumns,
    Mask,
    Metric,
    all_rows,
    decisive,
    on_columns,
    power,
    preference_kernel,
    strict_decisive,
)
from dualread.evaluation.metrics import correctness, discrimination, grounding
from dualread.evaluation.statistics.bootstrap import ImageDraws
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel

_FIXED, _SHUFFLED = decisive("fixed"), decisive("shuffled")
_CANONICAL = ("canonical_answer_real", "canonical_answer_donor")

# On the donor pairs with a forced answer: the metric, and the pairs that it uses.
FIXED_METRICS: dict[str, tuple[Metric, Mask]] = {
    "fixed_prefix_ccg_auc": (
        on_columns(grounding.natural_ccg_auc, "confidence_real", "confidence_fixed", "correct_real", "correct_fixed"),
        _FIXED,
    ),
    "fixed_prefix_decisive_pairs": (power(_FIXED, "pairs"), _FIXED),
    "fixed_prefix_underpowered": (power(_FIXED, "underpowered"), _FIXED),
    "strict_same_answer_ccg_auc": (
        on_columns(
            grounding.strict_ccg_auc,
            *("confidence_real", "confidence_fixed", "correct_real", "correct_donor", *_CANONICAL),
        ),
        strict_decisive,
    ),
    "strict_same_answer_decisive_pairs": (power(strict_decisive, "pairs"), strict_decisive),
    "strict_same_answer_underpowered": (power(strict_decisive, "underpowered"), strict_decisive),
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
    "shuffled_underpowered": (power(_SHUFFLED, "underpowered", "shuffled_image_id"), _SHUFFLED),
}

INTERVALS = ("fixed_prefix_ccg_auc", "strict_same_answer_ccg_auc", "shuffled_auroc", "shuffled_ccg_auc")


def control_kernels(cell: CellColumns, draws: ImageDraws) -> dict[str, Kernel]:
    """Return the kernel of each of `INTERVALS` that has rows; the questions' own images are resampled."""
    kernels, fixed, shuffled = {}, cell.fixed, cell.shuffled
    if not isinstance(fixed, str):
        kernels["fixed_prefix_ccg_auc"] = preference_kernel(fixed, "fixed", _FIXED, draws)
        kernels["strict_same_answer_ccg_auc"] = preference_kernel(fixed, "fixed", strict_decisive, draws)
    if not isinstance(shuffled, str):
        kernels["shuffled_ccg_auc"] = preference_kernel(shuffled, "shuffled", _SHUFFLED, draws)
        confidence, correct = shuffled["confidence_shuffled"], shuffled["correct_shuffled"]
        cluster = shuffled.cluster("source_image_id", draws)
        kernels["shuffled_auroc"] = auroc_kernel(confidence, correct, cluster, len(draws.image_ids))
    return kernels
