"""Metrics of confidence for Inspect (inspect_ai), with intervals that count answers about one image as one.

A metric of Inspect sees the scores of all samples. Their `value` says whether an answer is correct; the confidence is
in their `metadata`, under the key "confidence", from 0 to 1. `with_confidence` puts it there where a reply states one;
for other confidences, set `metadata={"confidence": p}` of the Score in a scorer of your own. docs/harnesses.md shows
both. Where a metric has no value, it is NaN, as Inspect has it for scores that are missing, and a warning says why.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer, value_to_float  # pyright: ignore[reportMissingImports]  # of whoever runs Inspect
from inspect_ai.solver import TaskState  # pyright: ignore[reportMissingImports]

from dualread.errors import DataError
from dualread.evaluation.answer_metrics import NOISE_FLOOR
from dualread.grading.answers import stated_percent

__all__ = ["auroc", "ccg_auc", "ece", "squared_calibration_error", "with_confidence"]

_DONOR = "is_donor"
_LOG = logging.getLogger(__name__)
_CORRECT = value_to_float()
Values = dict[str, float]
_REPLICATES = 2_000  # resamples: the ends of an interval move by about a fiftieth of its width with other resamples


@metric
def auroc(confidence: str = "confidence", cluster: str | None = None) -> Metric:
    """Return the probability that a correct answer has more confidence than a wrong one, with its 95% interval.

    Args:
        confidence: The key of the confidence in the metadata of a score.
        cluster: The key of the sample's metadata whose values are resampled, such as the image or the patient; by
            default each sample counts as independent.

    Samples that `ccg_auc` compares with others, because their metadata say `is_donor`, are left out.
    """
    return _of_answers(["auroc"], confidence, cluster)


@metric
def ece(confidence: str = "confidence", cluster: str | None = None) -> Metric:
    """Return the calibration error over 15 bins, and below which value it may be chance; arguments as in `auroc`.

    It has no interval: it contains an error by chance, which resamples would add once more.
    """
    return _of_answers(["ece15", NOISE_FLOOR], confidence, cluster)


@metric
def squared_calibration_error(confidence: str = "confidence", cluster: str | None = None) -> Metric:
    """Return the squared calibration error without the part of chance (0 if calibrated), with its 95% interval."""
    return _of_answers(["squared_calibration_error"], confidence, cluster)


@metric
def ccg_auc(confidence: str = "confidence", *, pair: str = "pair", image: str = "image_id") -> Metric:
    """Return the share of decisive pairs with more confidence on the right image than on another, with its interval.

    Each question is two samples: one with its own image, and one with a donor's image, on which its answer is another,
    and whose metadata say `is_donor: True`. A pair is decisive if the first is correct, and the second is not.

    Args:
        confidence: The key of the confidence in the metadata of a score.
        pair: The key of the sample's metadata that both samples of a question share.
        image: The key of the image that the sample shows; intervals count pairs that share one.
    """

    def of_pairs(scores: list[SampleScore]) -> Values:
        answers = _columns([sample for sample in scores if not _of(sample, _DONOR)], confidence, image, pair)
        asked = set(answers["sample_id"])  # the sample with the own image may not be scored, or not yet
        donors = [sample for sample in scores if _of(sample, _DONOR) and str(_of(sample, pair)) in asked]
        again = _columns(donors, confidence, image, pair)
        pairs = {name if name == "sample_id" else f"donor_{name}": values for name, values in again.items()}
        return _values(["natural_ccg_auc"], answers, pairs)

    return of_pairs


def with_confidence(inner: Scorer, *, metrics: Sequence[Metric]) -> Scorer:
    """Return a scorer that scores as `inner` does, and keeps the confidence that the reply states.

    That is the number of `<confidence>NN</confidence>`, or else the last integer from 0 to 100, divided by 100. A reply
    that states none has no place among the metrics: it is left unscored, and Inspect counts it.

    The values of `inner` are correct or incorrect, as those of `match()`; `metrics` are what is reported.
    """

    @scorer(metrics=[*metrics], name="with_confidence")
    def both() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score | None:
            scored = await inner(state, target)
            percent = stated_percent(state.output.completion)
            if scored is None or percent is None:
                return Score.unscored(reason="invalid_response_format", explanation="The reply states no confidence.")
            return scored.model_copy(update={"metadata": {**(scored.metadata or {}), "confidence": percent / 100}})

        return score

    return both()


def _of_answers(names: Sequence[str], confidence: str, cluster: str | None) -> Callable[[list[SampleScore]], Values]:
    def of_answers(scores: list[SampleScore]) -> Values:
        originals = [sample for sample in scores if not (sample.sample_metadata or {}).get(_DONOR)]
        return _values(names, _columns(originals, confidence, cluster))

    return of_answers


def _columns(
    scores: list[SampleScore], confidence: str, cluster: str | None, pair: str | None = None
) -> dict[str, list[Any]]:
    """Return the columns of the table that `dualread.evaluate` gets."""
    table: dict[str, list[Any]] = {"confidence": [], "correct": []}
    for sample in scores:
        correct, stated = _CORRECT(sample.score.value), (sample.score.metadata or {}).get(confidence)
        if correct not in (0, 1):
            raise DataError(
                f"sample {sample.sample_id}: its score is {correct}, expected correct or incorrect. With several"
                " epochs, reduce them by `mode`, not by `mean`."
            )
        if stated is None:
            raise DataError(
                f"sample {sample.sample_id}: its score has no {confidence!r} in its metadata. Use `with_confidence`, or"
                f' `Score(..., metadata={{"{confidence}": p}})` in the scorer.'
            )
        table["confidence"].append(float(stated))
        table["correct"].append(int(correct))
    keys = {name: key for name, key in (("image_id", cluster), ("sample_id", pair)) if key is not None}
    return table | {name: [str(_of(sample, key)) for sample in scores] for name, key in keys.items()}


def _of(sample: SampleScore, key: str) -> Any:
    """Return an entry of the metadata of a sample; refuse a sample that has none."""
    if (metadata := sample.sample_metadata or {}).get(key) is None:
        known = ", ".join(metadata) or "nothing"
        raise DataError(f"sample {sample.sample_id}: no {key!r} in its metadata, which has {known}.")
    return metadata[key]


def _values(names: Sequence[str], answers: dict[str, list[Any]], pairs: dict[str, list[Any]] | None = None) -> Values:
    """Return metrics and the ends of their intervals, by the names under which Inspect shows them."""
    from dualread.apps.evaluate.evaluation import evaluate  # here, because Inspect may only list these metrics

    shown: Values = dict.fromkeys(names, float("nan"))
    # Inspect also asks after the first few samples, and an error would end its run.
    if not answers["correct"] or (pairs is not None and not pairs["sample_id"]):
        return shown
    try:
        rows = evaluate(answers, pairs, replicates=_REPLICATES).metrics.filter(subset="all")
    except DataError as error:
        _LOG.warning("%s: no value: %s", ", ".join(names), error)
        return shown
    for name in names:
        row = rows.row(by_predicate=pl.col("metric") == name, named=True)
        if row["estimate"] is None:
            _LOG.warning("%s has no value: %s", name, row["reason"])
        values = {name: row["estimate"], f"{name}_low": row["low"], f"{name}_high": row["high"]}
        shown |= {key: value for key, value in values.items() if value is not None}
    return shown
