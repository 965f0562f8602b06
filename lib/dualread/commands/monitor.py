"""`dualread monitor`: whether the confidences of served answers drift from those of the bundle's validation answers."""

import argparse
import json
from pathlib import Path

from dualread.errors import ConfigError, DataError, UndefinedMetricError

HELP = "whether a server's confidences drift from those of validation"
DESCRIPTION = """
Compare the confidences that `dualread serve --record FILE` kept with those of the validation answers, which travel with
the bundle. Drift says that new questions or images differ from those on which the thresholds were chosen, or that
something is wrong; it does not say that answers are worse, and no drift does not say that they are good.

  dualread serve mine --record answers.jsonl
  dualread monitor answers.jsonl --bundle mine

The test exchanges whole images between the two samples. Beside its p stands the power: with which probability the test
would have noticed that confidences fell by --shift in log-odds. Without a power of 80%, no drift was not shown.
"""
_ENOUGH = 0.8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("record", type=Path, metavar="FILE", help="what `dualread serve --record` wrote")
    parser.add_argument("--bundle", type=Path, required=True, metavar="FOLDER", help="the bundle that was served")
    parser.add_argument(
        "--shift", type=float, default=0.5, help="the fall of log-odds to be noticed; .8 becomes .71 with %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON")


def run(options: argparse.Namespace) -> int:
    """Print what the test says; return the exit code."""
    from dualread.own.drift import ALPHA, drift, read_validation
    from dualread.own.scoring.bundle import read_bundle
    from dualread.own.serving.record import read_record

    if not 0 < options.shift <= 10:
        raise ConfigError(f"--shift {options.shift}: expected a number above 0 and at most 10.")
    method = read_bundle(options.bundle).method
    before, now = read_validation(options.bundle, method), read_record(options.record, method)
    try:
        found = drift(before, now, shift=options.shift)
    except UndefinedMetricError as error:
        raise DataError(f"{options.record}: {error}. Record more answers, or about more images.") from error
    if options.json:
        print(json.dumps(vars(found)))
        return 0
    drifts, could = found.p < ALPHA, found.power >= _ENOUGH
    sides = zip(("of validation", "served"), found.n, found.n_images, strict=True)
    print(f"answers      {', '.join(f'{n} {side} about {images} images' for side, n, images in sides)}")
    print(f"confidence   mean {found.means[0]:.4f} of validation, {found.means[1]:.4f} served")
    print(f"distance     {found.distance:.4f}, p {found.p:.4f}")
    print(f"power        {found.power:.2f} to notice a fall of the mean to {found.means[2]:.4f}")
    if drifts:
        said = f"drift: the confidences differ from those of validation (p below {ALPHA})"
    elif could:
        said = "no drift was found, and one of this size would probably have been"
    else:
        said = "not known: no drift was found, but one of this size would often not be; record more answers"
    print(f"verdict      {said}")
    return 0
