"""`dualread gc`: show, and remove, what no study needs."""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from dualread.commands.store import size_text
from dualread.errors import ConfigError, did_you_mean
from dualread.store.gc import Leftover, leftovers, remove
from dualread.store.roots import Root, registered
from dualread.store.store import Store

HELP = "show, and remove, what no study needs"
DESCRIPTION = """
Show what lies in the store and is reached by no study: stage, key, size, age; with --delete, remove it.

Reached is all that the MANIFEST.json files and the results.lock of the studies in results/ name, and everything it was
made from. To give a study up, delete its folder results/<study> first. Checkouts that share a store know of each other:
the workflow and `restore` register their results folder in it, and those of all count. One that is gone is named, and
forgotten with --delete; where another machine has one that cannot be seen from here, nothing is removed until it is
said to be gone (--forget). A lock that is kept elsewhere counts with --keep.

Whatever was written within the last hour stays, and so does what a living process holds (a lease, a scratch directory).
What a killed training left to go on from stays for a week, as does scratch of other hosts. Bytes that an old results
folder still links are not freed by removing an entry; what is really freed is said.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads to `parser`."""
    parser.add_argument("--delete", action="store_true", help="remove it")
    parser.add_argument("--all", action="store_true", help="list every one, not the 20 largest")
    parser.add_argument(
        "--results", metavar="DIR", type=Path, action="append", help="a folder with studies (results); may be repeated"
    )
    parser.add_argument(
        "--forget", metavar="HOST:DIR", nargs="+", default=[], help="registered folders that are gone, by these names"
    )
    parser.add_argument(
        "--keep", metavar="LOCK", type=Path, nargs="+", default=[], help="keep what these locks name, too"
    )
    parser.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Print what no study reaches, and remove it if asked to; return the exit code."""
    store, n_shown = Store(options.store), 20
    lost = _lost(options, store)
    found = list(leftovers(store, results=options.results or [Path("results")], locks=options.keep, lost=lost))
    found.sort(key=lambda one: (-one.size, one.kind, one.key))
    for one in found if options.all else found[:n_shown]:
        stays = f"  stays: {one.kept}" if one.kept else ""
        size, age = size_text(one.size), _age(one.seconds)
        print(f"{one.kind:<22} {one.key[:8]}  {size:>9}  {age:>8}{stays}  {_from(one, store)}")
    if len(found) > n_shown and not options.all:
        print(f"... and {len(found) - n_shown} smaller ones; --all lists them")
    going = [one for one in found if one.kept is None]
    for line in _by_kind(going):
        print(line)
    of = f"{len(going):,} of {len(found):,} unreached, {size_text(sum(one.freed for one in going))}"
    if not options.delete:
        print(f"{store.root}: {of} would be freed. Nothing was removed; --delete does.")
        return 0
    for one in going:
        remove(one, store)
    for root in lost:
        root.file.unlink(missing_ok=True)
    print(f"{store.root}: {of} freed")
    return 0


def _lost(options: argparse.Namespace, store: Store) -> list[Root]:
    """Return the registered folders that are gone, and say so."""
    roots = registered(store)
    if unknown := sorted(set(options.forget) - {root.name for root in roots}):
        known = [root.name for root in roots]
        listed = ", ".join(known) or "none"
        meant = did_you_mean(unknown[0], known)
        raise ConfigError(f"--forget {unknown[0]}: no such folder uses {store.root}. Known: {listed}.{meant}")
    lost = [root for root in roots if root.name in options.forget or not root.is_there()]
    for root in lost:
        print(f"{root.name}: gone; what only it needed is not kept")
    return lost


def _by_kind(found: Iterable[Leftover]) -> Iterator[str]:
    groups: dict[str, list[Leftover]] = defaultdict(list)
    for one in found:
        groups[one.kind].append(one)
    for kind, members in sorted(groups.items()):
        size, freed = sum(one.size for one in members), sum(one.freed for one in members)
        linked = "" if freed == size else f", {size_text(freed)} freed: the rest is linked elsewhere"
        yield f"  {kind}: {len(members):,}, {size_text(size)}{linked}"


def _from(leftover: Leftover, store: Store) -> str:
    return store.record(leftover.key).get("output", "") if leftover.path == store.entry(leftover.key) else ""


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 60:.0f} min"
