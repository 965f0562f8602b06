"""`dualread restore`: show the tables and figures that a lock names from the store, without computing."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dualread.errors import ConfigError, did_you_mean
from dualread.store.lock import Lock, read_lock, restore
from dualread.store.place import HELP as STORE_HELP
from dualread.store.place import store_of

HELP = "show recorded tables from the store without computing"
DESCRIPTION = """
Show the tables and figures that LOCK names from the store, without computing anything. Use this for a store that was
pulled, or if the code has been edited since the results were computed; the edited modules are listed. The artifacts are
linked to FOLDER/results/<study>, and the tables and figures are copied to FOLDER/tables and FOLDER/figures. FOLDER must
not be the checkout itself: Snakemake would take the restored artifacts for results of the present code (until
snakemake --cores 8 --forceall).

    dualread restore results.lock
    dualread verify restored/tables/main.tex
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("lock", metavar="LOCK", type=Path, help="a results.lock file")
    parser.add_argument(
        "--to", metavar="FOLDER", type=Path, default=Path("restored"), help="where to put them (%(default)s)"
    )
    parser.add_argument("--only", metavar="NAME", nargs="+", help="only these targets, such as tables/main")
    parser.add_argument("--store", type=Path, help=STORE_HELP)


def run(options: argparse.Namespace) -> int:
    """Restore what the lock in `options` names; return the exit code."""
    lock = read_lock(options.lock)
    wanted = lock if options.only is None else chosen(lock, options.only)
    # The lock of another checkout, or of a paper, says what is wanted; it is in the store that is used here.
    near = options.lock if options.lock.resolve().is_relative_to(Path.cwd().resolve()) else None
    for line in restore(wanted, store_of(near, options.store), root=options.to):
        print(line)
    return 0


def chosen(lock: Lock, only: Sequence[str]) -> Lock:
    """Return `lock` with only the targets that `only` names: targets (tables/main) or folders of targets (tables).

    Raises:
        ConfigError: The lock has no such target.
    """
    targets = {name: lock.targets[name] for name in lock.targets if any(f"{name}/".startswith(f"{o}/") for o in only)}
    if not targets:
        meant = "".join(did_you_mean(name, lock.targets) for name in only)
        raise ConfigError(
            f"--only {' '.join(only)}: the lock of {lock.study} has no such target. Expected names such as"
            f" tables/main.{meant}"
        )
    return Lock(study=lock.study, targets=targets, selection=lock.selection)
