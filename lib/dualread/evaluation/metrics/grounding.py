"""Counterfactual confidence grounding (CCG): does confidence fall when the image is swapped for a donor's?

Every row is a pair: one question asked of its own image (`real`) and of a donor image with another gold answer
(`donor`), each answer graded against its own gold. All arrays are [n], one value a pair.

References:
    DualRead, section "Counterfactual Confidence Grounding Metric" (eq:ccg_set, eq:ccg_auc) and the appendix
    "Properties and Scope of CCG-AUC".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics._checks import checked_confidence, checked_correct, not_empty, same_length

# A cell is underpowered when its decisive set spans fewer distinct source images, or donor images, than this.
MINIMUM_IMAGES = 30


@dataclass(frozen=True, kw_only=True)
class Power:
    """What a (strict) decisive set rests on: pairs, distinct source images, distinct donor images."""

    pairs: int
    source_images: int
    donor_images: int

    @property
    def underpowered(self) -> bool:
        """Whether the set spans fewer than 30 distinct source images or fewer than 30 distinct donor images."""
        return min(self.source_images, self.donor_images) < MINIMUM_IMAGES


def decisive(correct_real: npt.ArrayLike, correct_donor: npt.ArrayLike) -> np.ndarray:
    """Return the decisive set E as bool [n]: correct on the real image and wrong on the donor's.

    Raises:
        ValueError: An input is malformed.
    """
    real, donor = checked_correct(correct_real), checked_correct(correct_donor)
    same_length(correct_real=real, correct_donor=donor)
    return real & ~donor


def strict_decisive(
    correct_real: npt.ArrayLike,
    correct_donor: npt.ArrayLike,
    canonical_real: Sequence[str | None] | np.ndarray,
    canonical_donor: Sequence[str | None] | np.ndarray,
) -> np.ndarray:
    """Return the strict decisive set as bool [n]: decisive, with equal and non-empty canonical answers.

    `None` and "" both mean that there is no answer; two missing answers are not the same answer.

    Raises:
        ValueError: An input is malformed.
    """
    mask = decisive(correct_real, correct_donor)
    real, donor = list(canonical_real), list(canonical_donor)
    same_length(correct_real=mask, canonical_real=np.empty(len(real)), canonical_donor=np.empty(len(donor)))
    same = [bool(a) and a == b for a, b in zip(real, donor, strict=True)]
    return mask & np.asarray(same, dtype=np.bool_)


def natural_ccg_auc(
    confidence_real: npt.ArrayLike,
    confidence_donor: npt.ArrayLike,
    correct_real: npt.ArrayLike,
    correct_donor: npt.ArrayLike,
) -> float:
    """Return Natural CCG-AUC: over the decisive set, how often confidence is higher on the real image, ties 1/2.

    In [0, 1], higher is better; 0.5 is no directional response.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: The decisive set is empty.
    """
    return _directional_share(confidence_real, confidence_donor, decisive(correct_real, correct_donor), "decisive")


def strict_ccg_auc(
    confidence_real: npt.ArrayLike,
    confidence_donor: npt.ArrayLike,
    correct_real: npt.ArrayLike,
    correct_donor: npt.ArrayLike,
    canonical_real: Sequence[str | None] | np.ndarray,
    canonical_donor: Sequence[str | None] | np.ndarray,
) -> float:
    """Return Strict CCG-AUC: Natural CCG-AUC over the decisive pairs whose canonical answer did not change.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: The strict decisive set is empty.
    """
    mask = strict_decisive(correct_real, correct_donor, canonical_real, canonical_donor)
    return _directional_share(confidence_real, confidence_donor, mask, "strictly decisive")


def preference(confidence_real: npt.ArrayLike, confidence_donor: npt.ArrayLike) -> np.ndarray:
    """Return phi(real - donor) as float64 [n]: 1 where the real image has more confidence, 1/2 for a tie, else 0.

    Raises:
        ValueError: An input is malformed.
    """
    real = checked_confidence(confidence_real, name="confidence_real")
    donor = checked_confidence(confidence_donor, name="confidence_donor")
    same_length(confidence_real=real, confidence_donor=donor)
    # Compared, not subtracted: a difference of two floats can round to 0 or have a rounding error's sign.
    return (real > donor) + 0.5 * (real == donor)


def vrs(correct_real: npt.ArrayLike, correct_donor: npt.ArrayLike) -> float:
    """Return the accuracy on the real images minus that on the donor images, over all pairs; in [-1, 1].

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no pairs.
    """
    real, donor = checked_correct(correct_real), checked_correct(correct_donor)
    same_length(correct_real=real, correct_donor=donor)
    not_empty(real)
    return (int(np.count_nonzero(real)) - int(np.count_nonzero(donor))) / len(real)


def vbr(correct_real: npt.ArrayLike, correct_donor: npt.ArrayLike) -> float:
    """Return the share of all pairs that are decisive; in [0, 1].

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no pairs.
    """
    mask = decisive(correct_real, correct_donor)
    not_empty(mask)
    return int(np.count_nonzero(mask)) / len(mask)


def power(mask: npt.ArrayLike, source_images: Sequence | np.ndarray, donor_images: Sequence | np.ndarray) -> Power:
    """Return what the pairs in `mask` (bool [n], from `decisive` or `strict_decisive`) rest on.

    Images may be given by any values that are equal where the images are, for instance by their names.

    Raises:
        ValueError: An input is malformed.
    """
    chosen = checked_correct(mask, name="mask")
    source, donor = np.asarray(source_images), np.asarray(donor_images)
    same_length(mask=chosen, source_images=source, donor_images=donor)
    return Power(
        pairs=int(np.count_nonzero(chosen)),
        source_images=len(set(source[chosen].tolist())),
        donor_images=len(set(donor[chosen].tolist())),
    )


def _directional_share(
    confidence_real: npt.ArrayLike, confidence_donor: npt.ArrayLike, mask: np.ndarray, name: str
) -> float:
    wins = preference(confidence_real, confidence_donor)
    same_length(confidence_real=wins, correct_real=mask)
    if not mask.any():
        raise UndefinedMetricError(f"no {name} pair among {len(mask)} pairs")
    return float(wins[mask].sum()) / int(np.count_nonzero(mask))
