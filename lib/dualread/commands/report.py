"""`dualread report`: one HTML page about a finished study."""

import argparse
from pathlib import Path

from dualread.commands.text import write_page
from dualread.store.store import Store

HELP = "write one HTML page: findings, tables, figures"
DESCRIPTION = """
Write one HTML page about a finished study: what its significance tests show, what was run, all tables and figures, the
comparison with the paper if there is one, which rows of the data were used, images that data sets share, times,
versions, and the store key of each table. The page contains its tables and figures and loads nothing from elsewhere, so
it opens from disk; only links to the PDFs of figures and to long lists point to files beside it. Two calls with the
same results write the same bytes.

    dualread report results/embedded                       writes results/embedded/report.html
    dualread report results/embedded --out /tmp/mine.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("study", metavar="STUDY", type=Path, help="results folder of a study, such as results/embedded")
    parser.add_argument("--out", metavar="FILE", type=Path, help="where to write the page (STUDY/report.html)")
    parser.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Write the page that `options` request; return the exit code."""
    from dualread.reporting.report.page import render  # here, because --help does not need polars

    out = options.out or options.study / "report.html"
    text = render(options.study, Store(options.store), beside=out.parent)
    write_page(out, text)
    print(f"wrote {out} ({len(text.encode()) / 1e6:.1f} MB)")
    return 0
