"""Thresholds for a target risk, chosen on calibration answers and judged on the evaluated ones."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from dualread.apps.evaluate.evaluation_data import EvaluationData
from dualread.apps.text import aligned
from dualread.data.tables.contract import plain_ids
from dualread.errors import ConfigError, DataError, UndefinedMetricError
from dualread.evaluation.metrics import discrimination
from dualread.evaluation.planning import LARGEST, REPETITIONS, Expected, planned
from dualread.evaluation.statistics.clusters import in_unit
from dualread.evaluation.thresholds import CERTIFIED, EMPIRICAL, Confidences, judged, threshold
from dualread.evaluation.without_confidences import WITHOUT_PROBABILITIES

MODEL = "calibrated confidences"  # of which answers are simulated, to say how many images are needed
SCHEMA = {
    **dict.fromkeys(("dataset", "method"), pl.String),
    **{"target_risk": pl.Float64, "rule": pl.String},
    **dict.fromkeys(("threshold", "coverage", "coverage_low", "coverage_high"), pl.Float64),
    **dict.fromkeys(("risk", "risk_low", "risk_high"), pl.Float64),
    **{"n": pl.Int64, "reason": pl.String, "delta": pl.Float64},
    **dict.fromkeys(
        ("share_delta", "max_per_image", "calibration_max_per_image", "calibration_n", "calibration_images"), pl.Int64
    ),
    **dict.fromkeys(("calibration_accuracy", "calibration_auroc"), pl.Float64),
}


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """What a user says about thresholds."""

    target_risks: Sequence[float]  # largest error rates of the kept answers, each in (0, 1)
    delta: float  # largest probability with which a certified threshold may be wrong, in (0, 1)
    share_delta: int  # number of thresholds that share delta, 1 or more
    # Largest number of answers to an image of the source; None for that of the calibration answers.
    max_per_image: int | None = None
    max_reports: int | None = None  # of claims, the largest number of reports of a cluster, likewise

    def __post_init__(self) -> None:
        """Refuse numbers that are out of range."""
        for name, value in (*(("target-risk", risk) for risk in self.target_risks), ("delta", self.delta)):
            if not 0.0 < value < 1.0:
                raise ConfigError(f"--{name} {value:g}: expected a number between 0 and 1, such as .1.")
        numbers = {"share-delta": self.share_delta, "max-per-image": self.max_per_image}
        for name, limit in (numbers | {"max-reports": self.max_reports}).items():
            if limit is not None and limit < 1:
                raise ConfigError(f"--{name} {limit}: expected 1 or more.")

    @property
    def level(self) -> float:
        """The largest probability with which one threshold may be wrong."""
        return self.delta / self.share_delta


def thresholds(parts: Sequence[EvaluationData], options: ThresholdOptions) -> pl.DataFrame:
    """Return the threshold of every method, target risk and rule, and what it leads to on the evaluated answers.

    Coverage and risk have 95% intervals (`proportion.share_interval`), which hold for new images and this threshold.
    Raises DataError if the calibration answers lack a method, or are the evaluated ones; or if an image has too many
    answers.
    """
    rows = []
    for cells, chooser in with_choosers(parts):
        _refuse_answers(cells, chooser, options)
        rows += threshold_rows(cells, chooser, options)
    return pl.DataFrame(rows, schema=SCHEMA)


def with_choosers(parts: Iterable[EvaluationData]) -> list[tuple[EvaluationData, EvaluationData]]:
    """Return each data set with the calibration answers that choose its thresholds."""
    return [(cells, cells.chooser) for cells in parts if cells.chooser is not None]


def _refuse_answers(cells: EvaluationData, chooser: EvaluationData, options: ThresholdOptions) -> None:
    """Refuse the evaluated answers as those that choose, and images with too many answers."""
    statements = []  # in an order that does not depend on names or on the order of the file
    for data in (cells, chooser):
        names = ["confidence", "correct", *(["cluster_id"] if data.cluster else [])]
        statements.append([data.methods[name].answers.select(names).sort(names) for name in sorted(data.methods)])
    if len(statements[0]) == len(statements[1]) and all(map(pl.DataFrame.equals, *statements)):
        raise DataError(
            f"{chooser.source}: holds the answers of {cells.source}, on which the threshold is to be judged. Expected"
            " other answers, which no one has used yet: of a threshold that is chosen and judged on the same answers,"
            " the error rate is too low, and nothing is certified."
        )
    for data in (chooser, cells):
        image, n = _largest_image(data)
        if options.max_per_image is not None and n > options.max_per_image:
            raise DataError(
                f"{data.source}: {data.cluster} {image!r} has {n} answers, and --max-per-image says that none has more"
                f" than {options.max_per_image}. Give the largest number that one {data.unit} of this source can have."
            )


def threshold_rows(cells: EvaluationData, chooser: EvaluationData, options: ThresholdOptions) -> Iterator[dict]:
    """Yield the rows of `thresholds`, whose checks the answers have passed."""
    names = ("delta", "share_delta", "max_per_image")
    for method in cells.methods:
        judged_on = Confidences.of(cells.methods[method].answers)
        chosen_on = Confidences.of(chooser.methods[same_method(chooser, method, cells)].answers)
        like = _chosen_on(chosen_on)
        for risk, rule in product(options.target_risks, (EMPIRICAL, CERTIFIED)):
            limits = {"delta": options.level, "max_per_image": options.max_per_image}
            cut = chosen(cells, chooser, method, partial(threshold, rule, chosen_on, target_risk=risk, **limits))
            place = {"dataset": cells.dataset, "method": method, "target_risk": risk, "rule": rule}
            assumed = {name: getattr(options, name) if rule == CERTIFIED else None for name in names}
            yield place | _judged(judged_on, cut, cells.unit) | assumed | like


def chosen(cells: EvaluationData, chooser: EvaluationData, method: str, cut: Callable[[], float]) -> float | str:
    """Return what the calibration answers of a method choose, or the reason why they choose nothing."""
    if method in cells.ranked or same_method(chooser, method, cells) in chooser.ranked:
        return WITHOUT_PROBABILITIES
    try:
        return cut()
    except UndefinedMetricError as error:
        return str(in_unit(str(error), chooser.unit))


def _judged(rows: Confidences, cut: float | str, unit: str) -> dict:
    estimates = judged(rows, cut)
    reasons = (in_unit(estimate.reason, unit) for estimate in estimates.values() if estimate.reason is not None)
    rates = {
        name + end: getattr(estimates[kind], field)
        for name, kind in (("coverage", "coverage"), ("risk", "kept_risk"))
        for end, field in (("", "value"), ("_low", "low"), ("_high", "high"))
    }
    reason = cut if isinstance(cut, str) else next(reasons, None)
    return {"threshold": estimates["threshold"].value, **rates, "n": len(rows.confidence), "reason": reason}


def _chosen_on(rows: Confidences) -> dict:
    """Return what the calibration answers of a method are like, for whoever asks how many are needed."""
    sizes = np.bincount(rows.image)
    has_auroc = 0 < np.count_nonzero(rows.correct) < len(rows.correct)
    return {
        "calibration_max_per_image": int(sizes.max()),
        "calibration_n": len(rows.image),
        "calibration_images": len(sizes),
        "calibration_accuracy": float(rows.correct.mean()),
        "calibration_auroc": discrimination.auroc(rows.confidence, rows.correct) if has_auroc else None,
    }


def chooser_of(cells: EvaluationData, calibration: Sequence[EvaluationData]) -> EvaluationData:
    """Return the part of `calibration` that chooses for `cells`: the only one, or that of the same name."""
    for part in calibration:
        if len(calibration) == 1 or part.dataset == cells.dataset:
            return part
    known = ", ".join(str(part.dataset) for part in calibration)
    raise DataError(
        f"{calibration[0].source}: no answers to {cells.dataset!r} to choose a threshold. Found data sets: {known}."
    )


def same_method(chooser: EvaluationData, method: str, cells: EvaluationData) -> str:
    """Return the name of a method in the calibration answers."""
    if method in chooser.methods:
        return method
    if len(chooser.methods) == len(cells.methods) == 1:  # without a column `method`, the name is that of the file
        return next(iter(chooser.methods))
    known = ", ".join(chooser.methods)
    raise DataError(f"{chooser.source}: no answers of method {method!r} to choose a threshold. Found: {known}.")


def _largest_image(cells: EvaluationData) -> tuple[str, int]:
    """Return the image with the most answers of one method, and their number."""
    counts = [
        joined.answers["cluster_id"].value_counts().sort("count", "cluster_id") for joined in cells.methods.values()
    ]
    return max(((str(image), n) for image, n in (count.row(-1) for count in counts)), key=lambda counted: counted[1])


def doubts(cells: EvaluationData, options: ThresholdOptions) -> Iterator[str]:
    """Yield a warning if an evaluated image has more answers than those that chose the thresholds."""
    if cells.chooser is None:
        return
    image, n = _largest_image(cells)
    most = _largest_image(cells.chooser)[1]
    if options.max_per_image is None and n > most:
        yield (
            f"warning: {cells.cluster} {image!r} of {cells.source} has {n} answers, more than any of"
            f" {cells.chooser.source} ({most}). Certified thresholds assume that no new one has more than these; state"
            " the largest number that is possible with --max-per-image."
        )


def overlaps(cells: EvaluationData) -> Iterator[str]:
    """Yield a warning if questions, or else images, that judge a threshold have chosen it, too."""
    if (chooser := cells.chooser) is None:
        return
    words = {"sample_id": "sample_id", "cluster_id": str(cells.cluster), "question_key": "question"}
    columns = [name for name in words if name in cells.identities and name in chooser.identities]
    judged_on, chosen_on = (
        pl.concat(joined.answers.select(columns) for joined in data.methods.values()).unique()
        for data in (cells, chooser)
    )
    plain, plain_chosen_on = (
        questions.with_columns(plain_ids(pl.col(name)) for name in columns if name != "question_key")
        for questions in (judged_on, chosen_on)
    )
    is_named = "sample_id" in columns or len(columns) == 2
    if is_named and (n := len(plain.join(plain_chosen_on, on=columns, how="semi"))):
        named = ", ".join(words[name] for name in columns)
        if n > len(judged_on.join(chosen_on, on=columns, how="semi")):
            named += ", where 007 and 7 are one, and case and spaces do not count"
        yield (
            f"warning: {n} of {len(judged_on)} questions of {cells.source} are in {chooser.source} too (equal {named})."
            " If they are the same questions, the error rate of the kept answers is too low, and nothing is certified."
        )
    elif "cluster_id" in columns:
        images = plain["cluster_id"].unique()
        if n := int(images.is_in(plain_chosen_on["cluster_id"].implode()).sum()):
            yield (
                f"warning: {n} of {len(images)} {cells.unit}s of {cells.source} are in {chooser.source} too. Answers"
                f" about one {cells.unit} tend to be right or wrong together, so that the error rate of the kept"
                " answers may be too low, and nothing is certified."
            )


def plan(options: argparse.Namespace) -> Iterator[str]:
    """Yield lines about how many calibration images certify a threshold, for what a user expects (--expect)."""
    if not options.target_risk:
        raise ConfigError("--expect: needs --target-risk, the largest error rate of the answers that are kept.")
    most = options.max_per_image or options.per_image
    wanted = ThresholdOptions(
        target_risks=options.target_risk, delta=options.delta, share_delta=options.share_delta, max_per_image=most
    )
    accuracy, auroc = options.expect
    try:
        expected = Expected(accuracy=accuracy, auroc=auroc, per_image=options.per_image, max_per_image=most)
    except ValueError as error:
        raise ConfigError(f"--expect {accuracy:g} {auroc:g} --per-image {options.per_image}: {error}") from error
    each = "1 answer" if expected.per_image == 1 else f"{expected.per_image} answers"
    at_most = "" if most == expected.per_image else f" (at most {most})"
    yield (
        f"calibration images with {each} each{at_most}, {MODEL} with accuracy {expected.accuracy:g} and AUROC"
        f" {expected.auroc:g}, delta {wanted.level:g}, {REPETITIONS} simulated sets for each number of images"
    )
    for risk in options.target_risk:
        sizes = planned(expected, target_risk=risk, delta=wanted.level)
        yield ""
        if not sizes:
            yield f"target risk {risk:g}: {LARGEST // expected.per_image} images are not enough"
            continue
        table = [("target risk", "images", "certify a threshold", "answers kept, mean")]
        table += [(f"{risk:g}", str(size.images), f"{size.certified:.0%}", f"{size.kept:.0%}") for size in sizes]
        yield from aligned(table, numbers=(0, 1, 2, 3))
