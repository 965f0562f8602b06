"""Answer sets: how often the set of a random answer about a new image has the right choice (`coverage.py`)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from dualread.apps.text import aligned
from dualread.evaluation.answer_sets import conformal_threshold, set_rates

MISS, CHOICES, NEW = 0.1, 4, 400
# By name, the number of answers to each of n images; those with many answers are harder in "harder".
SIZES: Mapping[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "1 answer each": lambda rng, n: np.ones(n, dtype=np.int64),
    "8 answers each": lambda rng, n: np.full(n, 8),
    "1, or 40 of every tenth": lambda rng, n: np.where(rng.random(n) < 0.1, 40, 1),
    "1, or 40, harder, of every tenth": lambda rng, n: np.where(rng.random(n) < 0.1, 40, 1),
}


def answer_set_lines(n: int) -> Iterator[str]:
    table: list[tuple[str, ...]] = [
        ("images", "answers", "rule", "coverage", "se", "of rows", "size", "empty", "single")
    ]
    for name, sizes in SIZES.items():
        for images in (9, 30, 100):
            rng = np.random.default_rng([7, images, len(name)])
            rates: dict[str, list[tuple[float, ...]]] = defaultdict(list)
            for _ in range(n):
                p, right, image = _drawn(sizes(rng, images), "harder" in name, rng)
                new = _drawn(sizes(rng, NEW), "harder" in name, rng)
                own, first = p[np.arange(len(right)), right], np.unique(image, return_index=True)[1]
                cuts = {
                    "printed": (own, image),
                    "answers as if independent": (own, np.arange(len(own))),
                    "first answer of each image": (own[first], image[first]),
                }
                for rule, (of_right, cluster) in cuts.items():
                    found = set_rates(
                        new[0],
                        new[0][np.arange(len(new[1])), new[1]],
                        new[2],
                        threshold=conformal_threshold(of_right, cluster, miss=MISS),
                    )
                    rates[rule].append((found.coverage_of_clusters, found.coverage, *found[4:]))
            for rule, values in rates.items():
                error = f"{np.std([row[0] for row in values]) / np.sqrt(n):.3f}"
                cover, *others = (f"{value:.3f}" for value in np.mean(values, axis=0))
                table.append((str(images), name, rule, cover, error, *others))
    yield from aligned(table, numbers=(0, 3, 4, 5, 6, 7, 8))


def _drawn(sizes: np.ndarray, harder: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities of choices [n, choices], the right ones, and images, which differ in how hard they are."""
    image = np.repeat(np.arange(len(sizes)), sizes)
    ease = 1.5 + 1.5 * rng.standard_normal(len(sizes)) - (2.0 * (sizes > 1) if harder else 0.0)
    logits = rng.standard_normal((len(image), CHOICES))
    right = rng.integers(0, CHOICES, len(image))
    logits[np.arange(len(image)), right] += ease[image]
    odds = np.exp(logits)
    return odds / odds.sum(axis=1, keepdims=True), right, image
