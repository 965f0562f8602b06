"""Find copies of a picture that were encoded again, resized or cropped by a pixel, so that no pixel digest finds them.

A perceptual hash finds candidates, and a comparison of two small gray pictures decides. For medical images, the hash
alone would not do: neighbouring slices of one volume have nearly the same hash and are not copies. The bounds come from
1,142 real images (SLAKE and VQA-Med 2019). Their copies (JPEG of quality 75, half the size, both, one pixel cropped,
resized to 224 x 224) had distances of at most 8 and differences of at most .018. The two most similar slices had a
difference of .029.
"""

from collections.abc import Iterator

import numpy as np
from scipy.fft import dctn
from scipy.ndimage import gaussian_filter

MOST_DISTANCE = 10
MOST_DIFFERENCE = 0.022

_MARGIN = 2  # pixels at the border are left out, because a crop changes them
_CHUNK = 64  # pairs, or rows of the matrix of pairs, that are compared at once; more do not fit into the cache


def copies(thumbnails: np.ndarray, places: np.ndarray) -> Iterator[tuple[int, int, int, float]]:
    """Yield (i, j, distance, difference) for every two pictures i < j of different groups that are copies.

    Args:
        thumbnails: uint8 [n, 64, 64], gray levels, as `dualread.data.questions.pictures` makes them.
        places: int [n], the group of each picture; two pictures of the same group are not compared.

    Yields:
        The indices of the two pictures, the number of bits (0 to 64) in which their hashes differ, and the result of
        `difference`: at most `MOST_DISTANCE` and `MOST_DIFFERENCE`.
    """
    pictures = blurred(thumbnails)
    for first, second, distance in _candidates(hashes(thumbnails), places):
        for start in range(0, len(first), _CHUNK):
            i, j = first[start : start + _CHUNK], second[start : start + _CHUNK]
            for k, value in enumerate(difference(pictures[i], pictures[j])):
                if value <= MOST_DIFFERENCE:
                    yield int(i[k]), int(j[k]), int(distance[start + k]), float(value)


def hashes(thumbnails: np.ndarray) -> np.ndarray:
    """Return the perceptual hashes of pictures, as bool [n, 64].

    A bit tells whether one of the 64 lowest frequencies of the cosine transform exceeds their median. The lowest
    frequency, which is the mean gray level, does not count for the median.
    """
    frequencies = np.asarray(dctn(thumbnails.astype(np.float32), axes=(1, 2), norm="ortho"))
    low = frequencies[:, :8, :8].reshape(-1, 64)
    return low > np.median(low[:, 1:], axis=1, keepdims=True)


def _candidates(bits: np.ndarray, places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (first, second, distance): the pairs whose hashes differ in at most `MOST_DISTANCE` bits, as arrays."""
    signs = np.where(bits, 1, -1).astype(np.float32)
    for start in range(0, len(signs), _CHUNK):
        rows = slice(start, start + _CHUNK)
        distance = (64 - signs[rows] @ signs.T) / 2  # exact, because the numbers are small and whole
        near = (distance <= MOST_DISTANCE) & (places[rows, None] != places)
        near &= np.arange(len(signs)) > np.arange(start, start + len(near))[:, None]
        first, second = np.nonzero(near)
        yield first + start, second, distance[first, second]


def blurred(thumbnails: np.ndarray) -> np.ndarray:
    """Return `thumbnails` as `difference` needs them: blurred, so that a shift changes the pixels gradually."""
    return gaussian_filter(thumbnails.astype(np.float32), (0, 1.0, 1.0))


def difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return how much two pictures differ after a small shift, a small stretch and a change of brightness.

    The difference of the pictures is fitted by least squares with a constant and their mean (brightness), the gradient
    of the mean (a shift), and the gradient times the coordinate (a stretch).

    Args:
        one: float32 [n, 64, 64], blurred gray levels.
        other: The pictures to compare them with, of the same shape; the order of the two does not matter.

    Returns:
        float [n], the root mean square of the residual divided by the contrast of the mean; 0 for equal pictures. The
            contrast is taken to be at least 1 gray level.
    """
    mean = (one + other) / 2
    down, right = np.gradient(mean, axis=(1, 2))
    at = np.linspace(-1, 1, mean.shape[1], dtype=np.float32)
    columns = (mean, down, right, down * at[:, None], right * at)
    design = np.stack([_centered(np.asarray(column)) for column in columns], axis=1)
    target = _centered(other - one)
    # Normal equations of many pairs at once; the ridge makes them solvable for pictures without a gradient.
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
