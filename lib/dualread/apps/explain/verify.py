"""`dualread verify`: read every file that a table was made from, and compare it with what was recorded."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dualread.apps.explain import TARGET
from dualread.errors import ArtifactError, ConfigError, DualReadError
from dualread.store.code import library, stage_roots
from dualread.store.copy import LOCK_NAME, read_lock
from dualread.store.differences import edited
from dualread.store.graph import damages, reachable
from dualread.store.place import HELP as STORE_HELP
from dualread.store.place import Target, find_target, read_study, store_of, study_folder
from dualread.store.store import Store

HELP = "check every file that a table was made from"
DESCRIPTION = """
Read TARGET and every file that it was made from, through all stages down to the raw data, and compare the sha256 of
each with the one recorded when the file was written. Print one line per damaged or missing file; the exit code is 1 if
there are any. If all is intact, print one line per artifact that was made by other code than there is now.

The last line says whether TARGET is of the study's present configuration. It is if the settings in the study's files
are those of the last run, and if that run would make the same artifacts now; dry runs do not count. What differs is
named. Nothing is changed. To recompute what is damaged, missing, or of other code, and nothing else:

    snakemake --cores 8 --forceall tables/main.tex
"""

_ALONE = """
This compares an entry with its own MANIFEST.json. Whoever can write into the store can replace both; that shows only in
what was made from the entry, and in a results.lock. So verify a table, or the folder below results/.
""".strip()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("target", metavar="TARGET", help=TARGET)
    parser.add_argument("--store", type=Path, help=STORE_HELP)


def run(options: argparse.Namespace) -> int:
    """Print one line per file that is damaged or missing, or artifact of other code; return 1 for damage, else 0."""
    store = store_of(options.target, options.store)
    target = find_target(options.target, store)
    if target.copy is None and not store.root.is_dir():
        raise ConfigError(f"{store.root}: no such folder. Give the store with --store.")
    lock = (study_folder(target.copy or target.directory) or target.directory) / LOCK_NAME
    locked = {row["key"]: row["digest"] for row in read_lock(lock).targets.values()} if lock.is_file() else {}
    count = 0
    for sentence in damages(target, store, locked):
        count += 1
        print(sentence, flush=True)
    if count:
        print(f"{options.target}: {count} damaged or missing")
        return 1
    others = [line for key in reachable([target.manifest.key], store) for line in _other_code(key, store)]
    mixed = f"; {len(others)} of the artifacts behind it were made by other code than there is now" if others else ""
    differs, present = _configuration(target, store)
    print(*others, *differs, f"{options.target}: intact, down to the raw data{mixed}{present}", sep="\n")
    if target.directory == store.entry(target.manifest.key):
        print(_ALONE)
    return 0


def _configuration(target: Target, store: Store) -> tuple[list[str], str]:
    """Return in what a target differs from the study's configuration, and what is said of that in the last line."""
    folder = study_folder(target.copy or target.directory)
    planned = read_study(folder) if folder else {}
    if folder is None or target.manifest.place is None or "settings" not in planned:
        return [], ""  # an entry of the store, or restored results: no plan makes them
    from dualread.study.again import reasons  # here, because the rest does not need it
    from dualread.study.files import changed_settings

    files, changed = changed_settings(planned, folder)
    differs = [f"the settings changed since they were planned: {line}" for line in changed]
    try:
        differs += reasons(target.manifest, store, missing=False)
    except ArtifactError as error:  # of no plan, or asked for from another folder than Snakemake's
        return differs, f"; not compared with the study's configuration ({error})"
    named = f"this configuration ({', '.join(files)})"
    return differs, f"; not of {named}" if differs else f"; of {named}"


def _other_code(key: str, store: Store) -> Iterator[str]:
    """Yield a sentence if the entry `key` was made by other code, and the present code has not made the same files."""
    manifest = store.manifest(key)
    action = manifest.action
    try:
        now = library().digest(stage_roots(action.stage, action.spec))
    except DualReadError:
        now = None  # a stage or a plugin that is no more
    key_now = None if now is None else replace(action, code=now).key
    is_same = key_now and store.entry(key_now).is_dir() and store.manifest(key_now).digest == manifest.digest
    if now != action.code and not is_same:
        yield f"{action.stage} {key[:8]}: was made by other code than there is now{edited(action, store.record(key))}"
