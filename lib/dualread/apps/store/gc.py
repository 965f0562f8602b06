"""`dualread gc`: show, and remove, what no study needs."""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dualread.apps.text import size_text
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.store.gc import Leftover, leftovers, remove
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

Some of the rest is kept for now: what was written within the last hour, what a running process uses, and for a week the
checkpoints of killed trainings and the scratch directories of other hosts. Removing a damaged entry does not free files
that a results folder still links; the sizes printed as freed take this into account.
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
    parser.add_argument("--store", type=Path, help=STORE_HELP)


def run(options: argparse.Namespace) -> int:
    """Print what no study needs, and remove it if asked to; return the exit code."""
    store, n_shown = store_of(None, options.store), 20
    lost = _lost(options, store)
    found = list(leftovers(store, results=options.results or [Path("results")], locks=options.keep, lost=lost))
    found.sort(key=lambda one: (-one.size, one.kind, one.key))
    for one in found if options.all else found[:n_shown]:
        kept = f"  kept: {one.kept}" if one.kept else ""
        size, age = size_text(one.size), _age(one.seconds)
        print(f"{one.kind:<22} {one.key[:8]}  {size:>9}  {age:>8}{kept}  {_output(one, store)}")
    if len(found) > n_shown and not options.all:
        print(f"... and {len(found) - n_shown} smaller ones; --all lists them")
    going = [one for one in found if one.kept is None]
    for line in _by_kind(going):
        print(line)
    size = size_text(sum(one.freed for one in going))
    if not options.delete:
        print(f"{store.root}: nothing was removed. --delete would remove {_counted(going, found)} and free {size}.")
        return 0
    failed = []
    for one in going:
        try:
            remove(one, store)
        except ArtifactError as error:  # of another user
            failed.append(one)
            print(error)
    for root in lost:
        root.file.unlink(missing_ok=True)
    gone = [one for one in going if one not in failed]
    print(f"{store.root}: removed {_counted(gone, found)}; {size_text(sum(one.freed for one in gone))} freed")
    return 1 if failed else 0


def _counted(going: Sequence[Leftover], found: Sequence[Leftover]) -> str:
    return f"{len(going):,} of {len(found):,} unneeded entries and folders"


def _lost(options: argparse.Namespace, store: Store) -> list[Root]:
    """Return the registered folders that no longer exist, and print their names."""
    roots = registered(store)
    if unknown := sorted(set(options.forget) - {root.name for root in roots}):
        known = [root.name for root in roots]
        listed = ", ".join(known) or "none"
        meant = did_you_mean(unknown[0], known)
        raise ConfigError(f"--forget {unknown[0]}: not registered in {store.root}. Known: {listed}.{meant}")
    lost = [root for root in roots if root.name in options.forget or not root.is_there()]
    for root in lost:
        print(f"{root.name}: no longer exists; what only this folder needed is not kept")
    return lost


def _by_kind(found: Iterable[Leftover]) -> Iterator[str]:
    groups: dict[str, list[Leftover]] = defaultdict(list)
    for one in found:
        groups[one.kind].append(one)
    for kind, members in sorted(groups.items()):
        size, freed = sum(one.size for one in members), sum(one.freed for one in members)
        linked = "" if freed == size else f", of which {size_text(freed)} freed (the rest is linked elsewhere)"
        yield f"  {kind}: {len(members):,}, {size_text(size)}{linked}"


def _output(leftover: Leftover, store: Store) -> str:
    return store.record(leftover.key).get("output", "") if leftover.path == store.entry(leftover.key) else ""


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 60:.0f} min"
