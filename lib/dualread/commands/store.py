"""`dualread store push` and `dualread store pull`: copy results between the stores of several machines."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from dualread.commands.restore import chosen
from dualread.commands.text import size_text
from dualread.errors import ConfigError
from dualread.store.copy import copy_entries
from dualread.store.graph import keys_below, reachable
from dualread.store.lock import read_lock
from dualread.store.place import HELP as STORE_HELP
from dualread.store.place import find_target, store_of
from dualread.store.store import Store

HELP = "copy results to or from another store"
DESCRIPTION = "Copy results between stores: those of several machines, or one that is shared."
_PUSH = """
Copy the results that DESTINATION, the folder of another store, lacks. Every file is compared with its manifest, and an
entry of the store appears as a whole or not at all, so others may push, pull and run at the same time. A damaged entry
is reported and not copied, and needed entries that neither store has are counted; in both cases the exit code is 1.
Nobody who uses the other store, or pulls from it, has to compute these results again.

    dualread store push /mnt/shared/store                          everything
    dualread store push /mnt/shared/store --of tables/main.tex     a table and all that it was made from
    dualread store push /mnt/shared/store --of results/embedded    a study and all that it was made from

To copy over ssh, copy into a new folder that no workflow uses, and pull from there:

    rsync -a --exclude tmp --exclude partial --exclude damaged --exclude roots --exclude '/*.json' \\
        host:dualread/results/store/ incoming/
    dualread store pull incoming
"""
_PULL = """
Copy the results that SOURCE, the folder of another store, has and this store lacks; see dualread store push --help. The
next snakemake call uses them wherever code, settings and inputs are the same. If the code was edited since, the tables
can still be shown as they were: pull what a results.lock names and run dualread restore.

    dualread store pull /mnt/shared/store
    dualread store pull /mnt/shared/store --from-lock results.lock
    dualread store pull /mnt/shared/store --from-lock results.lock --only tables figures    without their inputs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    ways = parser.add_subparsers(dest="way", required=True, metavar="WAY")
    push = ways.add_parser("push", help="copy entries to another store", description=_PUSH)
    push.add_argument("other", metavar="DESTINATION", type=Path, help="folder of the other store; created if missing")
    pull = ways.add_parser("pull", help="copy entries from another store", description=_PULL)
    pull.add_argument("other", metavar="SOURCE", type=Path, help="folder of the other store")
    for way in (push, pull):
        way.formatter_class = argparse.RawDescriptionHelpFormatter
        way.add_argument(
            "--of", metavar="TARGET", help="only a table, a results folder or a key, and all that it was made from"
        )
        way.add_argument(
            "--from-lock", metavar="LOCK", type=Path, help="only what this lock names, and all that it was made from"
        )
        way.add_argument(
            "--only", metavar="NAME", nargs="+", help="with --from-lock: only these targets, without their inputs"
        )
        way.add_argument("--store", type=Path, help=STORE_HELP)


def run(options: argparse.Namespace) -> int:
    """Copy entries to or from the other store; return 1 if an entry was refused or neither store has it, else 0."""
    own, other = store_of(options.of, options.store), Store(options.other)
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
        print(f"{source.root}: lacks {len(nowhere):,} of the {len(wanted):,} artifacts that {named} needs")
    there = len(keys) - n_copied - n_refused
    refused = f", {n_refused} refused" if n_refused else ""
    print(f"{target.root}: {done} {n_copied:,} entries, {size_text(n_bytes)}; {there:,} already present{refused}")
    return 1 if n_refused or nowhere else 0


def _wanted(options: argparse.Namespace, source: Store) -> Iterable[str]:
    if options.only and not options.from_lock:
        raise ConfigError("--only: selects targets of a lock. Also give --from-lock LOCK.")
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
