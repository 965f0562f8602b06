"""`dualread browse`: one HTML page with the questions of a study, and with its trainings while they run."""

import argparse
from pathlib import Path

from dualread.apps.text import write_page
from dualread.errors import ConfigError

_MOST = 10_000  # questions of a page, which have 30 kB at most if completions are short

HELP = "write one HTML page: questions, answers, confidences"
DESCRIPTION = """
Write one HTML page with the questions of a study: image, donor image, the answer of every actor, and the
confidence of every method on both images. The page filters by data set, right or wrong, confidence, and what the
donor's image does to the confidence; it sorts, searches, and works by keyboard. Its address keeps the filters, so
that a view can be bookmarked. The page contains its images and loads nothing from elsewhere: it opens from disk, and
it holds images of the data sets, whose licences apply to whoever gets the page. While actors are trained, it shows
their curves so far and how long they still take; run the command again for newer ones.

    dualread browse results/embedded                        writes results/embedded/browse.html
    dualread browse results/embedded --dataset slake vqa_rad
    dualread browse results/embedded --skip 10000           the questions after the first 10,000
    dualread browse results/embedded --split validation --out /tmp/mine.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("study", metavar="STUDY", type=Path, help="results folder of a study, such as results/embedded")
    parser.add_argument("--dataset", metavar="NAME", nargs="+", help="only these data sets (all)")
    parser.add_argument("--split", default="test", help="the split of the questions (%(default)s)")
    parser.add_argument("--most", metavar="N", type=int, default=_MOST, help="at most so many questions (%(default)s)")
    parser.add_argument("--skip", metavar="N", type=int, default=0, help="leave the first N questions out (0)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="where to write the page (STUDY/browse.html)")


def run(options: argparse.Namespace) -> int:
    """Write the page that `options` request; return the exit code."""
    from dualread.apps.browse.page import collect, part_of, render  # here, because --help does not need polars

    if options.most < 1 or options.skip < 0:
        raise ConfigError("--most, --skip: expected at least one question, and none or some to skip.")
    content = collect(
        options.study, split=options.split, datasets=options.dataset, skip=options.skip, most=options.most
    )
    out = options.out or options.study / "browse.html"
    text = render(content)
    write_page(out, text)
    if part := part_of(content):
        print(part)
    print(f"wrote {out}: {len(content['questions'])} questions, {len(text.encode()) / 1e6:.1f} MB")
    return 0
