"""Counterfactual confidence grounding (CCG): does confidence fall when a donor's image replaces the own one?

Every row is a pair: a question is asked about its own image (`real`) and about a donor image with another gold answer
(`donor`). Each answer is graded against the gold answer for its image. All arrays are [n], with one value per pair.

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

# A decisive set with fewer distinct source images, or fewer distinct donor images, is underpowered.
MINIMUM_IMAGES = 30
# About so many images on both sides tell a CCG-AUC of .6 from .5 in 80% of samples: simulated, 74% with one pair per
# image and 92% with two; 100 images do in 43 to 67%.
ENOUGH_IMAGES = 200
# The flag of `Power` that says that a side has too few images.
FEW_IMAGES_OF = {"source": "few_sources", "donor": "few_donors"}


@dataclass(frozen=True, kw_only=True)
class Power:
    """The size of a decisive set.

    Attributes:
        pairs: Number of pairs.
        source_images: Number of distinct source images.
        donor_images: Number of distinct donor images.
    """

    pairs: int
    source_images: int
    donor_images: int

    @property
    def few_sources(self) -> bool:
        """Whether the set has fewer than 30 distinct source images."""
        return self.source_images < MINIMUM_IMAGES

    @property
    def few_donors(self) -> bool:
        """Whether the set has fewer than 30 distinct donor images."""
        return self.donor_images < MINIMUM_IMAGES


def decisive(correct_real: npt.ArrayLike, correct_donor: npt.ArrayLike) -> np.ndarray:
    """Return the decisive set E as bool [n]: the pairs that are correct on the own image and wrong on the donor's.

    Args:
        correct_real: bool [n], on the own images.
        correct_donor: bool [n], on the donor images.

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
    """Return the strict decisive set as bool [n]: the decisive pairs with the same canonical answer on both images.

    `None` and "" both mean that there is no answer. Two missing answers are not the same answer.

    Args:
        correct_real: bool [n], on the own images.
        correct_donor: bool [n], on the donor images.
        canonical_real: Canonical answers [n] on the own images.
        canonical_donor: Canonical answers [n] on the donor images.

    Raises:
        ValueError: An input is malformed.
    """
    mask = decisive(correct_real, correct_donor)
    real, donor = (np.asarray(answers, dtype=object) for answers in (canonical_real, canonical_donor))
    same_length(correct_real=mask, canonical_real=real, canonical_donor=donor)
    return mask & real.astype(np.bool_) & (real == donor).astype(np.bool_)


def natural_ccg_auc(
    confidence_real: npt.ArrayLike,
    confidence_donor: npt.ArrayLike,
    correct_real: npt.ArrayLike,
    correct_donor: npt.ArrayLike,
) -> float:
    """Return Natural CCG-AUC: the share of decisive pairs with more confidence on the own image; a tie counts 1/2.

    In [0, 1], higher is better; 0.5 means that confidence does not respond to the swap in either direction.

    Args:
        confidence_real: float64 [n] in [0, 1], on the own images.
        confidence_donor: float64 [n] in [0, 1], on the donor images.
        correct_real: bool [n], on the own images.
        correct_donor: bool [n], on the donor images.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: The decisive set is empty.
    """
    return directional_share(confidence_real, confidence_donor, decisive(correct_real, correct_donor), "decisive")


def strict_ccg_auc(
    confidence_real: npt.ArrayLike,
    confidence_donor: npt.ArrayLike,
    correct_real: npt.ArrayLike,
    correct_donor: npt.ArrayLike,
    canonical_real: Sequence[str | None] | np.ndarray,
    canonical_donor: Sequence[str | None] | np.ndarray,
) -> float:
    """Return Strict CCG-AUC: Natural CCG-AUC over the decisive pairs with the same canonical answer on both images.

    In [0, 1], higher is better; 0.5 means that confidence does not respond to the swap in either direction.

    Args:
        confidence_real: float64 [n] in [0, 1], on the own images.
        confidence_donor: float64 [n] in [0, 1], on the donor images.
        correct_real: bool [n], on the own images.
        correct_donor: bool [n], on the donor images.
        canonical_real: Canonical answers [n] on the own images, as for `strict_decisive`.
        canonical_donor: Canonical answers [n] on the donor images.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: The strict decisive set is empty.
    """
    mask = strict_decisive(correct_real, correct_donor, canonical_real, canonical_donor)
    return directional_share(confidence_real, confidence_donor, mask, "strictly decisive")


def preference(confidence_real: npt.ArrayLike, confidence_donor: npt.ArrayLike) -> np.ndarray:
    """Return phi(real - donor) as float64 [n]: 1 for more confidence on the own image, 1/2 for a tie, 0 for less.

    Args:
        confidence_real: float64 [n] in [0, 1], on the own images.
        confidence_donor: float64 [n] in [0, 1], on the donor images.

    Raises:
        ValueError: An input is malformed.
    """
    real = checked_confidence(confidence_real, name="confidence_real")
    donor = checked_confidence(confidence_donor, name="confidence_donor")
    same_length(confidence_real=real, confidence_donor=donor)
    # Compared and not subtracted, because a difference of two floats may be rounded to 0.
    return (real > donor) + 0.5 * (real == donor)


def vrs(correct_real: npt.ArrayLike, correct_donor: npt.ArrayLike) -> float:
    """Return VRS, the accuracy on the own images minus the accuracy on the donor images, over all pairs.

    In [-1, 1].

    Args:
        correct_real: bool [n], on the own images.
        correct_donor: bool [n], on the donor images.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no pairs.
    """
    real, donor = checked_correct(correct_real), checked_correct(correct_donor)
    same_length(correct_real=real, correct_donor=donor)
    not_empty(real)
    return (int(np.count_nonzero(real)) - int(np.count_nonzero(donor))) / len(real)


def vbr(correct_real: npt.ArrayLike, correct_donor: npt.ArrayLike) -> float:
    """Return VBR, the share of all pairs that are decisive.

    In [0, 1].

    Args:
        correct_real: bool [n], on the own images.
        correct_donor: bool [n], on the donor images.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no pairs.
    """
    mask = decisive(correct_real, correct_donor)
    not_empty(mask)
    return int(np.count_nonzero(mask)) / len(mask)


def power(mask: npt.ArrayLike, source_images: Sequence | np.ndarray, donor_images: Sequence | np.ndarray) -> Power:
    """Return the size of a decisive set.

    Args:
        mask: bool [n], from `decisive` or `strict_decisive`.
        source_images: The source image of every pair [n], as any value that identifies the image.
        donor_images: The donor image of every pair [n].

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


def directional_share(
    confidence_real: npt.ArrayLike, confidence_donor: npt.ArrayLike, mask: np.ndarray, name: str
) -> float:
    """Return the mean `preference` of the pairs of a mask, bool [n]; an empty one is undefined, and called `name`."""
    wins = preference(confidence_real, confidence_donor)
    same_length(confidence_real=wins, correct_real=mask)
    if not mask.any():
        raise UndefinedMetricError(f"no {name} pair among {len(mask)} pairs")
    return float(wins[mask].sum()) / int(np.count_nonzero(mask))
