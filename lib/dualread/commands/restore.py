"""`dualread restore`: show the tables and figures of a lock out of the store, without computing."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dualread.errors import ConfigError, did_you_mean
from dualread.store.lock import Lock, read_lock, restore
from dualread.store.store import Store

HELP = "show locked tables without computing"
DESCRIPTION = """
Show the tables and figures that LOCK names, out of the store, without computing: for a store that was pulled, and code
that was edited since. The artifacts are linked to FOLDER/results/<study>, tables and figures copied to FOLDER/tables
and FOLDER/figures; modules that were edited since are named. FOLDER is not the checkout itself, because Snakemake takes
what lies in its results/ for made by the code that is here (until snakemake --cores 8 --forceall).

    dualread restore results.lock
    dualread verify restored/tables/main.tex
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads to `parser`."""
    parser.add_argument("lock", metavar="LOCK", type=Path, help="a results.lock")
    parser.add_argument("--to", metavar="FOLDER", type=Path, default=Path("restored"), help="%(default)s")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="these targets alone, such as tables/main")
    parser.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Restore what the lock of `options` names; return the exit code."""
    lock = read_lock(options.lock)
    wanted = lock if options.only is None else chosen(lock, options.only)
    for line in restore(wanted, Store(options.store), root=options.to):
        print(line)
    return 0


def chosen(lock: Lock, only: Sequence[str]) -> Lock:
    """Return the lock with these targets, and with those in folders of these names (tables, tables/main)."""
    targets = {name: lock.targets[name] for name in lock.targets if any(f"{name}/".startswith(f"{o}/") for o in only)}
    if not targets:
        meant = "".join(did_you_mean(name, lock.targets) for name in only)
        raise ConfigError(f"--only {' '.join(only)}: the lock of {lock.study} has no such target.{meant}")
    return Lock(study=lock.study, targets=targets)
