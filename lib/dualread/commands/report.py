"""`dualread report`: a finished study as one HTML page that opens from disk."""

import argparse
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.store.store import Store

HELP = "one HTML page of a finished study"
DESCRIPTION = """
Write one HTML page about a finished study: what its tests show, what was run, every table and figure, the comparison
with the paper where there is one, what became of every row of the data, shared pictures, times, versions, and the store
key behind each table. It opens from disk, loads nothing from anywhere, and holds its tables and figures itself; only
the links to the PDFs of figures and to long lists point to files beside it. Two calls on the same results write the
same bytes.

    dualread report results/embedded                       writes results/embedded/report.html
    dualread report results/embedded --out /tmp/mine.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads to `parser`."""
    parser.add_argument("study", metavar="STUDY", type=Path, help="folder of a study, such as results/embedded")
    parser.add_argument("--out", metavar="FILE", type=Path, help="the page (STUDY/report.html)")
    parser.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Write the page that `options` asks for; return the exit code."""
    from dualread.reporting.report.page import render  # imports polars, which `--help` does not need

    out = options.out or options.study / "report.html"
    text = render(options.study, Store(options.store), beside=out.parent)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArtifactError(f"{out}: cannot be written ({error.strerror}). Choose another place with --out.") from error
    print(f"wrote {out} ({len(text.encode()) / 1e6:.1f} MB)")
    return 0
