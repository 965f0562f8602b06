"""The options that say which reader and actor to load, of `dualread score` and `dualread serve`."""

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualread.apps.score.loading import ScorerChoice


def add_arguments(parser: argparse.ArgumentParser, *, reader: bool = True) -> None:
    """Add what `choice` reads to `parser`; without `reader`, the verb names the reader itself."""
    if reader:
        parser.add_argument(
            "--reader", required=True, help="a reader's folder or file, an exported folder, or a hub repository"
        )
    parser.add_argument(
        "--checkpoint",
        metavar="ACTOR",
        help="the actor's folder, that of its checkpoint, or owner/name@revision on the hub",
    )
    parser.add_argument("--base", help="if ACTOR is a LoRA adapter: what it was trained on, given like ACTOR")
    parser.add_argument("--revision", help="commit, tag or branch of the reader's hub repository")
    parser.add_argument("--methods", nargs="+", default=[], metavar="NAME", help="other methods, such as p_true")
    parser.add_argument(
        "--plugins",
        nargs="+",
        default=[],
        metavar="PACKAGE",
        help="other packages whose code the reader's file may name",
    )
    parser.add_argument(
        "--target-risk",
        type=int,
        dest="target_risk_percent",
        metavar="PERCENT",
        help="decide by the threshold for at most so many wrong answers (default: the smallest there is)",
    )
    parser.add_argument("--certified", action="store_true", help="decide by the certified threshold for this risk")
    parser.add_argument("--prompt", metavar="NAME", help="another prompt of the library; needs --allow-other")
    parser.add_argument(
        "--allow-other", action="store_true", help="use another actor or prompt than the reader's; results say so"
    )
    parser.add_argument(
        "--bits",
        type=int,
        metavar="N",
        help="bits that count in 16-bit gray images that do not say it, such as 12",
    )
    parser.add_argument(
        "--ct-windows",
        type=_windows,
        metavar="LOW:HIGH,...",
        help="three windows of Hounsfield units through which CT in DICOM is shown, as in the reader's study:"
        " --ct-windows=-1024:1024,-135:215,0:80",
    )


def _windows(text: str) -> list[list[float]]:
    """Return the numbers in windows that are separated by commas, their ends by colons."""
    return [[float(end) for end in window.split(":")] for window in text.split(",")]


def choice(options: argparse.Namespace) -> "ScorerChoice":
    """Return what `options` name."""
    from dualread.apps.score.loading import ScorerChoice

    return ScorerChoice(**{field.name: getattr(options, field.name) for field in fields(ScorerChoice)})
