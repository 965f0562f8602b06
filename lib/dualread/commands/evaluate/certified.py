"""What `dualread evaluate` says about certified thresholds: what they assume, and how many images they need."""

import argparse
from collections.abc import Collection, Iterator

import polars as pl

from dualread.commands.evaluate.thresholds import Certainty, check_options
from dualread.commands.text import aligned
from dualread.errors import ConfigError
from dualread.evaluation.planning import ENOUGH, LARGEST, REPETITIONS, Expected, images_needed, planned

_MODEL = "calibrated confidences"


def remarks(rows: pl.DataFrame, *, unit: str, ranked: Collection[str]) -> Iterator[str]:
    """Yield lines about the certified thresholds of one data set.

    Args:
        rows: With the columns of `thresholds.SCHEMA`.
        unit: What is called an image: the column whose values are independent.
        ranked: Methods whose confidences are no probabilities, so that nothing can be certified.
    """
    certified = rows.filter(rule="certified")
    row, n = certified.row(0, named=True), len(certified)
    shared = "" if row["share_delta"] == 1 else f" / {row['share_delta']}"
    level = f"{row['delta']:g}{shared}"
    yield f"a certified threshold is wrong with a probability of at most {level}, {_bound(certified, unit)}"
    if n > row["share_delta"]:
        yield f"each one by itself; if you choose one of the {n} by what it certifies, add --share-delta {n}"
    for row in certified.filter(pl.col("threshold").is_null(), ~pl.col("method").is_in(ranked)).iter_rows(named=True):
        if said := _needed(row, unit):
            yield f"{row['method']}, target {row['target_risk']:g}: {said}"


def plan(options: argparse.Namespace) -> Iterator[str]:
    """Yield lines about how many calibration images certify a threshold, for what a user expects.

    Raises:
        ConfigError: An option is missing or out of range.
    """
    if not options.target_risk:
        raise ConfigError("--expect: needs --target-risk, the largest error rate of the answers that are kept.")
    certainty = Certainty(
        delta=options.delta, share_delta=options.share_delta, max_per_image=options.max_per_image or options.per_image
    )
    check_options(options.target_risk, certainty)
    expected = _expected(*options.expect, per_image=options.per_image, max_per_image=certainty.max_per_image)
    each = "1 answer" if expected.per_image == 1 else f"{expected.per_image} answers"
    most = "" if expected.max_per_image == expected.per_image else f" (at most {expected.max_per_image})"
    yield (
        f"calibration images with {each} each{most}, {_MODEL} with accuracy {expected.accuracy:g} and AUROC"
        f" {expected.auroc:g}, delta {certainty.level:g}, {REPETITIONS} simulated sets for each number of images"
    )
    for risk in options.target_risk:
        found = planned(expected, target_risk=risk, delta=certainty.level)
        yield ""
        if not found:
            yield f"target risk {risk:g}: {LARGEST // expected.per_image} images are not enough"
            continue
        table = [("target risk", "images", "certify a threshold", "answers kept, mean")]
        table += [(f"{risk:g}", str(one.images), f"{one.certified:.0%}", f"{one.kept:.0%}") for one in found]
        yield from aligned(table, numbers=(0, 1, 2, 3))


def _expected(accuracy: float, auroc: float, *, per_image: int, max_per_image: int | None) -> Expected:
    try:
        return Expected(accuracy=accuracy, auroc=auroc, per_image=per_image, max_per_image=max_per_image or per_image)
    except ValueError as error:
        raise ConfigError(f"--expect {accuracy:g} {auroc:g} --per-image {per_image}: {error}") from error


def _bound(certified: pl.DataFrame, unit: str) -> str:
    if unit == "row":
        return "if rows are independent"
    stated = certified["max_per_image"][0]
    most = max(certified["calibration_max_per_image"]) if stated is None else stated
    source = "the most among the calibration answers" if stated is None else "--max-per-image"
    return f"as long as no {unit} has more than {most} answer{'' if most == 1 else 's'} ({source})"


def _needed(row: dict, unit: str) -> str | None:
    """Return how many images would certify something; None where accuracy or AUROC leave no room for that."""
    accuracy, auroc = row["calibration_accuracy"], row["calibration_auroc"]
    per_image = max(round(row["calibration_n"] / row["calibration_images"]), 1)
    if auroc is None or round(auroc, 2) in (0.5, 1.0) or auroc < 0.5:
        return None
    # Rounded, because the sample does not know more, and so that methods that are alike are simulated once.
    expected = Expected(
        accuracy=min(max(round(accuracy, 2), 0.01), 0.99),
        auroc=round(auroc, 2),
        per_image=per_image,
        max_per_image=row["max_per_image"] or row["calibration_max_per_image"],
    )
    n = images_needed(expected, target_risk=row["target_risk"], delta=row["delta"] / row["share_delta"])
    answers = "answer" if per_image == 1 else "answers"
    alike = f"{_MODEL} of this accuracy ({expected.accuracy:.2f}) and AUROC ({expected.auroc:.2f})"
    if n is None:
        return f"with {alike}, {LARGEST // per_image} {unit}s with {per_image} {answers} each would not be enough"
    return (
        f"with {alike}, about {n} {unit}s with {per_image} {answers} each certify something in {ENOUGH:.0%} of cases;"
        f" these are {row['calibration_images']}"
    )
