"""Calibration error and chance: what calibrated confidences would reach, and an error from which chance is subtracted.

The expected calibration error (`calibration_error.ece`) is positive even where confidences are calibrated, because in
each bin the share of correct answers differs from the mean confidence by chance: the more, the fewer images there are
and the wider the confidences spread. Of two calibrated methods, the one with wider confidences therefore has the larger
ECE. Resampling images adds this error a second time, so that percentiles of resamples are no interval of the ECE.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics._checks import checked, checked_confidence, checked_groups, same_length
from dualread.evaluation.metrics.calibration_error import N_BINS, bins
from dualread.seeding import generator

# Number of random signs per image. Together with the ECE itself they are 1,000 values, and 50 are above the 950th.
SIGNS = 999
_RANK = 950
_ROUNDING = 1e-12  # of sums of residuals
_BLOCK = 256  # images whose signs are unpacked at once, so that they stay in the processor's cache; a multiple of 4
_KEPT_IMAGES = 2**14  # of more images, signs are not kept but drawn again
# With more answers, the correction by drawn labels no longer matters, and would take long.
LABELED_ROWS = 2_000


@dataclass(frozen=True)
class _ImageBins:
    """The answers of each image in each bin that has any; one value per image and bin.

    Attributes:
        bin: int64 [m].
        image: int64 [m].
        n: Number of answers, float64 [m].
        residual: The sum of correct - confidence, float64 [m], in units of 1 / `scale`, so that sums of it are exact.
        scale: A power of two.
    """

    bin: np.ndarray
    image: np.ndarray
    n: np.ndarray
    residual: np.ndarray
    scale: float

    @classmethod
    def of(cls, confidence: npt.ArrayLike, correct: npt.ArrayLike, images: Sequence | np.ndarray) -> "_ImageBins":
        scores, labels = checked(confidence, correct)
        image = checked_groups(images, name="images")
        same_length(confidence=scores, images=image)
        n_images, scale = int(image.max()) + 1, 2.0 ** (52 - len(scores).bit_length())
        filled, place = np.unique(bins(scores) * n_images + image, return_inverse=True)
        n = np.bincount(place).astype(np.float64)
        residual = np.bincount(place, weights=np.rint((labels - scores) * scale))
        return cls(filled // n_images, filled % n_images, n, residual, scale)

    def per_bin(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of `values` in each bin, float64 [15]; exact where the values are whole numbers."""
        return np.bincount(self.bin, weights=values, minlength=N_BINS)

    def per_image(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of `values` of each image; an image has at most 15, in the order of the bins."""
        return np.bincount(self.image, weights=values)


def squared_calibration_error(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, images: Sequence | np.ndarray
) -> float:
    """Return the debiased squared calibration error (squared l2) over the bins of `calibration_error.bins`.

    It is the sum over bins of (rows / n) times the mean of r_i r_j over the pairs of rows (i, j) of the bin from two
    different images, with r = correct - confidence. Two images are independent, so that the mean of r_i r_j is the
    square of the bin's true error, without the chance error that the square of the bin's mean r would contain. Its
    expectation is therefore 0 for calibrated confidences, and it can be negative, at least -1. Lower is better. A bin
    with answers of one image only has no pairs and adds nothing.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        images: Strings or integers [n]; equal values mean the same image (or patient). Answers to one image may depend
            on each other.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or no bin has answers of two images.

    References:
        Kumar, Liang, Ma, Verified Uncertainty Calibration, 2019 (debiased squared l2 error; there every row is an
        image of its own).
    """
    parts = _ImageBins.of(confidence, correct, images)
    n, pairs = parts.per_bin(parts.n), _pairs(parts)
    if not pairs.any():
        raise UndefinedMetricError("no bin has answers of two images")
    return float(_errors(n, _products(parts), pairs).sum() / n.sum())


def leave_one_image_out(confidence: npt.ArrayLike, correct: npt.ArrayLike, images: np.ndarray) -> np.ndarray:
    """Return the `squared_calibration_error` without each of the images, in sorted order, float64 [n_images].

    It is NaN for an image without which no bin has answers of two images.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or no bin has answers of two images.
    """
    parts = _ImageBins.of(confidence, correct, images)
    n, products, pairs = parts.per_bin(parts.n), _products(parts), _pairs(parts)
    if not pairs.any():
        raise UndefinedMetricError("no bin has answers of two images")
    errors, b = _errors(n, products, pairs), parts.bin
    residual = parts.residual / parts.scale
    total = parts.per_bin(parts.residual)[b] / parts.scale
    # Without an image, a bin loses the ordered pairs of the image's rows with all others.
    without = _errors(
        n[b] - parts.n, products[b] - 2.0 * residual * (total - residual), pairs[b] - 2.0 * parts.n * (n[b] - parts.n)
    )
    remaining = errors.sum() + parts.per_image(without - errors[b])
    remaining[pairs.sum() - parts.per_image(2.0 * parts.n * (n[b] - parts.n)) == 0.0] = np.nan
    return remaining / (n.sum() - parts.per_image(parts.n))


def _pairs(parts: _ImageBins) -> np.ndarray:
    """Return the number of ordered pairs of rows from two images in each bin, float64 [15]; exact."""
    return parts.per_bin(parts.n) ** 2 - parts.per_bin(parts.n**2)


def _products(parts: _ImageBins) -> np.ndarray:
    """Return the sum of r_i r_j over these pairs, float64 [15]."""
    order = np.lexsort((parts.residual, parts.bin))  # so that the sum of squares does not depend on the order of images
    squares = np.bincount(parts.bin[order], weights=(parts.residual[order] / parts.scale) ** 2, minlength=N_BINS)
    return (parts.per_bin(parts.residual) / parts.scale) ** 2 - squares


def _errors(n: np.ndarray, products: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return n times the mean product; 0 where there are no pairs."""
    return n * np.divide(products, pairs, out=np.zeros(len(n)), where=pairs > 0.5)


def ece_noise_floor(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, images: np.ndarray, n_images: int, names: tuple[str, ...]
) -> float:
    """Return the ECE below which calibrated confidences stay in 95% of samples of these images, by chance alone.

    In [0, 1]. It is the larger one of two 95th percentiles, because each is too low for some answers:

    - Every image gets a random sign, and the ECE is computed with the sums of sign * (correct - confidence). If
      confidences are calibrated, correct - confidence is 0 on average, whatever its sign. Answers to one image share
      the sign, so that their dependence counts.
    - Every answer is drawn to be correct with the probability that its confidence states, which leaves out that answers
      to one image depend on each other. With more than `LABELED_ROWS` answers, this is left out.

    An ECE above the floor is evidence of miscalibration at the level of 5%. An ECE below it is no evidence of
    calibration.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        images: int [n], the position of each row's image among all images that have a sign.
        n_images: Number of these images.
        names: The names from which signs and labels are drawn.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or all are of one image, of which the sign changes nothing.

    References:
        Cameron, Gelbach, Miller, Bootstrap-Based Improvements for Inference with Clustered Errors, 2008 (random signs
        per cluster). Bröcker and Smith, Increasing the Reliability of Reliability Diagrams, 2007 (drawn labels).
    """
    parts = _ImageBins.of(confidence, correct, images)
    present = np.unique(np.asarray(images))
    if len(present) < 2:
        raise UndefinedMetricError("all rows are of one image")
    by_signs = _percentile(_with_signs(parts, present, n_images, names)) / (parts.n.sum() * parts.scale)
    scores = np.sort(checked_confidence(confidence))
    if len(scores) > LABELED_ROWS:
        return by_signs
    opens = np.flatnonzero(np.append(True, np.diff(bins(scores)) > 0))
    drawn = generator(*names, "labels").random((SIGNS, len(scores))) < scores
    right = np.add.reduceat(drawn, opens, axis=1, dtype=np.int64)
    with_labels = np.abs(right - np.add.reduceat(scores, opens)).sum(axis=1)  # n * ECE with drawn labels
    return max(by_signs, _percentile(with_labels) / len(scores))


def _with_signs(parts: _ImageBins, present: np.ndarray, n_images: int, names: tuple[str, ...]) -> np.ndarray:
    """Return n * scale * ECE with the signs of the images `present`, float64 [SIGNS]."""
    order = np.argsort(parts.image, kind="stable")
    bin_of, image, residual = parts.bin[order], parts.image[order], parts.residual[order]
    filled, row = np.unique(bin_of, return_inverse=True)
    positive = np.zeros((len(filled), 8 * -(-SIGNS // 8)))
    for start, packed in _signs_by_block(names, n_images):
        first, end = np.searchsorted(present, (start, start + len(packed)))
        mine = slice(*np.searchsorted(image, (first, end)))
        gaps = np.zeros((len(filled), end - first))
        gaps[row[mine], image[mine] - first] = residual[mine]
        positive += gaps @ np.unpackbits(packed[present[first:end] - start], axis=1).astype(np.float64)
    sums = parts.per_bin(parts.residual)[filled, np.newaxis]
    return np.abs(2.0 * positive - sums).sum(axis=0)[:SIGNS]


def _percentile(values: np.ndarray) -> float:
    return float(np.sort(values)[_RANK - 1])


def is_by_chance(error: float, floor: float) -> bool:
    """Return whether calibrated confidences reach an ECE by chance, given `ece_noise_floor`; they reach the floor."""
    return error <= floor + _ROUNDING


def _signs_by_block(names: tuple[str, ...], n_images: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the place of the first image of each block, and whether each image's sign is positive."""
    # Signs are bits, uint8 [<= _BLOCK, 125]. All methods meet the same ones, which do not depend on the size of a
    # block.
    if n_images <= _KEPT_IMAGES:
        packed = _signs(names, n_images)
        yield from ((start, packed[start : start + _BLOCK]) for start in range(0, n_images, _BLOCK))
        return
    stream = generator(*names, "signs")
    for start in range(0, n_images, _BLOCK):
        yield start, _packed(stream, min(_BLOCK, n_images - start))


@lru_cache(maxsize=8)
def _signs(names: tuple[str, ...], n_images: int) -> np.ndarray:
    return _packed(generator(*names, "signs"), n_images)


def _packed(stream: np.random.Generator, n_images: int) -> np.ndarray:
    return np.frombuffer(stream.bytes(n_images * -(-SIGNS // 8)), dtype=np.uint8).reshape(n_images, -1)
