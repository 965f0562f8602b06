"""`dualread gc`: show, and remove, what no study needs."""

import argparse
from pathlib import Path

from dualread.apps.text import size_text
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.store.batches import batch_files
from dualread.store.gc import leftovers, remove
from dualread.store.place import HELP as STORE_HELP
from dualread.store.place import Root, registered, store_of
from dualread.store.store import Store

HELP = "show, and remove, what no study needs"
DESCRIPTION = """
List what is in the store but not needed by any study: stage, key, size and age. With --delete, remove it.

A study in results/ needs the artifacts that its MANIFEST.json files and its results.lock name, and everything that they
were made from. An entry that any other folder links is needed as well. To give up a study, delete its folder
results/<study> first.

Checkouts can share a store: the workflow and `dualread store restore` register their results folder in it, and all
registered folders count. A registered folder that no longer exists is reported, and removed from the register with
--delete. If a folder of another machine cannot be seen from this one, nothing is removed until you declare it gone with
--forget. To keep what a results.lock in another place names, give it with --keep.

The store also keeps the batches in which answers and states were computed, so that an edit of one image computes no
others again. They go with the last entry that was made of them. No result is read from them, so --batches gives up
those of needed entries, too; the last line but one says what all of them weigh.

Some of the rest is kept for now: what was written within the last hour, what a running process uses, and for a week the
checkpoints and batches of killed jobs and the scratch directories of other hosts. Removing a damaged entry does not
free files that a results folder still links; the sizes printed as freed take this into account.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("--delete", action="store_true", help="remove what no study needs")
    parser.add_argument("--all", action="store_true", help="list everything, not only the 20 largest")
    parser.add_argument(
        "--results", metavar="DIR", type=Path, action="append", help="a folder with studies (results); may be repeated"
    )
    parser.add_argument(
        "--forget", metavar="HOST:DIR", nargs="+", default=[], help="registered results folders that no longer exist"
    )
    parser.add_argument(
        "--keep", metavar="LOCK", type=Path, nargs="+", default=[], help="also keep what these lock files name"
    )
    parser.add_argument("--batches", action="store_true", help="also batches of entries that are needed")
    parser.add_argument("--store", type=Path, help=STORE_HELP)


def run(options: argparse.Namespace) -> int:
    """Print what no study needs, and remove it if asked to; return the exit code."""
    store, n_shown = store_of(None, options.store), 20
    lost = _lost(options, store)
    results = options.results or [Path("results")]
    unneeded = list(leftovers(store, results=results, locks=options.keep, lost=lost, batches=options.batches))
    unneeded.sort(key=lambda entry: (-entry.size, entry.kind, entry.key))
    for entry in unneeded if options.all else unneeded[:n_shown]:
        kept = f"  kept: {entry.kept}" if entry.kept else ""
        units = (("days", 86400), ("hours", 3600))
        unit, length = next((unit for unit in units if entry.seconds >= unit[1]), ("min", 60))
        size, age = size_text(entry.size), f"{entry.seconds / length:.0f} {unit}"
        output = store.record(entry.key).get("output", "") if entry.path == store.entry(entry.key) else ""
        print(f"{entry.kind:<22} {entry.key[:8]}  {size:>9}  {age:>8}{kept}  {output}")
    if len(unneeded) > n_shown and not options.all:
        print(f"... and {len(unneeded) - n_shown} smaller ones; --all lists them")
    going = [entry for entry in unneeded if entry.kept is None]
    for kind in sorted({entry.kind for entry in going}):
        members = [entry for entry in going if entry.kind == kind]
        size, freed = sum(entry.size for entry in members), sum(entry.freed for entry in members)
        linked = "" if freed == size else f", of which {size_text(freed)} freed (the rest is linked elsewhere)"
        print(f"  {kind}: {len(members):,}, {size_text(size)}{linked}")
    if batches := batch_files(store):
        size = size_text(sum(file.stat().st_size for file in batches))
        print(f"  the store keeps {len(batches):,} batches of answers and states, {size}")
    if not options.delete:
        counted = f"{len(going):,} of {len(unneeded):,} unneeded entries and folders"
        size = size_text(sum(entry.freed for entry in going))
        print(f"{store.root}: nothing was removed. --delete would remove {counted} and free {size}.")
        return 0
    gone = []
    for entry in going:
        try:
            remove(entry, store)
            gone.append(entry)
        except ArtifactError as error:  # of another user
            print(error)
    for root in lost:
        root.file.unlink(missing_ok=True)
    counted = f"{len(gone):,} of {len(unneeded):,} unneeded entries and folders"
    print(f"{store.root}: removed {counted}; {size_text(sum(entry.freed for entry in gone))} freed")
    return 1 if len(gone) < len(going) else 0


def _lost(options: argparse.Namespace, store: Store) -> list[Root]:
    """Return the registered folders that no longer exist, and print their names."""
    roots = registered(store)
    known = [root.name for root in roots]
    if unknown := sorted(set(options.forget) - set(known)):
        meant = f"{', '.join(known) or 'none'}.{did_you_mean(unknown[0], known)}"
        raise ConfigError(f"--forget {unknown[0]}: not registered in {store.root}. Known: {meant}")
    lost = [root for root in roots if root.name in options.forget or not root.is_there()]
    for root in lost:
        print(f"{root.name}: no longer exists; what only this folder needed is not kept")
    return lost
