"""`dualread store push` and `dualread store pull`: share entries of a store between machines."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from dualread.commands.restore import chosen
from dualread.errors import ConfigError
from dualread.store.copy import copy_entries
from dualread.store.lineage import find_target
from dualread.store.lock import read_lock
from dualread.store.reach import keys_below, reachable
from dualread.store.store import Store

HELP = "share a store: push, pull"
DESCRIPTION = "Share a store between machines."
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads to `parser`."""
    ways = parser.add_subparsers(dest="way", required=True, metavar="WAY")
    push = ways.add_parser("push", help="copy entries to another store", description=_PUSH)
    push.add_argument("other", metavar="DESTINATION", type=Path, help="folder of the other store; made if need be")
    pull = ways.add_parser("pull", help="copy entries from another store", description=_PULL)
    pull.add_argument("other", metavar="SOURCE", type=Path, help="folder of the other store")
    for way in (push, pull):
        way.formatter_class = argparse.RawDescriptionHelpFormatter
        way.add_argument("--of", metavar="TARGET", help="only what a table, a results folder or a key rests on")
        way.add_argument("--from-lock", metavar="LOCK", type=Path, help="only what this results.lock rests on")
        way.add_argument("--only", metavar="NAME", nargs="+", help="with --from-lock: these targets, nothing below")
        way.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Copy entries to or from the other store; return the exit code, 1 where an entry was refused or is nowhere."""
    own, other = Store(options.store), Store(options.other)
    return _copy(options, own, other, "pushed") if options.way == "push" else _copy(options, other, own, "pulled")


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
    print(f"{target.root}: {done} {n_copied:,} entries, {size_text(n_bytes)}; {there:,} were there{refused}")
    return 1 if n_refused or nowhere else 0


def _wanted(options: argparse.Namespace, source: Store) -> Iterable[str]:
    if options.only and not options.from_lock:
        raise ConfigError("--only: chooses among the targets of a lock. Give --from-lock, too.")
    if options.from_lock:
        lock = read_lock(options.from_lock)
        if options.only is None:
            return [*reachable(lock.target_keys, source)]
        return [target["key"] for target in chosen(lock, options.only).targets.values()]
    if options.of is None:
        return source.stored_keys()
    folder = Path(options.of)
    if folder.is_dir() and (below := keys_below(folder, source)):
        return reachable(below, source)
    return reachable([find_target(options.of, source).manifest.key], source)


def size_text(n_bytes: float) -> str:
    """Return a size as people read it, such as "1.4 MB"."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} GB"
