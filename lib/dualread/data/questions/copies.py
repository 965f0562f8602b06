"""Find copies of one picture: encoded again, resized, or cropped by a pixel, so that their pixels have another digest.

A perceptual hash finds candidates, and a comparison of two small gray pictures decides. Medical images make both
necessary: neighbouring slices of one volume have nearly the same hash, and are not copies. The bounds come from 1,142
real images (SLAKE and VQA-Med 2019): copies (JPEG 75, half the size, both, a pixel cropped, 224 x 224) had distances of
at most 8 and differences of at most .018, and the closest two slices a difference of .029.
"""

from collections.abc import Iterator

import numpy as np
from scipy.fft import dctn
from scipy.ndimage import gaussian_filter

MOST_DISTANCE = 10
MOST_DIFFERENCE = 0.022

_MARGIN = 2  # a crop changes what lies at the border
_CHUNK = 64  # pairs, or rows of pairs, worked on at once; more do not fit into a processor's cache


def copies(thumbnails: np.ndarray, places: np.ndarray) -> Iterator[tuple[int, int, int, float]]:
    """Yield (i, j, distance, difference) of every two pictures i < j of different places that are copies of each other.

    Args:
        thumbnails: [n, 64, 64] gray levels, 8 bits, as `dualread.data.questions.pictures` makes them.
        places: [n] where a picture is; two pictures of one place are not compared.
    """
    pictures = blurred(thumbnails)
    for first, second, distance in _candidates(hashes(thumbnails), places):
        for start in range(0, len(first), _CHUNK):
            i, j = first[start : start + _CHUNK], second[start : start + _CHUNK]
            for k, value in enumerate(difference(pictures[i], pictures[j])):
                if value <= MOST_DIFFERENCE:
                    yield int(i[k]), int(j[k]), int(distance[start + k]), float(value)


def hashes(thumbnails: np.ndarray) -> np.ndarray:
    """Return [n, 64] bits: which of the 64 lowest frequencies of the cosine transform exceed their median.

    The mean gray level (the lowest frequency) does not count for the median.
    """
    frequencies = np.asarray(dctn(thumbnails.astype(np.float32), axes=(1, 2), norm="ortho"))
    low = frequencies[:, :8, :8].reshape(-1, 64)
    return low > np.median(low[:, 1:], axis=1, keepdims=True)


def _candidates(bits: np.ndarray, places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the indices of pairs whose hashes differ in at most `MOST_DISTANCE` bits, and in how many."""
    signs = np.where(bits, 1, -1).astype(np.float32)
    for start in range(0, len(signs), _CHUNK):
        rows = slice(start, start + _CHUNK)
        distance = (64 - signs[rows] @ signs.T) / 2  # exact: small whole numbers
        near = (distance <= MOST_DISTANCE) & (places[rows, None] != places)
        near &= np.arange(len(signs)) > np.arange(start, start + len(near))[:, None]
        first, second = np.nonzero(near)
        yield first + start, second, distance[first, second]


def blurred(thumbnails: np.ndarray) -> np.ndarray:
    """Return `thumbnails` as `difference` wants them: a sharp edge would be no smooth function of a shift."""
    return gaussian_filter(thumbnails.astype(np.float32), (0, 1.0, 1.0))


def difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return [n], how much of `other` is not `one` moved, stretched, brightened or darkened by a little; 0 for copies.

    The difference of the two [n, 64, 64] pictures is fitted by a constant, their mean, the gradient of the mean (a
    shift) and the gradient times the coordinate (a stretch); what is left is given relative to the contrast. Symmetric.
    """
    mean = (one + other) / 2
    down, right = np.gradient(mean, axis=(1, 2))
    at = np.linspace(-1, 1, mean.shape[1], dtype=np.float32)
    columns = (mean, down, right, down * at[:, None], right * at)
    design = np.stack([_centered(np.asarray(column)) for column in columns], axis=1)
    target = _centered(other - one)
    # Normal equations of many pairs at once; the ridge is for pictures that are flat in some direction.
    products = (design @ design.swapaxes(1, 2)).astype(np.float64)
    ridge = 1e-6 * np.trace(products, axis1=1, axis2=2) + 1e-6
    weights = np.linalg.solve(products + ridge[:, None, None] * np.eye(len(columns)), design @ target[:, :, None])
    rest = target - (weights.swapaxes(1, 2) @ design)[:, 0]
    contrast = np.maximum(design[:, 0].std(axis=1), 1.0)  # in gray levels
    return np.sqrt(np.square(rest).mean(axis=1)) / contrast


def _centered(pictures: np.ndarray) -> np.ndarray:
    kept = slice(_MARGIN, -_MARGIN)
    inside = pictures[:, kept, kept].reshape(len(pictures), -1)
    return inside - inside.mean(axis=1, keepdims=True)
