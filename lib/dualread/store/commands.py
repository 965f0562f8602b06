"""The verbs of `dualread` that change a store or copy from one: gc, store push, store pull, restore, lock."""

import argparse
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError, did_you_mean
from dualread.store.copy import copy_entries
from dualread.store.gc import Leftover, leftovers, remove
from dualread.store.lineage import find_target
from dualread.store.lock import Lock, read_lock, restore, write_lock
from dualread.store.reach import keys_below, reachable
from dualread.store.roots import Root, registered
from dualread.store.store import Store

_GC = """
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
_PUSH = """
Copy the entries that DESTINATION, the folder of another store, lacks. Every byte is compared with its manifest, and an
entry appears as a whole or not at all, so that others may push, pull and run meanwhile. A damaged entry is refused by
name, and one that neither store has is counted; then the exit code is 1. Whoever uses that store, or pulls from it,
computes none of this again:

    dualread store push /mnt/shared/store                         everything
    dualread store push /mnt/shared/store --of tables/main.tex    what one table rests on; or --of results/embedded

Over ssh, into a folder that is no store in use, and from there into the store:

    rsync -a --exclude tmp --exclude partial --exclude damaged --exclude roots host:dualread/results/store/ incoming/
    dualread store pull incoming
"""
_PULL = """
Copy the entries of SOURCE, the folder of another store, that this one lacks; see dualread store push --help. Then the
next snakemake call finds them, where code, settings and inputs are the same. Where the code was edited since, the
tables can be shown all the same, as they were: pull what a results.lock names, and dualread restore.

    dualread store pull /mnt/shared/store
    dualread store pull /mnt/shared/store --from-lock results.lock
    dualread store pull /mnt/shared/store --from-lock results.lock --only tables figures     and nothing below them
"""
_RESTORE = """
Show the tables and figures that LOCK names, out of the store, without computing: for a store that was pulled, and code
that was edited since. The artifacts are linked to FOLDER/results/<study>, tables and figures copied to FOLDER/tables
and FOLDER/figures; modules that were edited since are named. FOLDER is not the checkout itself, because Snakemake takes
what lies in its results/ for made by the code that is here (until snakemake --cores 8 --forceall).

    dualread restore results.lock
    dualread verify restored/tables/main.tex
"""
_LOCK = """
Write results/<study>/results.lock: key and digest of every artifact of a study. The workflow does so whenever it ends
well. Kept with a paper, it says which results the paper printed; dualread store pull and restore read it.
"""


def add_verbs(verbs: Any) -> list[argparse.ArgumentParser]:
    """Add the verbs to the program's subparsers; return those that need --store and the program's layout."""
    gc = verbs.add_parser("gc", help="show, and remove, what no study needs", description=_GC)
    gc.add_argument("--delete", action="store_true", help="remove it")
    gc.add_argument("--all", action="store_true", help="list every one, not the 20 largest")
    gc.add_argument(
        "--results", metavar="DIR", type=Path, action="append", help="a folder with studies (results); may be repeated"
    )
    gc.add_argument(
        "--forget", metavar="HOST:DIR", nargs="+", default=[], help="registered folders that are gone, by these names"
    )
    gc.add_argument("--keep", metavar="LOCK", type=Path, nargs="+", default=[], help="keep what these locks name, too")
    gc.set_defaults(run=_gc)
    store = verbs.add_parser("store", help="share a store: push, pull", description="Share a store between machines.")
    ways = store.add_subparsers(dest="way", required=True, metavar="WAY")
    push = ways.add_parser("push", help="copy entries to another store", description=_PUSH)
    push.add_argument("other", metavar="DESTINATION", type=Path, help="folder of the other store; made if need be")
    pull = ways.add_parser("pull", help="copy entries from another store", description=_PULL)
    pull.add_argument("other", metavar="SOURCE", type=Path, help="folder of the other store")
    for verb, run in ((push, _push), (pull, _pull)):
        verb.add_argument("--of", metavar="TARGET", help="only what a table, a results folder or a key rests on")
        verb.add_argument("--from-lock", metavar="LOCK", type=Path, help="only what this results.lock rests on")
        verb.add_argument("--only", metavar="NAME", nargs="+", help="with --from-lock: these targets, nothing below")
        verb.set_defaults(run=run)
    back = verbs.add_parser("restore", help="show locked tables without computing", description=_RESTORE)
    back.add_argument("lock", metavar="LOCK", type=Path, help="a results.lock")
    back.add_argument("--to", metavar="FOLDER", type=Path, default=Path("restored"), help="%(default)s")
    back.add_argument("--only", metavar="NAME", nargs="+", help="these targets alone, such as tables/main")
    back.set_defaults(run=_restore)
    lock = verbs.add_parser("lock", help="write results.lock of a study", description=_LOCK)
    lock.add_argument("folder", metavar="FOLDER", type=Path, help="results/<study>")
    lock.set_defaults(run=_lock)
    return [gc, push, pull, back, lock]


def _gc(options: argparse.Namespace) -> int:
    store, n_shown = Store(options.store), 20
    lost = _lost(options, store)
    found = list(leftovers(store, results=options.results or [Path("results")], locks=options.keep, lost=lost))
    found.sort(key=lambda one: (-one.size, one.kind, one.key))
    for one in found if options.all else found[:n_shown]:
        stays = f"  stays: {one.kept}" if one.kept else ""
        print(f"{one.kind:<22} {one.key[:8]}  {_size(one.size):>9}  {_age(one.seconds):>8}{stays}  {_from(one, store)}")
    if len(found) > n_shown and not options.all:
        print(f"... and {len(found) - n_shown} smaller ones; --all lists them")
    going = [one for one in found if one.kept is None]
    for line in _by_kind(going):
        print(line)
    of = f"{len(going):,} of {len(found):,} unreached, {_size(sum(one.freed for one in going))}"
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
        linked = "" if freed == size else f", {_size(freed)} freed: the rest is linked elsewhere"
        yield f"  {kind}: {len(members):,}, {_size(size)}{linked}"


def _push(options: argparse.Namespace) -> int:
    return _copy(options, Store(options.store), Store(options.other), "pushed")


def _pull(options: argparse.Namespace) -> int:
    return _copy(options, Store(options.other), Store(options.store), "pulled")


def _copy(options: argparse.Namespace, source: Store, target: Store, done: str) -> int:
    if not source.root.is_dir():
        raise ConfigError(f"{source.root}: no such folder. Expected a store, such as results/store.")
    wanted = list(_wanted(options, source))
    keys = [key for key in wanted if os.path.lexists(source.entry(key))]
    n_copied = n_bytes = n_refused = 0
    for one in copy_entries(keys, source, target):
        n_copied += one.size is not None
        n_bytes += one.size or 0
        n_refused += one.problem is not None
        if one.problem:
            print(f"refused {one.key[:8]}: {one.problem}", flush=True)
    nowhere = [key for key in wanted if not any(os.path.lexists(store.entry(key)) for store in (source, target))]
    if nowhere:
        named = options.from_lock or options.of
        print(f"{source.root}: does not have {len(nowhere):,} of the {len(wanted):,} artifacts that {named} rests on")
    there = len(keys) - n_copied - n_refused
    refused = f", {n_refused} refused" if n_refused else ""
    print(f"{target.root}: {done} {n_copied:,} entries, {_size(n_bytes)}; {there:,} were there{refused}")
    return 1 if n_refused or nowhere else 0


def _wanted(options: argparse.Namespace, source: Store) -> Iterable[str]:
    if options.only and not options.from_lock:
        raise ConfigError("--only: chooses among the targets of a lock. Give --from-lock, too.")
    if options.from_lock:
        lock = read_lock(options.from_lock)
        if options.only is None:
            return [*reachable(lock.target_keys, source)]
        return [target["key"] for target in _chosen(lock, options.only).targets.values()]
    if options.of is None:
        return source.stored_keys()
    folder = Path(options.of)
    if folder.is_dir() and (below := keys_below(folder, source)):
        return reachable(below, source)
    return reachable([find_target(options.of, source).manifest.key], source)


def _chosen(lock: Lock, only: Sequence[str]) -> Lock:
    """Return the lock with these targets, and with those in folders of these names (tables, tables/main)."""
    targets = {name: lock.targets[name] for name in lock.targets if any(f"{name}/".startswith(f"{o}/") for o in only)}
    if not targets:
        meant = "".join(did_you_mean(name, lock.targets) for name in only)
        raise ConfigError(f"--only {' '.join(only)}: the lock of {lock.study} has no such target.{meant}")
    return Lock(study=lock.study, targets=targets)


def _restore(options: argparse.Namespace) -> int:
    lock = read_lock(options.lock)
    chosen = lock if options.only is None else _chosen(lock, options.only)
    for line in restore(chosen, Store(options.store), root=options.to):
        print(line)
    return 0


def _lock(options: argparse.Namespace) -> int:
    if not options.folder.is_dir():
        meant = did_you_mean(options.folder, map(str, options.folder.parent.glob("*/")))
        raise ConfigError(f"{options.folder}: no such folder. Expected that of a study that was run.{meant}")
    lock = write_lock(options.folder, Store(options.store))
    print(f"{options.folder}/results.lock: {len(lock.targets):,} artifacts of {lock.study}")
    return 0


def _from(leftover: Leftover, store: Store) -> str:
    return store.record(leftover.key).get("output", "") if leftover.path == store.entry(leftover.key) else ""


def _size(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} GB"


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 60:.0f} min"
