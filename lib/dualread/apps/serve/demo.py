"""`dualread demo`: `dualread serve` on this machine, and its page in a browser."""

import argparse

from dualread.apps import serve

HELP = "the same on a page of this machine, with drawn examples"
DESCRIPTION = """
Start `dualread serve` on this machine, and open its page in a browser: drop an image, ask a question, and see the
answer, its confidences, and the decision at the reader's threshold. With a second image, the page shows the same about
that one, and by how much confidence drops. Drawn images are there to begin with. Not for clinical use.

  dualread export results/embedded --backbone qwen3-vl-tiny --actor rlvr --seed 17 --out mine --with-checkpoint
  dualread demo mine

The page works without a network, and nothing that is asked is stored; another user of this machine can open it, too.
Ctrl-C ends the program. BUNDLE and all options are those of `dualread serve`.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    serve.add_arguments(parser)
    parser.add_argument("--no-browser", action="store_true", help="print the page's address alone")


def run(options: argparse.Namespace) -> int:
    """Serve the page until the program is told to end; return the exit code."""
    return serve.run(options, shows_page=True)
