"""`dualread verify`: read every file that a table was made from, and compare it with what was recorded."""

import argparse
from pathlib import Path

from dualread.commands.explain import TARGET
from dualread.store.lineage import damages, find_target
from dualread.store.store import Store

HELP = "check every file that a table was made from"
DESCRIPTION = """
Read TARGET and every file that it was made from, through all stages down to the raw data, and compare the sha256 of
each with the one recorded when the file was written. Print one line per damaged or missing file; the exit code is 1 if
there are any. Nothing is changed. To recompute what is damaged or missing, and nothing else:

    snakemake --cores 8 --forceall tables/main.tex
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("target", metavar="TARGET", help=TARGET)
    parser.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Print one line per damaged or missing file; return 1 if there are any, else 0."""
    store = Store(options.store)
    found = find_target(options.target, store)
    count = 0
    for sentence in damages(found, store):
        count += 1
        print(sentence, flush=True)
    print(f"{options.target}: " + (f"{count} damaged or missing" if count else "intact, down to the raw data"))
    return 1 if count else 0
