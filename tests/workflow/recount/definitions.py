"""The paper's metrics as its text has them ("Metric definitions", "Properties and Scope of CCG-AUC").

None where a metric is undefined, never 0 or 0.5.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from hashlib import sha256
from math import log2

import numpy as np
import polars as pl
from scipy import stats
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

BINS = 15


def accuracy(confidence: np.ndarray, correct: np.ndarray) -> float | None:
    return sum(map(int, correct)) / len(correct) if len(correct) else None


def auroc(confidence: np.ndarray, correct: np.ndarray) -> float | None:
    return float(roc_auc_score(correct, confidence)) if len(set(map(bool, correct))) == 2 else None


def ece15(confidence: np.ndarray, correct: np.ndarray) -> float | None:
    if len(correct) == 0:
        return None
    total = 0.0
    for _, _, inside in in_bins(confidence):
        if inside.any():
            total += inside.sum() / len(correct) * abs(correct[inside].mean() - confidence[inside].mean())
    return float(total)


def in_bins(confidence: np.ndarray) -> list[tuple[float, float, np.ndarray]]:
    """Return [0, 1/15), ..., [14/15, 1] with who is inside."""
    edges = [(k / BINS, (k + 1) / BINS) for k in range(BINS)]
    return [(low, high, (confidence >= low) & ((confidence < high) | (high == 1.0))) for low, high in edges]


def squared_error(answers: pl.DataFrame) -> float | None:
    """Return the mean over answers of the mean product of residuals of two images in its bin, 0 without any."""
    return _squared_error(*_by_bin_and_image(answers))


def squared_error_left_out(answers: pl.DataFrame, images: list[str]) -> np.ndarray:
    """Return the same without each image."""
    residuals, counts = _by_bin_and_image(answers)
    assert sorted(set(answers["cluster"])) == images
    found = [_squared_error(np.delete(residuals, k, axis=1), np.delete(counts, k, axis=1)) for k in range(len(images))]
    return np.array([np.nan if value is None else value for value in found])


def _by_bin_and_image(answers: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of residuals and the number of answers, of each bin and image."""
    confidence, correct = answers["confidence"].to_numpy(), answers["correct"].to_numpy()
    inside = np.array([held for _, _, held in in_bins(confidence)], dtype=float)
    names = sorted(set(answers["cluster"]))
    of_image = np.array([[image == name for name in names] for image in answers["cluster"]], dtype=float)
    of_image = of_image.reshape(len(answers), len(names))
    return inside @ (of_image * (correct - confidence)[:, None]), inside @ of_image


def _squared_error(residuals: np.ndarray, counts: np.ndarray) -> float | None:
    """Sum over i != j in a bin: (sum)^2 less the squares of each image."""
    pairs = counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1)
    products = residuals.sum(axis=1) ** 2 - (residuals**2).sum(axis=1)
    some = pairs > 0
    if not some.any():
        return None
    return float((counts.sum(axis=1)[some] * products[some] / pairs[some]).sum() / counts.sum())


def confidence_entropy(answers: pl.DataFrame) -> float | None:
    """Return the entropy of the valid confidences in bits: the sum of p log2(1 / p)."""
    valid = answers.filter(~pl.col("imputed"))["confidence"].to_list()
    shares = [n / len(valid) for n in Counter(valid).values()]
    return sum(p * log2(1 / p) for p in shares) if valid else None


def brier(confidence: np.ndarray, correct: np.ndarray) -> float | None:
    return float(np.mean((confidence - correct) ** 2)) if len(correct) else None


def risks(confidence: np.ndarray, correct: np.ndarray) -> list[float]:
    """Return the expected error rate of the k most confident, k = 1..n, equal confidences in random order."""
    found, kept, errors = [], 0, 0.0
    for value in sorted(set(confidence), reverse=True):
        block = ~correct[confidence == value]
        for drawn in range(1, len(block) + 1):
            found.append((errors + block.sum() * drawn / len(block)) / (kept + drawn))
        kept, errors = kept + len(block), errors + block.sum()
    return found


def aurc(confidence: np.ndarray, correct: np.ndarray) -> float | None:
    return sum(risks(confidence, correct)) / len(correct) if len(correct) else None


def hce90(confidence: np.ndarray, correct: np.ndarray) -> float | None:
    wrong = [c >= 0.9 and not z for c, z in zip(confidence, correct, strict=True)]
    return sum(wrong) / len(wrong) if wrong else None


def within_question_auroc(confidence: np.ndarray, correct: np.ndarray, questions: list[str]) -> float | None:
    won, pairs = 0.0, 0
    asked = np.array(questions, dtype=object)
    for question in set(questions):
        right, wrong = confidence[(asked == question) & correct], confidence[(asked == question) & ~correct]
        won += sum(phi(c, d) for c in right for d in wrong)
        pairs += len(right) * len(wrong)
    return won / pairs if pairs else None


def calibration_in_the_large(confidence: np.ndarray, correct: np.ndarray) -> float | None:
    if not _has_odds(confidence, correct):
        return None
    return float(_maximum_likelihood(np.ones((len(correct), 1)), logit(confidence), correct)[0])


def calibration_slope(confidence: np.ndarray, correct: np.ndarray) -> float | None:
    if not _has_odds(confidence, correct):
        return None
    odds = logit(confidence)
    right, wrong = odds[correct], odds[~correct]
    if len(set(odds)) == 1 or wrong.max() <= right.min() or right.max() <= wrong.min():
        return None
    design = np.stack([np.ones(len(odds)), odds], axis=1)
    return float(_maximum_likelihood(design, np.zeros(len(odds)), correct)[1])


def _has_odds(confidence: np.ndarray, correct: np.ndarray) -> bool:
    return len(set(map(bool, correct))) == 2 and not np.isin(confidence, (0.0, 1.0)).any()


def _maximum_likelihood(design: np.ndarray, offset: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Return the coefficients of a logistic regression: Newton's method, a step halved until it climbs."""

    def likelihood(coefficients: np.ndarray) -> float:
        return float(-np.logaddexp(0, np.where(correct, -1, 1) * (offset + design @ coefficients)).sum())

    found = np.zeros(design.shape[1])
    for _ in range(200):
        p = expit(offset + design @ found)
        step = np.linalg.solve(design.T @ (design * (p * (1 - p))[:, None]), design.T @ (correct - p))
        while likelihood(found + step) < likelihood(found) and np.abs(step).max() > 1e-12:
            step = step / 2
        found = found + step
        if np.abs(step).max() < 1e-13:
            break
    return found


@cache
def certified(confidence: tuple, correct: tuple, images: tuple, risk: Fraction) -> list[float]:
    """Return the thresholds at which "at least `risk` of the kept answers are wrong" is rejected, in sequences.

    Downwards through confidences and five starts. Each start adds .1 / 5 to the level, and a test that fails takes all
    of it away.
    """
    first = [1 - risk / 4, 1 - risk / 2, 1 - risk, max(1 - 2 * risk, Fraction(0)), Fraction(0)]
    level, found = 0.0, []
    for threshold in sorted({*confidence, *map(float, first)}, reverse=True):
        level += 0.1 / 5 * sum(float(start) == threshold for start in first)
        if level > 0 and _p_value(threshold, confidence, correct, images, risk) <= level * (1 + 1e-12):
            found.append(threshold)
        else:
            level = 0.0
    return found


@cache
def _p_value(level: float, confidence: tuple, correct: tuple, images: tuple, risk: Fraction) -> float:
    """Return the binomial p-value if images have one answer each, and otherwise that of bets on one after another."""
    kept = [(i, ok) for c, ok, i in zip(confidence, correct, images, strict=True) if c >= level]
    n_wrong = sum(not ok for _, ok in kept)
    most = max(Counter(images).values())
    if most == 1:
        return binomial_p(n_wrong, len(kept), risk)
    balances = dict.fromkeys(sorted(set(images)), 0.0)
    for image, ok in kept:
        balances[image] += float(not ok) - float(risk)
    return p_of_bets(list(balances.values()), risk, most)


def binomial_p(n_wrong: int, n: int, risk: Fraction) -> float:
    """Return the p-value of so few errors, or fewer, if each of n is wrong with the probability `risk`."""
    return float(stats.binom.cdf(n_wrong, n, float(risk)))


def p_of_bets(balances: Sequence[float], risk: Fraction, most: int) -> float:
    """Return the p-value of bets on one image after another that the mean balance is below 0; sorted by image."""
    seed = int.from_bytes(sha256(f"order of the bets\x1f{len(balances)}".encode()).digest()[:4], "big")
    places = np.random.Generator(np.random.PCG64(seed)).permutation(len(balances))
    in_order = np.empty(len(balances))
    in_order[places] = balances
    wealth = [
        share * np.cumprod(1 - in_order / (2**k * (1 - float(risk)) * most)).max(initial=0)
        for k, share in enumerate((0.5, *(0.125,) * 4))
    ]
    return 1 / max(1.0, *wealth)


def phi(real: float, other: float) -> float:
    return 1.0 if real > other else 0.5 if real == other else 0.0


def ccg_auc(real: np.ndarray, other: np.ndarray, decisive: np.ndarray) -> float | None:
    shares = [phi(c, d) for c, d, chosen in zip(real, other, decisive, strict=True) if chosen]
    return sum(shares) / len(shares) if shares else None


OF_ANSWERS: dict[str, Callable[[np.ndarray, np.ndarray], float | None]] = {
    "accuracy": accuracy,
    "auroc": auroc,
    "ece15": ece15,
    "brier": brier,
    "aurc": aurc,
    "hce90": hce90,
    "calibration_in_the_large": calibration_in_the_large,
    "calibration_slope": calibration_slope,
}
