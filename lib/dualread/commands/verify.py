"""`dualread verify`: read everything again that a table rests on, and compare it with what was recorded."""

import argparse
from pathlib import Path

from dualread.commands.explain import TARGET
from dualread.store.lineage import damages, find_target
from dualread.store.store import Store

HELP = "re-read everything a table rests on"
DESCRIPTION = """
Read every file that TARGET rests on again, through all stages down to the raw data, and compare its sha256 with the
one that was recorded when the file was written. One line for each file that is damaged or missing; the exit code is 1
if there is any. Nothing is changed. To have what is damaged or missing made again, and nothing else computed:

    snakemake --cores 8 --forceall tables/main.tex
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads to `parser`."""
    parser.add_argument("target", metavar="TARGET", help=TARGET)
    parser.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Print one line per damaged or missing file; return 1 if there is any."""
    store = Store(options.store)
    found = find_target(options.target, store)
    count = 0
    for sentence in damages(found, store):
        count += 1
        print(sentence, flush=True)
    print(f"{options.target}: " + (f"{count} damaged or missing" if count else "intact, down to the raw data"))
    return 1 if count else 0
