"""Before there are answers (--expect): how many calibration images would certify a threshold."""

import argparse
from collections.abc import Iterator

from dualread.apps.evaluate.thresholds import MODEL, ThresholdOptions
from dualread.apps.text import aligned
from dualread.errors import ConfigError
from dualread.evaluation.planning import LARGEST, REPETITIONS, Expected, planned


def plan(options: argparse.Namespace) -> Iterator[str]:
    """Yield lines about how many calibration images certify a threshold, for what a user expects.

    Raises:
        ConfigError: An option is missing or out of range.
    """
    if not options.target_risk:
        raise ConfigError("--expect: needs --target-risk, the largest error rate of the answers that are kept.")
    wanted = ThresholdOptions(
        target_risks=options.target_risk,
        delta=options.delta,
        share_delta=options.share_delta,
        max_per_image=options.max_per_image or options.per_image,
    )
    accuracy, auroc = options.expect
    try:
        expected = Expected(
            accuracy=accuracy,
            auroc=auroc,
            per_image=options.per_image,
            max_per_image=wanted.max_per_image or options.per_image,
        )
    except ValueError as error:
        raise ConfigError(f"--expect {accuracy:g} {auroc:g} --per-image {options.per_image}: {error}") from error
    each = "1 answer" if expected.per_image == 1 else f"{expected.per_image} answers"
    most = "" if expected.max_per_image == expected.per_image else f" (at most {expected.max_per_image})"
    yield (
        f"calibration images with {each} each{most}, {MODEL} with accuracy {expected.accuracy:g} and AUROC"
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
