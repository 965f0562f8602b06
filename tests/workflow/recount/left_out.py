"""The variance of CCG-AUC from leaving out images, pair by pair and image by image, without the library's code."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import variance

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv
from scipy.stats import t

from tests.workflow.recount.values import Decisive

LEVEL = 0.05


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The variance of an estimate, its degrees of freedom, how many images it is worth, and its part between seeds.

    `together` is what seeds and images have together, of the variance of a mean over seeds.
    """

    variance: float
    df: float
    images: float
    between: float = 0.0
    seeds: int = 1
    together: float = 0.0

    def steps(self, probability: float) -> float:
        """Return within how many standard errors an estimate is with this probability, by Banerjee's inequality."""
        squares = (self.variance - self.between) * t.interval(probability, self.df)[1] ** 2
        if self.between > 0:
            squares += self.between * t.interval(probability, self.seeds - 1)[1] ** 2
        return sqrt(squares / self.variance)


def of_datasets(sides: Sequence[Sequence[Sequence[Decisive]]]) -> Spread:
    """Return the spread of a mean over data sets, of one method or of the difference of two.

    Args:
        sides: For method and baseline, for each data set, for each seed, the pairs; and the same of another
            seed, from which it is subtracted.
    """
    of_each = [_of_dataset([side[k] for side in sides]) for k in range(len(sides[0]))]
    n = len(of_each)
    total = sum(of.variance for of in of_each) / n**2
    parts = [(of.variance / n**2, of.df) for of in of_each]
    return Spread(variance=total, df=_pooled(parts), images=n * min(of.images for of in of_each))


def over_seeds(of_images: Spread, by_seed: Sequence[float]) -> Spread:
    """Return the spread with the variance of the mean over seeds in place of what seeds and images have together."""
    between = variance(by_seed) / len(by_seed)
    rest = max(of_images.variance - of_images.together, 0.0)
    return replace(of_images, variance=rest + between, between=between, seeds=len(by_seed))


def interval(value: float, of: Spread, *, difference: bool) -> tuple[float | None, float | None]:
    """Return the ends of the 95% interval."""
    low = -1.0 if difference else 0.0
    if of.df == 0:
        return None, None
    if of.variance == 0:
        # No more than this share may be otherwise, if so many images are all alike.
        b = float(1 - betaincinv(of.images, 1.0, LEVEL / 2))
        return value - b * (value - low), value + b * (1.0 - value)
    half = of.steps(1 - LEVEL) * sqrt(of.variance)
    if difference:
        return max(-1.0, value - half), min(1.0, value + half)
    odds, half = value / (1 - value), half / (value * (1 - value))
    ends = [odds * np.exp(step) / (1 + odds * np.exp(step)) for step in (-half, half)]
    return float(ends[0]), float(ends[1])


def p_value(value: float, of: Spread, carriers: int) -> float | None:
    """Return the two-sided p-value, not below that of the sign test with so many images; None if df is 0."""
    if of.df == 0:
        return None
    if value == 0:
        return 1.0
    if of.variance == 0:
        p = 0.0
    else:
        p = 2 * float(t.cdf(-abs(value) / sqrt(of.variance), of.df))
        if of.between > 0:
            steps, least = abs(value) / sqrt(of.variance), 1e-12
            exceeds = of.steps(1 - least) < steps
            p = least if exceeds else float(brentq(lambda p: of.steps(1 - p) - steps, least, 1.0, xtol=1e-14))
    return min(1.0, max(p, 2 * 0.5**carriers))


def carriers(sides: Sequence[Sequence[Sequence[Decisive]]]) -> int:
    """Return on how many images a difference rests: on the shorter side, added up over data sets."""
    found = 0
    for method, baseline in zip(*sides, strict=True):
        first = method[0]
        adds = [_adds(seeds) for seeds in (method, baseline)]
        rows = [k for k in range(len(first.real)) if any(abs(a[k] - b[k]) > 1e-13 for a, b in zip(*adds, strict=True))]
        found += min(len({images[k] for k in rows}) for images in (first.sources, first.others))
    return found


def _adds(seeds: Sequence[Decisive]) -> tuple[list[float], list[float]]:
    """Return, pair by pair, what it adds to the mean over seeds, and its weight."""
    value, weight = (
        [sum(part[k] * of.chosen[k] / of.chosen.sum() for part, of in zip(parts, seeds, strict=True)) / len(seeds)
         for k in range(len(seeds[0].real))]
        for parts in ([of.phi for of in seeds], [np.ones(len(of.real)) for of in seeds])
    )  # fmt: skip
    return value, weight


def _of_dataset(sides: Sequence[Sequence[Decisive]]) -> Spread:
    signs = (1.0, -1.0, -1.0, 1.0)

    def estimate(keep: np.ndarray) -> float:
        """Return the value on some of the pairs; a seed without any keeps its value on all."""
        total = 0.0
        for sign, seeds in zip(signs, sides, strict=False):
            for of in seeds:
                chosen = of.chosen & keep if (of.chosen & keep).any() else of.chosen
                total += sign * of.phi[chosen].mean() / len(seeds)
        return total

    first = sides[0][0]
    used = np.any([of.chosen for seeds in sides for of in seeds], axis=0)
    both = [frozenset(pair) for pair in zip(first.sources.tolist(), first.others.tolist(), strict=True)]
    whole = estimate(np.ones(len(used), dtype=bool))

    def left_out(sets: set[frozenset]) -> float:
        moved = [estimate(np.array([not left <= pair for pair in both])) - whole for left in sets]
        return sum(shift**2 for shift in moved) * (len(sets) - 1) / len(sets)

    pairs = {pair for pair, is_used in zip(both, used, strict=True) if is_used}
    of_pairs = left_out(pairs)
    of_images = left_out({frozenset([image]) for pair in pairs for image in pair})
    images = min(
        float(of.chosen.sum() ** 2 / sum(np.unique(side[of.chosen], return_counts=True)[1] ** 2))
        for seeds in sides
        for of in seeds
        for side in (of.sources, of.others)
    )
    value = max(of_images - of_pairs, of_pairs / 2)
    df = images - 1 if images >= 1.5 else 0.0  # most pairs share one image: nothing is known about others
    return Spread(variance=value if value > 1e-25 else 0.0, df=df, images=images)


def _pooled(parts: Sequence[tuple[float, float]]) -> float:
    """Return Satterthwaite's degrees of freedom."""
    total = sum(value for value, _ in parts)
    if total == 0:
        return min(df for _, df in parts)
    if any(df == 0 for _, df in parts):  # a data set about which nothing is known, whatever its variance
        return 0.0
    return total**2 / sum(value**2 / df for value, df in parts if value > 0)
