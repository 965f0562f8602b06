"""Two controls of the readers, on phantom images whose true difficulty is known.

Positive control: the image decides how hard its questions are. The AUROC of the true difficulty is what a reader would
reach that knew which images are hard, and nothing else. A method should exceed the nulls, which see no image.

Negative control: every answer gets the confidence in an equal answer about another image ("exchanged": the same
question, the same canonical answer). Given question and answer, such a confidence is independent of whether the answer
is right, so that no method can exceed what question and answer tell. Answers, number of images and nulls are those of
the positive control; only the image is another.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.contrasts import OverSeeds, tested
from dualread.evaluation.metrics.discrimination import accuracy, auroc
from dualread.evaluation.samples import mean_sample
from dualread.evaluation.statistics.bootstrap import ClusterDraws, image_cluster_replicates
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel, mean_kernel
from dualread.evaluation.statistics.proportion import korn_graubard

OWN, EXCHANGED = "own", "exchanged"


@dataclass(frozen=True, kw_only=True)
class RunAnswers:
    """The answers of one run, in the same order everywhere.

    Attributes:
        seed: The seed of the actor.
        image_ids: The image of each answer, [n].
        questions: Normalized questions, [n].
        answers: Canonical answers, [n]; None for no answer.
        correct: bool [n].
        haze: float64 [n], the haze of the image.
        confidences: By method, float64 [n], or the reason why the method gives none.
    """

    seed: int
    image_ids: Sequence[str]
    questions: Sequence[str]
    answers: Sequence[str | None]
    correct: np.ndarray
    haze: np.ndarray
    confidences: Mapping[str, np.ndarray | str]


def exchange(image_ids: Sequence[str], questions: Sequence[str], answers: Sequence[str | None]) -> np.ndarray:
    """Return for each answer the place of an equal answer about another image, int64 [n]; -1 where there is none.

    Equal answers are put into a circle in the order of sha256(image_id), and each gets the next one, no two the same.
    """
    circles: dict[tuple[str, str | None], list[int]] = {}
    for place, key in enumerate(zip(questions, answers, strict=True)):
        circles.setdefault(key, []).append(place)
    partners = np.full(len(image_ids), -1, dtype=np.int64)
    for circle in circles.values():
        circle.sort(key=lambda place: hashlib.sha256(image_ids[place].encode()).hexdigest())
        for place, following in zip(circle, [*circle[1:], circle[0]], strict=True):
            if image_ids[place] != image_ids[following]:
                partners[place] = following
    return partners


def controls(runs: Sequence[RunAnswers], nulls: Sequence[str], draws: ClusterDraws) -> list[dict[str, Any]]:
    """Return the rows of both controls for one backbone, as `schema.columns.DIFFICULTY` describes them.

    `runs` are one per seed, with the same methods; the `nulls` see no image.
    """
    everywhere = [np.arange(len(run.correct)) for run in runs]
    others = [exchange(run.image_ids, run.questions, run.answers) for run in runs]
    kept = [np.flatnonzero(other >= 0) for other in others]
    exchanged = [other[rows] for other, rows in zip(others, kept, strict=True)]
    rows = [
        {"reading": OWN, "metric": f"accuracy_{name}", **_share_columns(_accuracy(runs, hazy, draws))}
        for name, hazy in (("clear", False), ("hazy", True))
    ]
    clearness = [1 - run.haze for run in runs]
    rows.append({"reading": OWN, "metric": "auroc", **_auroc(runs, clearness, everywhere, everywhere, draws).columns()})
    for reading, about, taken in ((OWN, everywhere, everywhere), (EXCHANGED, kept, exchanged)):
        values = {
            method: _auroc(runs, [run.confidences[method] for run in runs], about, taken, draws)
            for method in runs[0].confidences
        }
        rows += [{"reading": reading, "metric": "auroc", **row} for row in _compared(values, nulls)]
    return rows


def _compared(values: Mapping[str, OverSeeds], nulls: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row per method, and a row per method that is no null and per null."""
    yield from ({"method": method, **value.columns()} for method, value in values.items())
    pairs = [(method, null) for method in values if method not in nulls for null in nulls]
    differences = tested([values[method].minus(values[null], method, null) for method, null in pairs])
    for (method, null), columns in zip(pairs, differences, strict=True):
        yield {"method": method, "baseline": null, **columns}


def _auroc(
    runs: Sequence[RunAnswers],
    scores: Sequence[np.ndarray | str],
    about: Sequence[np.ndarray],
    taken: Sequence[np.ndarray],
    draws: ClusterDraws,
) -> OverSeeds:
    """Return the AUROC for the answers at the places `about` of each run, with the scores at the places `taken`."""

    def measured(k: int) -> _Measured:
        scores_of_run, correct = scores[k], runs[k].correct[about[k]]
        if isinstance(scores_of_run, str):
            raise UndefinedMetricError(scores_of_run)
        score = scores_of_run[taken[k]]
        # A difference rests on the images with the rarer kind of answer.
        return _Measured(partial(auroc, score, correct), partial(auroc_kernel, score, correct), (correct, ~correct))

    return _over_seeds(runs, about, measured, draws)


def _accuracy(runs: Sequence[RunAnswers], hazy: bool, draws: ClusterDraws) -> OverSeeds:
    about = [np.flatnonzero((run.haze > 0) == hazy) for run in runs]

    def measured(k: int) -> _Measured:
        correct = runs[k].correct[about[k]]
        kernel = partial(mean_kernel, correct.astype(np.float64))
        return _Measured(partial(accuracy, correct), kernel, (np.ones_like(correct),))

    return _over_seeds(runs, about, measured, draws)


def _share_columns(value: OverSeeds) -> dict[str, Any]:
    """Return the columns of a share, the interval of which holds near 0 and 1 and where all images agree."""
    columns = value.columns()
    if value.estimate is None or value.sample is None:
        return columns
    variance = value.sample.variance()
    low, high = korn_graubard(value.estimate, variance and variance.value, n=value.n, n_clusters=value.n_clusters)
    return {**columns, "low": low, "high": high}


class _Measured(NamedTuple):
    """A metric of one run, its kernel for clusters, and masks of rows: the fewest images of any carry a difference."""

    metric: Callable[[], float]
    kernel: Callable[[np.ndarray, int], Kernel]
    kinds: Sequence[np.ndarray]


def _over_seeds(
    runs: Sequence[RunAnswers],
    about: Sequence[np.ndarray],
    measured: Callable[[int], _Measured],
    draws: ClusterDraws,
) -> OverSeeds:
    by_seed, replicates, reasons, carriers = {}, {}, [], []
    images = [[run.image_ids[int(row)] for row in rows] for run, rows in zip(runs, about, strict=True)]
    for k, (run, names) in enumerate(zip(runs, images, strict=True)):
        try:
            metric, kernel, kinds = measured(k)
            by_seed[run.seed] = float(metric())
        except UndefinedMetricError as error:
            reasons.append(str(error))
            continue
        kernels = {run.seed: kernel(draws.cluster_of(names), len(draws.cluster_ids))}
        replicates |= image_cluster_replicates(kernels, draws, n_rows=len(names))
        carriers.append(min(len({names[i] for i in np.flatnonzero(kind)}) for kind in kinds))
    n, n_clusters = (min(len(count(names)) for names in images) for count in (list, set))
    if reasons:
        reason = "; ".join(dict.fromkeys(reasons))
        return OverSeeds(estimate=None, n=n, n_clusters=n_clusters, short=(), reason=reason)
    return OverSeeds(
        estimate=mean(by_seed.values()),
        by_seed=by_seed,
        sample=mean_sample([[*replicates.values()]], n_images=min(carriers)),
        samples={seed: mean_sample([[values]], n_images=min(carriers)) for seed, values in replicates.items()},
        n=n,
        n_clusters=n_clusters,
        short=(),
    )
