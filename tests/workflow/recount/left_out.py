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
        adds = [_adds(seeds) for seeds in (method, baseline)]
        images = {n: at for of in (*method, *baseline) for n, *at in zip(of.names, of.sources, of.others, strict=True)}
        moved = [
            n for n in images if any(abs(a.get(n, 0.0) - b.get(n, 0.0)) > 1e-13 for a, b in zip(*adds, strict=True))
        ]
        found += min(len({images[n][side] for n in moved}) for side in (0, 1))
    return found


def _adds(seeds: Sequence[Decisive]) -> tuple[dict[str, float], dict[str, float]]:
    """Return, by the name of a pair, what it adds to the mean over seeds, and its weight."""
    value: dict[str, float] = {}
    weight: dict[str, float] = {}
    for of in seeds:
        for name, phi, chosen in zip(of.names, of.phi, of.chosen, strict=True):
            share = chosen / of.chosen.sum() / len(seeds)
            value[name] = value.get(name, 0.0) + phi * share
            weight[name] = weight.get(name, 0.0) + share
    return value, weight


def _of_dataset(sides: Sequence[Sequence[Decisive]]) -> Spread:
    signs = (1.0, -1.0, -1.0, 1.0)

    every = [of for seeds in sides for of in seeds]
    both = {
        id(of): [frozenset(pair) for pair in zip(of.sources.tolist(), of.others.tolist(), strict=True)] for of in every
    }

    def estimate(left: frozenset) -> float:
        """Return the value without the pairs that show these images; a seed without any other keeps its value."""
        total = 0.0
        for sign, seeds in zip(signs, sides, strict=False):
            for of in seeds:
                keep = of.chosen & np.array([not left <= pair for pair in both[id(of)]], dtype=bool)
                total += sign * of.phi[keep if keep.any() else of.chosen].mean() / len(seeds)
        return total

    whole = estimate(frozenset([-1]))  # an image that no pair shows

    def left_out(sets: set[frozenset]) -> float:
        moved = [estimate(left) - whole for left in sets]
        return sum(shift**2 for shift in moved) * (len(sets) - 1) / len(sets)

    pairs = {pair for of in every for pair, is_used in zip(both[id(of)], of.chosen, strict=True) if is_used}
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
