"""`dualread lock`: record the key and digest of every artifact of a study."""

import argparse
from pathlib import Path

from dualread.errors import ConfigError, did_you_mean
from dualread.store.lock import write_lock
from dualread.store.place import HELP as STORE_HELP
from dualread.store.place import read_study, store_of

HELP = "write the results.lock of a study"
DESCRIPTION = """
Write results/<study>/results.lock: the key and digest of every artifact of a study. The workflow does so at the end of
every successful run. Kept with a paper, the file records which results were printed. `dualread store pull` gets the
results that it names from another store, and `dualread restore` shows them.

    dualread lock results/embedded
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="results/<study>")
    parser.add_argument("--store", type=Path, help=STORE_HELP)


def run(options: argparse.Namespace) -> int:
    """Write the lock of the study of `options`; return the exit code."""
    if not options.folder.is_dir():
        meant = did_you_mean(options.folder, map(str, options.folder.parent.glob("*/")))
        raise ConfigError(f"{options.folder}: no such folder. Expected the results folder of a study.{meant}")
    store, noted, earlier = store_of(options.folder, options.store), read_study(options.folder), set()
    if noted:
        from dualread.study.again import outdated  # here, because --help does not need it

        earlier = outdated(options.folder, store)
    lock = write_lock(options.folder, store, outdated=earlier, selection=noted.get("selection"))
    n_outdated = sum("outdated" in row for row in lock.targets.values())
    more = f"; {n_outdated:,} of them are of an earlier configuration" if n_outdated else ""
    print(f"{options.folder}/results.lock: {len(lock.targets):,} artifacts of {lock.study}{more}")
    return 0
