"""Find copies of a picture that were encoded again, resized, cropped by a pixel or mirrored, which no digest finds.

A perceptual hash and a comparison of two small gray pictures decide. For medical images, the hash alone would not do:
neighbouring slices of one volume have nearly the same hash and are not copies. The bounds come from 1,142 real images
(SLAKE and VQA-Med 2019). Their copies (JPEG of quality 75, half the size, both, one pixel cropped, resized to 224 x
224) had distances of at most 8 and differences of at most .018. The two most similar slices had a difference of .029,
and a picture and the mirror image of another one .13.

In a data set of one body part, a quarter of all pairs have nearly the same hash. So pairs are found in another way: by
their lowest frequencies (`_Lows`), of which a shift, a stretch or another brightness of one picture may explain a part.
Pictures are sorted into blocks, and only blocks whose pictures can be near enough are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.fft import dct, dctn
from scipy.ndimage import gaussian_filter

MOST_DISTANCE = 10
MOST_DIFFERENCE = 0.022

# Pairs beyond these are not looked at, in units of the contrast. Of all copies of the 1,142 images that the two bounds
# above accept, cropped by up to 4%, none was beyond .195 and .035; in a pair of theirs, mirrored copies differ as much.
_MOST_APART = 0.25  # the lowest frequencies of two pictures
_MOST_REST = 0.05  # what shift, stretch and brightness leave of that

_LOWEST = 8  # frequencies per direction
_MARGIN = 2  # pixels at the border are left out, because a crop changes them
_CHUNK = 64  # pairs that are compared at once; more do not fit into the cache
_BLOCK = 512  # pictures per block
_AT_ONCE = 1024  # pictures, or pairs by their frequencies, that are computed at once


def copies(
    thumbnails: np.ndarray, places: np.ndarray, *, mirrored: bool = False
) -> Iterator[tuple[int, int, int, float]]:
    """Yield (i, j, distance, difference) for every two pictures i < j of different `places` (int [n]) that are copies.

    `thumbnails` are gray levels, uint8 [n, 64, 64]; with `mirrored`, the second picture is mirrored, left to right. The
    distance is the number of bits (0 to 64) in which the hashes differ, the difference the result of `difference`: at
    most `MOST_DISTANCE` and `MOST_DIFFERENCE`. Memory is 1.7 kB per picture besides the thumbnails. Time grows with the
    number of pairs that look alike.
    """
    hashed = np.concatenate([np.zeros((0, 64), dtype=bool), *(hashes(part) for part in _parts(thumbnails))])
    others = hashed
    if mirrored:
        others = np.concatenate([hashed[:0], *(hashes(part[:, :, ::-1]) for part in _parts(thumbnails))])
    for first, second in _alike(_Lows.of(thumbnails), places, mirrored=mirrored):
        distance = (hashed[first] != others[second]).sum(axis=1)
        near = distance <= MOST_DISTANCE
        first, second, distance = first[near], second[near], distance[near]
        for start in range(0, len(first), _CHUNK):
            i, j = first[start : start + _CHUNK], second[start : start + _CHUNK]
            shown = thumbnails[j][:, :, ::-1] if mirrored else thumbnails[j]
            for k, value in enumerate(difference(blurred(thumbnails[i]), blurred(shown))):
                if value <= MOST_DIFFERENCE:
                    yield int(i[k]), int(j[k]), int(distance[start + k]), float(value)


def _parts(thumbnails: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(thumbnails), _AT_ONCE):
        yield thumbnails[start : start + _AT_ONCE]


def hashes(thumbnails: np.ndarray) -> np.ndarray:
    """Return the perceptual hashes of pictures, as bool [n, 64].

    A bit tells whether one of the 64 lowest frequencies of the cosine transform exceeds their median. The lowest
    frequency, which is the mean gray level, does not count for the median.
    """
    frequencies = np.asarray(dctn(thumbnails.astype(np.float32), axes=(1, 2), norm="ortho"))
    low = frequencies[:, :8, :8].reshape(-1, 64)
    return low > np.median(low[:, 1:], axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class _Lows:
    """The lowest frequencies of pictures of contrast 1, without their mean: float32 [n, 63].

    `changes`, float32 [n, 5, 63], are orthonormal directions in which brightness, shift and stretch change them.
    """

    values: np.ndarray
    changes: np.ndarray

    @classmethod
    def of(cls, thumbnails: np.ndarray) -> "_Lows":
        """Return those of thumbnails, uint8 [n, 64, 64]."""
        n_changes, n_values = 5, _LOWEST**2 - 1
        values = np.empty((len(thumbnails), n_values), dtype=np.float32)
        changes = np.empty((len(thumbnails), n_changes, n_values), dtype=np.float32)
        start = 0
        for part in _parts(thumbnails):
            columns = _columns(blurred(part))
            inside = columns[0].reshape(len(part), -1)
            contrast = np.maximum(inside.std(axis=1), 1.0)[:, None]
            side = columns[0].shape[1]
            waves = np.asarray(dct(np.eye(side), axis=0, norm="ortho"))[:_LOWEST].astype(np.float32)
            # The lowest frequencies but the mean, as root mean squares.
            squares = [(waves @ column @ waves.T).reshape(len(part), -1)[:, 1:] / side for column in columns]
            lows = np.stack([square / contrast for square in squares], axis=1)
            rows = slice(start, start := start + len(part))
            values[rows] = lows[:, 0]
            changes[rows] = np.linalg.qr(lows.swapaxes(1, 2))[0].swapaxes(1, 2)
        return cls(values=values, changes=changes)

    def mirrored(self) -> np.ndarray:
        """Return the values of the mirrored pictures: odd frequencies across change their sign."""
        odd = np.arange(_LOWEST**2)[1:] % _LOWEST % 2 == 1
        return np.where(odd, -self.values, self.values)


def _columns(pictures: np.ndarray) -> list[np.ndarray]:
    """Return pictures, their gradients, and the gradients times the coordinate, without the margin."""
    down, right = np.gradient(pictures, axis=(1, 2))
    at = np.linspace(-1, 1, pictures.shape[1], dtype=np.float32)
    return [_inside(column) for column in (pictures, down, right, down * at[:, None], right * at)]


def _inside(pictures: np.ndarray) -> np.ndarray:
    return pictures[:, _MARGIN:-_MARGIN, _MARGIN:-_MARGIN]


def _alike(lows: _Lows, places: np.ndarray, *, mirrored: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield arrays (first, second) of pictures whose lowest frequencies are near; first < second, other places."""
    other = lows.mirrored() if mirrored else lows.values
    blocks = list(_blocks(lows.values, np.arange(len(places))))
    lowest, highest = (np.array([extreme(other[block], axis=0) for block in blocks]) for extreme in (np.min, np.max))
    alone = [places[block].min() == places[block].max() for block in blocks]
    for a, rows in enumerate(blocks):
        low, high = lows.values[rows].min(axis=0), lows.values[rows].max(axis=0)
        gap = np.maximum(np.maximum(lowest - high, low - highest), 0)
        for b in np.flatnonzero(np.square(gap).sum(axis=1) <= _MOST_APART**2):
            # Of two pictures, the first one is mirrored in one order of the blocks, and the second in the other.
            columns = blocks[b]
            if (b < a and not mirrored) or (alone[a] and alone[b] and places[rows[0]] == places[columns[0]]):
                continue
            squares = _squares(lows.values[rows])[:, None] + _squares(other[columns])
            apart = squares - 2 * lows.values[rows] @ other[columns].T
            i, j = np.nonzero((apart <= _MOST_APART**2) & (places[rows][:, None] != places[columns]))
            i, j = rows[i], columns[j]
            if a == b or mirrored:
                i, j = i[i < j], j[i < j]
            elif len(i):
                i, j = np.minimum(i, j), np.maximum(i, j)
            for start in range(0, len(i), _AT_ONCE):
                first, second = i[start : start + _AT_ONCE], j[start : start + _AT_ONCE]
                step = other[second] - lows.values[first]
                explained = (lows.changes[first] @ step[:, :, None])[:, :, 0]
                near = _squares(step) - _squares(explained) <= _MOST_REST**2
                yield first[near], second[near]


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.square(rows).sum(axis=1)


def _blocks(values: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the `rows` in blocks of near values, halved along the widest direction until they are small enough."""
    if len(rows) <= _BLOCK:
        if len(rows):
            yield rows
        return
    widest = np.argmax(np.ptp(values[rows], axis=0))
    order = rows[np.argsort(values[rows, widest], kind="stable")]
    for half in np.array_split(order, 2):
        yield from _blocks(values, half)


def blurred(thumbnails: np.ndarray) -> np.ndarray:
    """Return `thumbnails` as `difference` needs them: blurred, so that a shift changes the pixels gradually."""
    return gaussian_filter(thumbnails.astype(np.float32), (0, 1.0, 1.0))


def difference(picture: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return how much pictures, blurred float32 [n, 64, 64], differ from others, apart from small changes; float [n].

    The difference of two pictures is fitted by least squares with a constant and their mean (brightness), the gradient
    of the mean (a shift), and the gradient times the coordinate (a stretch). The result is the root mean square of the
    residual divided by the contrast of the mean, at least 1 gray level; 0 for equal pictures. The order of the two does
    not matter.
    """
    mean = (picture + other) / 2
    columns = _columns(mean)
    design = np.stack([_centered(column) for column in columns], axis=1)
    target = _centered(_inside(other - picture))
    # Normal equations of many pairs at once; the ridge makes them solvable for pictures without a gradient.
    products = (design @ design.swapaxes(1, 2)).astype(np.float64)
    ridge = 1e-6 * np.trace(products, axis1=1, axis2=2) + 1e-6
    weights = np.linalg.solve(products + ridge[:, None, None] * np.eye(len(columns)), design @ target[:, :, None])
    rest = target - (weights.swapaxes(1, 2) @ design)[:, 0]
    contrast = np.maximum(design[:, 0].std(axis=1), 1.0)  # in gray levels
    return np.sqrt(np.square(rest).mean(axis=1)) / contrast


def _centered(pictures: np.ndarray) -> np.ndarray:
    flat = pictures.reshape(len(pictures), -1)
    return flat - flat.mean(axis=1, keepdims=True)
