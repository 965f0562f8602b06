"""Two controls of the readers, on phantom images whose true difficulty is known.

Positive control: the image decides how hard its questions are. The AUROC of the true difficulty is what a reader would
reach that knew which images are hard, and nothing else. A method should exceed the nulls, which see no image.

Negative control: every answer gets the confidence in an equal answer about another image ("exchanged": the same
question, the same canonical answer). Given question and answer, such a confidence is independent of whether the answer
is right, so that no method can exceed what question and answer tell. Answers, number of images and nulls are those of
the positive control; only the image is another.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import mean
from typing import Any

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics.correctness import accuracy
from dualread.evaluation.metrics.discrimination import auroc
from dualread.evaluation.statistics.bootstrap import ImageDraws, image_cluster_replicates, interval
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel, mean_kernel
from dualread.evaluation.statistics.p_values import holm, p_value

OWN, EXCHANGED = "own", "exchanged"


@dataclass(frozen=True, kw_only=True)
class Run:
    """The answers of one run, in the same order everywhere.

    Attributes:
        image_ids: The image of each answer, [n].
        questions: Normalized questions, [n].
        answers: Canonical answers, [n]; None for no answer.
        correct: bool [n].
        haze: float64 [n], the haze of the image.
        confidences: By method, float64 [n].
    """

    image_ids: Sequence[str]
    questions: Sequence[str]
    answers: Sequence[str | None]
    correct: np.ndarray
    haze: np.ndarray
    confidences: Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class _Value:
    """An estimate of one run, or its mean over runs, with its replicates [B]; or the reason why there is none."""

    estimate: float | None
    replicates: np.ndarray = field(default_factory=lambda: np.empty(0))
    n: int
    n_clusters: int
    reason: str | None = None


def exchange(image_ids: Sequence[str], questions: Sequence[str], answers: Sequence[str | None]) -> np.ndarray:
    """Return for each answer the place of an equal answer about another image, int64 [n]; -1 where there is none.

    Equal answers are put into a circle in the order of sha256(image_id), and each gets the next one. No image is the
    next of two others.
    """
    circles: dict[tuple[str, str | None], list[int]] = {}
    for place, key in enumerate(zip(questions, answers, strict=True)):
        circles.setdefault(key, []).append(place)
    found = np.full(len(image_ids), -1, dtype=np.int64)
    for circle in circles.values():
        circle.sort(key=lambda place: hashlib.sha256(image_ids[place].encode()).hexdigest())
        for place, following in zip(circle, [*circle[1:], circle[0]], strict=True):
            if image_ids[place] != image_ids[following]:
                found[place] = following
    return found


def controls(runs: Sequence[Run], nulls: Sequence[str], draws: ImageDraws) -> list[dict[str, Any]]:
    """Return the rows of both controls for one backbone, as `artifacts.schemas.difficulty` describes them.

    Args:
        runs: One per seed, with the same methods.
        nulls: The methods that see no image.
        draws: Resamples of the images, which all runs share.
    """
    places = [np.arange(len(run.correct)) for run in runs]
    others = [exchange(run.image_ids, run.questions, run.answers) for run in runs]
    kept = [np.flatnonzero(other >= 0) for other in others]
    exchanged = [other[rows] for other, rows in zip(others, kept, strict=True)]
    rows = [
        {"reading": OWN, "metric": f"accuracy_{name}", **_columns(_accuracy(runs, hazy, draws), len(runs))}
        for name, hazy in (("clear", False), ("hazy", True))
    ]
    scores = [1 - run.haze for run in runs]  # higher for images on which answers are more often right
    rows.append({"reading": OWN, "metric": "auroc", **_columns(_auroc(runs, scores, places, places, draws), len(runs))})
    for reading, about, taken in ((OWN, places, places), (EXCHANGED, kept, exchanged)):
        values = {
            method: _auroc(runs, [run.confidences[method] for run in runs], about, taken, draws)
            for method in runs[0].confidences
        }
        rows += [{"reading": reading, "metric": "auroc", **row} for row in _compared(values, nulls, len(runs))]
    return rows


def _compared(values: Mapping[str, _Value], nulls: Sequence[str], n_seeds: int) -> list[dict[str, Any]]:
    """Return a row per method, and a row per method that is no null and per null."""
    pairs = [(method, null) for method in values if method not in nulls for null in nulls]
    differences = [_minus(values[method], values[null]) for method, null in pairs]
    p_values = [None if value.reason else p_value(value.replicates) for value in differences]
    rows = [{"method": method, **_columns(value, n_seeds)} for method, value in values.items()]
    for (method, null), value, p, adjusted in zip(pairs, differences, p_values, holm(p_values), strict=True):
        rows.append({"method": method, "baseline": null, **_columns(value, n_seeds), "p": p, "p_holm": adjusted})
    return rows


def _auroc(
    runs: Sequence[Run],
    scores: Sequence[np.ndarray],
    about: Sequence[np.ndarray],
    taken: Sequence[np.ndarray],
    draws: ImageDraws,
) -> _Value:
    """Return the AUROC for the answers at the places `about` of each run, with the scores at the places `taken`."""
    found = []
    for run, score, rows, others in zip(runs, scores, about, taken, strict=True):
        images, correct = _of(run, rows), run.correct[rows]
        kernel = auroc_kernel(score[others], correct, draws.cluster_of(images), len(draws.image_ids))
        found.append(_value(partial(auroc, score[others], correct), kernel, images, draws))
    return _mean(found)


def _accuracy(runs: Sequence[Run], hazy: bool, draws: ImageDraws) -> _Value:
    found = []
    for run in runs:
        rows = np.flatnonzero((run.haze > 0) == hazy)
        images, correct = _of(run, rows), run.correct[rows]
        kernel = mean_kernel(correct.astype(np.float64), draws.cluster_of(images), len(draws.image_ids))
        found.append(_value(partial(accuracy, correct), kernel, images, draws))
    return _mean(found)


def _of(run: Run, rows: np.ndarray) -> list[str]:
    return [run.image_ids[int(row)] for row in rows]


def _value(metric: Callable[[], float], kernel: Kernel, images: Sequence[str], draws: ImageDraws) -> _Value:
    n, n_clusters = len(images), len(set(images))
    try:
        estimate = float(metric())
    except UndefinedMetricError as error:
        return _Value(estimate=None, n=n, n_clusters=n_clusters, reason=str(error))
    replicates = image_cluster_replicates({"value": kernel}, draws)["value"]
    return _Value(estimate=estimate, replicates=replicates, n=n, n_clusters=n_clusters)


def _mean(values: Sequence[_Value]) -> _Value:
    n, n_clusters = min(value.n for value in values), min(value.n_clusters for value in values)
    if reasons := dict.fromkeys(value.reason for value in values if value.reason):
        return _Value(estimate=None, n=n, n_clusters=n_clusters, reason="; ".join(reasons))
    estimate = mean(value.estimate for value in values if value.estimate is not None)
    replicates = np.mean([value.replicates for value in values], axis=0)
    return _Value(estimate=estimate, replicates=replicates, n=n, n_clusters=n_clusters)


def _minus(value: _Value, other: _Value) -> _Value:
    if value.estimate is None or other.estimate is None:
        return replace(value, estimate=None, replicates=np.empty(0), reason=value.reason or other.reason)
    return replace(value, estimate=value.estimate - other.estimate, replicates=value.replicates - other.replicates)


def _columns(value: _Value, n_seeds: int) -> dict[str, Any]:
    found = interval(value.replicates)
    return {
        "estimate": value.estimate,
        "low": found.low,
        "high": found.high,
        "n_seeds": n_seeds,
        "n": value.n,
        "n_clusters": value.n_clusters,
        "reason": value.reason,
    }
