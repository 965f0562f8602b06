"""`dualread report`: one HTML page about a finished study."""

import argparse
from pathlib import Path

from dualread.apps.text import write_page
from dualread.errors import ArtifactError
from dualread.store.graph import keys_below, reachable
from dualread.store.place import HELP as STORE_HELP
from dualread.store.place import store_of

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
    parser.add_argument("--store", type=Path, help=STORE_HELP)


def run(options: argparse.Namespace) -> int:
    """Write the page that `options` request; return the exit code."""
    from dualread.reporting.report.page import render  # here, because --help does not need polars

    out, store = options.out or options.study / "report.html", store_of(options.study, options.store)
    text = render(options.study, store, beside=out.parent)
    behind = reachable(keys_below(options.study / "tables", store), store) if out.exists() else []
    if missing := [key for key in behind if not store.entry(key).is_dir()]:
        raise ArtifactError(
            f"{out}: left as it is. {store.root} lacks {len(missing):,} of the artifacts behind the tables, such as"
            f" {missing[0][:8]}, so the new page would lack what this one says of them. Give the study's store with"
            " --store, or another file with --out."
        )
    write_page(out, text)
    print(f"wrote {out} ({len(text.encode()) / 1e6:.1f} MB)")
    return 0
