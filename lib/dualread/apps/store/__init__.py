"""`dualread store`: copy results between stores, and keep the tables of a paper."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from dualread.apps.text import size_text
from dualread.errors import ConfigError, did_you_mean
from dualread.store.copy import LOCK_NAME, copy_entries, read_lock, restore, write_lock
from dualread.store.graph import keys_below, reachable
from dualread.store.place import HELP as STORE_HELP
from dualread.store.place import find_target, read_study, store_of
from dualread.store.store import Store

HELP = "copy results to another store, restore tables"
DESCRIPTION = (
    "Copy results between stores, those of several machines or one that is shared; keep the tables of a paper."
)
_COPY = """
Copy the results that the store SOURCE has and the store DESTINATION lacks. Every file is compared with its manifest,
and an entry appears as a whole or not at all, so others may copy and run at the same time. A damaged entry is reported
and not copied, and needed entries that neither store has are counted; in both cases the exit code is 1. The next
snakemake call uses what was copied wherever code, settings and inputs are the same.

    dualread store copy results/store /mnt/shared/store                          everything
    dualread store copy results/store /mnt/shared/store --of tables/main.tex     a table and all that it was made from
    dualread store copy results/store /mnt/shared/store --of results/embedded    a study and all that it was made from
    dualread store copy /mnt/shared/store results/store --of results.lock        what a results.lock names, likewise
    dualread store copy /mnt/shared/store results/store --of results.lock --only tables figures    without their inputs

To copy over ssh, copy into a new folder that no workflow uses, and then from there:

    rsync -a --exclude tmp --exclude partial --exclude damaged --exclude roots --exclude '/*.json' \\
        host:dualread/results/store/ incoming/
    dualread store copy incoming results/store
"""
_RESTORE = """
Show the tables and figures that LOCK names from the store, without computing anything. Use this for results that were
copied, or if the code has been edited since the results were computed; the edited modules are listed. The artifacts are
linked to FOLDER/results/<study>, and the tables and figures are copied to FOLDER/tables and FOLDER/figures. FOLDER must
not be the checkout itself: Snakemake would take the restored artifacts for results of the present code (until
snakemake --cores 8 --forceall).

    dualread store restore results.lock
    dualread verify restored/tables/main.tex
"""
_LOCK = """
Write results/<study>/results.lock: the key and digest of every artifact of a study. The workflow does so at the end of
every successful run. Kept with a paper, the file records which results were printed. `dualread store copy` gets the
results that it names from another store, and `dualread store restore` shows them.

    dualread store lock results/embedded
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    ways = parser.add_subparsers(dest="way", required=True, metavar="WAY")
    copy = ways.add_parser("copy", help="copy entries to another store", description=_COPY)
    copy.add_argument("source", metavar="SOURCE", type=Path, help="folder of the store that is read")
    copy.add_argument("destination", metavar="DESTINATION", type=Path, help="folder of the other; created if missing")
    copy.add_argument(
        "--of", metavar="TARGET", help="only a table, a results folder, a key or a .lock, and all that it was made from"
    )
    restored = ways.add_parser("restore", help="show recorded tables without computing", description=_RESTORE)
    restored.add_argument("lock", metavar="LOCK", type=Path, help="a results.lock file")
    restored.add_argument(
        "--to", metavar="FOLDER", type=Path, default=Path("restored"), help="where to put them (%(default)s)"
    )
    for way in (copy, restored):
        way.add_argument(
            "--only", metavar="NAME", nargs="+", help="only these targets of the lock, without their inputs"
        )
    lock = ways.add_parser("lock", help=f"write the {LOCK_NAME} of a study", description=_LOCK)
    lock.add_argument("folder", metavar="FOLDER", type=Path, help="results/<study>")
    for way in (restored, lock):
        way.add_argument("--store", type=Path, help=STORE_HELP)
    for way in (copy, restored, lock):
        way.formatter_class = argparse.RawDescriptionHelpFormatter


def run(options: argparse.Namespace) -> int:
    """Do what `options` say; return the exit code."""
    if options.way != "restore":
        return _copy(options) if options.way == "copy" else _lock(options)
    # The lock of another checkout, or of a paper, says what is wanted; it is in the store that is used here.
    near = options.lock if options.lock.resolve().is_relative_to(Path.cwd().resolve()) else None
    lock = read_lock(options.lock).only(options.only)
    for line in restore(lock, store_of(near, options.store), root=options.to):
        print(line)
    return 0


def _copy(options: argparse.Namespace) -> int:
    """Copy entries; return 1 if an entry was refused or neither store has it, else 0."""
    source, target = Store(options.source), Store(options.destination)
    if not source.root.is_dir():
        raise ConfigError(f"{source.root}: no such folder. Expected a store, such as results/store.")
    wanted = list(_wanted(options, source))
    keys = [key for key in wanted if os.path.lexists(source.entry(key))]
    copied, n_refused = [], 0
    for key, outcome in zip(keys, copy_entries(keys, source, target), strict=True):
        if isinstance(outcome, str):
            n_refused += 1
            print(f"refused {key[:8]}: {outcome}", flush=True)
        elif outcome is not None:
            copied.append(outcome)
    nowhere = [key for key in wanted if not any(os.path.lexists(store.entry(key)) for store in (source, target))]
    if nowhere:
        print(f"{source.root}: lacks {len(nowhere):,} of the {len(wanted):,} artifacts that {options.of} needs")
    there = f"{len(keys) - len(copied) - n_refused:,} already present" + (f", {n_refused} refused" if n_refused else "")
    print(f"{target.root}: copied {len(copied):,} entries, {size_text(sum(copied))}; {there}")
    return 1 if n_refused or nowhere else 0


def _wanted(options: argparse.Namespace, source: Store) -> Iterable[str]:
    """Return the keys of the entries to copy, whether or not the source has them."""
    folder, of_lock = Path(options.of or ""), (options.of or "").endswith(".lock")
    if options.only and not of_lock:
        raise ConfigError(f"--only: selects targets of a lock. Also give it, as in --of {LOCK_NAME}.")
    if options.of is None:
        return source.stored_keys()
    if of_lock:
        keys = read_lock(folder).only(options.only).target_keys
        return keys if options.only else reachable(keys, source)
    if folder.is_dir() and (below := keys_below(folder, source)):
        return reachable(below, source)
    return reachable([find_target(options.of, source).manifest.key], source)


def _lock(options: argparse.Namespace) -> int:
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
    print(f"{options.folder}/{LOCK_NAME}: {len(lock.targets):,} artifacts of {lock.study}{more}")
    return 0
