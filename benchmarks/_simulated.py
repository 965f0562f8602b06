"""Data sets of a known source, for `coverage.py`: answers, donor pairs, and answers that choose a threshold."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

MANY = 20_000  # images of the sample that stands for the source


@dataclass(frozen=True, kw_only=True)
class Design:
    """A source, and how much of it is seen.

    An answer is correct if a latent value is positive; `icc` is the share of its variance that belongs to the image. A
    method sees the latent value with noise, of which the same share belongs to the image. Its confidence is the
    probability of being correct given what it sees, and is therefore calibrated.
    """

    name: str
    images: int
    per_image: tuple[int, int] = (1, 6)
    accuracy: float = 0.7
    icc: float = 0.3
    donors: int | None = None  # number of distinct donor images; None for one of all images at random


METHODS = {"a": 1.0, "b": 1.0, "narrow": 30.0}  # deviation of the noise; 30 leaves nearly constant confidences


def answers(design: Design, rng: np.random.Generator, noise: dict[str, float] = METHODS) -> tuple[dict, dict]:
    """Return the tables of answers and of donor pairs, as columns, one row per method and question.

    The method `blind` does not respond to the image: its CCG-AUC is .5.
    """
    low, high = design.per_image
    image = np.repeat(np.arange(design.images), rng.integers(low, high + 1, design.images))
    n, mean = len(image), float(ndtri(design.accuracy))
    donor = _donors(design, image, rng)
    own, question = rng.standard_normal(design.images), rng.standard_normal(n)
    latent = mean + _mixed(own[image], question, design.icc)
    # On the donor's image, the answer is more often wrong; how hard the question is stays in part.
    on_donor = mean - 1.0 + _mixed(own[donor], 0.6 * question + 0.8 * rng.standard_normal(n), design.icc)
    names = {"sample_id": [f"q{k}" for k in range(n)], "image_id": [f"i{k}" for k in image]}
    donors = {"sample_id": names["sample_id"], "donor_image_id": [f"i{k}" for k in donor]}
    tables: tuple[list, list] = [], []
    for method, deviation in noise.items():
        of_image = rng.standard_normal(design.images)
        seen, seen_on_donor = (
            value + deviation * _mixed(of_image[at], rng.standard_normal(n), design.icc)
            for value, at in ((latent, image), (on_donor, donor))
        )
        confidence, donor_confidence = (_confidence(value, mean, deviation) for value in (seen, seen_on_donor))
        tables[0].append({**names, "method": method, "correct": latent > 0, "confidence": confidence})
        tables[1].append(
            {**donors, "method": method, "donor_correct": on_donor > 0, "donor_confidence": donor_confidence}
        )
    blind = ndtr(0.5 * question + rng.standard_normal(n)), ndtr(0.5 * question + rng.standard_normal(n))
    tables[0].append({**names, "method": "blind", "correct": latent > 0, "confidence": blind[0]})
    tables[1].append({**donors, "method": "blind", "donor_correct": on_donor > 0, "donor_confidence": blind[1]})
    return _stacked(tables[0]), _stacked(tables[1])


def source(design: Design) -> Design:
    """Return the design with so many images that estimates are the true values."""
    return replace(design, images=MANY, donors=None)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A source of calibration answers, whose risk above each confidence is known.

    Attributes:
        name: What it is like.
        images: Number of calibration images.
        sizes: Returns the number of answers of n images.
        wrong: Returns the probability that an answer is wrong, from its confidence and the size of its image.
        confidence: Returns n confidences.
        together: Whether all answers to an image share their luck.
        max_per_image: The known largest number of answers to an image; None if it is not known.
    """

    name: str
    images: int
    sizes: Callable[[np.random.Generator, int], np.ndarray]
    wrong: Callable[[np.ndarray, np.ndarray], np.ndarray]
    confidence: Callable[[np.random.Generator, int], np.ndarray] = lambda rng, n: rng.beta(3, 1, n)
    together: bool = False
    max_per_image: int | None = None

    def draw(self, rng: np.random.Generator, images: int | None = None) -> dict[str, np.ndarray]:
        """Return confidence, probability of being wrong, correctness and image of every answer."""
        size = self.sizes(rng, images or self.images)
        image = np.repeat(np.arange(len(size)), size)
        confidence = self.confidence(rng, len(image))
        wrong = self.wrong(confidence, size[image])
        luck = rng.random(len(size))[image] if self.together else rng.random(len(image))
        return {"confidence": confidence, "wrong": wrong, "correct": luck >= wrong, "image": image}


def one(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.ones(n, dtype=np.int64)


def twelve(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.full(n, 12)


def uneven(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.minimum(rng.geometric(0.35, n), 12)


def rarely_sixty(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.003, 60, 2)


def tied(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([0.3, 0.6, 0.8, 0.9, 1.0], n, p=[0.1, 0.2, 0.3, 0.3, 0.1])


def calibrated(confidence: np.ndarray, size: np.ndarray) -> np.ndarray:
    return 1.0 - confidence


def at_target(confidence: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return a risk just above the target of .2, whatever the confidence."""
    return np.full(len(confidence), 0.2 + 1e-6)


def at_target_with_all(confidence: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return .02 for the upper 60% of Beta(3, 1) and, for the others, what makes the risk of all .2 + 1e-3."""
    return np.where(confidence**3 >= 0.4, 0.02, (0.201 - 0.02 * 0.6) / 0.4)


def too_confident(confidence: np.ndarray, size: np.ndarray) -> np.ndarray:
    return np.where(confidence > 0.95, 0.5, np.where(confidence > 0.6, 0.12, 0.5))


def wrong_in_large(confidence: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return 1 in images with 60 answers and otherwise what makes the risk of all .22."""
    others = (0.22 * (0.003 * 60 + 0.997 * 2) - 0.003 * 60) / (0.997 * 2)
    return np.where(size == 60, 1.0, others)


CALIBRATIONS = (
    Calibration(name="calibrated, 1 answer", images=100, sizes=one, wrong=calibrated),
    Calibration(name="calibrated, 12 answers", images=100, sizes=twelve, wrong=calibrated),
    Calibration(name="calibrated, 1 to 12 answers", images=400, sizes=uneven, wrong=calibrated),
    Calibration(name="at the target, 1 answer", images=100, sizes=one, wrong=at_target),
    Calibration(name="at the target, ties", images=60, sizes=one, wrong=at_target, confidence=tied),
    Calibration(name="at the target with all", images=200, sizes=one, wrong=at_target_with_all),
    Calibration(name="at the target, 12 together", images=100, sizes=twelve, wrong=at_target, together=True),
    Calibration(name="at the target, tiny", images=8, sizes=uneven, wrong=at_target, confidence=tied),
    Calibration(name="wrong above .95", images=200, sizes=one, wrong=too_confident),
    Calibration(name="rare images with 60 wrong answers", images=200, sizes=rarely_sixty, wrong=wrong_in_large),
    Calibration(name="the same, largest known", images=200, sizes=rarely_sixty, wrong=wrong_in_large, max_per_image=60),
)


def _donors(design: Design, image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return another image for every question."""
    known = rng.choice(design.images, design.donors, replace=False) if design.donors else np.arange(design.images)
    place = rng.integers(0, len(known), len(image))
    same = known[place] == image
    return np.where(same, known[(place + 1) % len(known)], known[place])


def _mixed(of_image: np.ndarray, single: np.ndarray, icc: float) -> np.ndarray:
    return np.sqrt(icc) * of_image + np.sqrt(1.0 - icc) * single


def _confidence(seen: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    """Return P(latent > 0 | seen), for a latent value with variance 1 and noise with this deviation."""
    share = 1.0 / (1.0 + deviation**2)
    return ndtr((mean + share * (seen - mean)) / np.sqrt(1.0 - share))


def _stacked(tables: list[dict]) -> dict:
    """Return the rows of all tables, column by column; a text stands for a whole column."""
    n = len(tables[0]["sample_id"])
    whole = [{name: np.full(n, of) if isinstance(of, str) else of for name, of in table.items()} for table in tables]
    return {name: np.concatenate([table[name] for table in whole]) for name in whole[0]}
