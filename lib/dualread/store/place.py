"""Where things are: the store of a study, what a TARGET of the command line names, and which folders use a store.

Each run notes in results/<study>/study.json where the study's store is, and which settings were planned:

    {"store": ..., "files": [...], "given": {...}, "selection": ..., "settings": {...}}

Each results folder that uses a store is registered in it, so that gc in one checkout knows the others; the hard links
of an entry do not tell who needs it (`dualread.store.gc` says when):

    results/store/roots/<digest>.json   {"folder": ..., "host": ..., "inode": ...}
"""

import errno
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.digests import MANIFEST_NAME, digest_of
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.progress import say
from dualread.store.digest import content, read_json, read_mapping, replace_text
from dualread.store.disk import described, make_folder, remedy
from dualread.store.manifest import Manifest, artifact_directory, beside, read_manifest
from dualread.store.record import HOST
from dualread.store.store import Store

STUDY_NAME = "study.json"
DRY_RUN = "dry_run"  # below results/<study>: what the last dry run planned, which only `explain --again` reads
STUDY_MARK = "% study: "
DEFAULT = Path("results/store")
_ANYWHERE = "any host"
HELP = f"folder of the store (that of the study, which its {STUDY_NAME} names; otherwise {DEFAULT})"


def write_study(folder: Path, store: Store, **more: Any) -> None:
    """Note in the results folder of a study where its store is, and what else its plan says."""
    text = json.dumps({"store": str(store.root), **more}, indent=1, ensure_ascii=False) + "\n"
    path = folder / STUDY_NAME
    if content(path) != text.encode():
        replace_text(path, text)
    os.utime(path)  # of several plans, the last one has the latest time


def last_plan(folder: Path) -> Path:
    """Return where the last plan of a study noted its settings: its results folder, or that of dry runs in it."""
    return max((folder, folder / DRY_RUN), key=_plan_time)


def last_planned(folder: Path) -> Path:
    """Return the results folder of the study that was planned last, of those beside `folder`; `folder` if none was."""
    return max(folder, *sorted(folder.parent.glob("*/")), key=lambda study: _plan_time(last_plan(study)))


def _plan_time(folder: Path) -> int:
    path = folder / STUDY_NAME
    return path.stat().st_mtime_ns if path.is_file() else 0


def read_study(folder: Path) -> Mapping[str, Any]:
    """Return what the study.json of a results folder says; empty if there is none, or none of ours."""
    study = read_mapping(folder / STUDY_NAME)
    kinds = {"store": str, "files": list, "given": dict, "settings": dict}
    is_ours = "store" in study and all(isinstance(study.get(name, kind()), kind) for name, kind in kinds.items())
    return study if is_ours and all(isinstance(file, str) for file in study.get("files", ())) else {}


def store_of(target: str | Path | None, given: Path | None) -> Store:
    """Return the store that `given` (--store) names, or else that of the study that `target` belongs to.

    A target is a path below results/<study>, a copy in tables/ or figures/, or anything else, such as a key. Then the
    studies below results/ count.
    """
    if given is not None:
        return Store(given)
    if target is not None and (folder := study_folder(Path(target))) is not None and read_study(folder):
        return Store(_root(folder))
    stores = dict.fromkeys(_root(file.parent) for file in sorted(DEFAULT.parent.glob(f"*/{STUDY_NAME}")))
    if len(stores) > 1:
        raise ConfigError(f"--store: the studies in {DEFAULT.parent} have {', '.join(map(str, stores))}. Name one.")
    return Store(next(iter(stores), DEFAULT))


def study_folder(target: Path) -> Path | None:
    """Return the results folder of the study that a path belongs to; None if it belongs to none that is there."""
    if (study := marked_study(target)) is not None:
        return target.parent.parent / "results" / study
    return next((folder for folder in (target, *target.parents) if (folder / STUDY_NAME).is_file()), None)


def marked_study(path: Path) -> str | None:
    """Return the study that a copy in tables/ belongs to, from the first line of its .tex; None if there is none."""
    if not path.is_file() or not (marked := path.with_suffix(".tex")).is_file():
        return None
    with marked.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    # "(restored from a lock)" may follow
    return (first.removeprefix(STUDY_MARK).split() or [""])[0] if first.startswith(STUDY_MARK) else None


def _root(folder: Path) -> Path:
    """Return the folder of the store of the study whose results are in `folder`; Snakemake ran two folders above."""
    return folder.parent.parent / (read_study(folder).get("store") or DEFAULT)


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a TARGET names: an artifact's directory and manifest, and the copied table if the target is one."""

    directory: Path
    manifest: Manifest
    copy: Path | None = None


def find_target(target: str, store: Store) -> Target:
    """Resolve a TARGET of the command line: an artifact, one of its files, a copied table, or the start of a key."""
    path, copy = Path(target), None
    if not path.exists():
        key = find_key(target, store, near=beside(path))
        return Target(directory=store.entry(key), manifest=store.manifest(key))
    directory = artifact_directory(path) or (artifact_directory(path.parent) if path.is_file() else None)
    if directory is None:
        directory, copy = _table_source(path), path
    return Target(directory=directory, manifest=read_manifest(directory / MANIFEST_NAME), copy=copy)


def find_key(start: str, store: Store, *, near: Iterable[str] = ()) -> str:
    """Return the one key that begins with `start`."""
    keys = list(store.stored_keys(start)) if start else []
    if len(keys) != 1:
        raise ArtifactError(
            f"{start}: no such file, and {len(keys) or 'no'} keys in {store.root} begin with this. Expected a table, an"
            f" artifact's directory, or the first digits of one key.{did_you_mean(start, near)}"
        )
    return keys[0]


def _table_source(path: Path) -> Path:
    """Return the directory of the artifact that a table in tables/ is a copy of; its .tex names the study in line 1."""
    if (study := marked_study(path)) is not None:
        folder = path.absolute().parent.parent / "results" / study / "tables"
        for directory in (folder / path.stem, folder):
            if artifact_directory(directory) is not None:
                return directory
        raise ArtifactError(f"{path}: its study {study!r} has no tables in {folder}. Run the study first.")
    raise ArtifactError(
        f"{path}: is neither an artifact (no {MANIFEST_NAME}) nor a table whose first line is '{STUDY_MARK}NAME'."
        " Give a table, an artifact's directory, or the start of a key."
    )


@dataclass(frozen=True, kw_only=True)
class Root:
    """A registered results folder."""

    file: Path  # the JSON file that registers it
    folder: Path  # the results folder
    host: str  # the machine that registered it; "any host" for the folder in which the store itself lies
    inode: int  # of the folder: on another machine, a folder of the same path may be another one

    @property
    def name(self) -> str:
        """The name for messages and --forget: host:/folder."""
        return f"{self.host}:{self.folder}"

    def is_there(self) -> bool:
        """Whether the folder still exists."""
        reason = "is not on this machine"
        try:
            if self.folder.stat().st_ino == self.inode or self.host in (HOST, _ANYWHERE):
                return True
        except (FileNotFoundError, NotADirectoryError):
            if self.host in (HOST, _ANYWHERE):
                return False
        except OSError as error:
            reason = f"{error.strerror}; ask its owner for access"
        raise ArtifactError(
            f"{self.name}: this results folder uses the store but cannot be seen from {HOST} ({reason}), so it is not"
            f" known what it needs. If the folder is gone, add --forget {self.name}. If it still exists, also add"
            " --keep with copies of its results.lock files."
        )


def register(results: Path, store: Store) -> None:
    """Register the folder `results` in `store`, so that gc keeps what it needs."""
    folder, root = results.resolve(), store.root.resolve()
    row = {"folder": str(folder), "host": HOST}
    if folder in root.parents:  # a relative path stays right when both are moved or copied together
        row = {"folder": os.path.relpath(folder, root), "host": _ANYWHERE}
    file = store.root / "roots" / f"{digest_of(row)[:16]}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**row, "inode": folder.stat().st_ino}) + "\n"
        if content(file) != text.encode():
            make_folder(file.parent, store.root)
            replace_text(file, text)
    except OSError as error:
        unregistered = f"{store.root}: {folder} cannot be registered there ({error.strerror})"
        if error.errno in (errno.EACCES, errno.EPERM):
            raise ArtifactError(
                f"{unregistered}, so `dualread gc` of others would remove what it needs. {described(file.parent)}."
                f" {remedy(store.root)}"
            ) from error
        # A read-only or a full disk: nothing is computed, and what the store has is used.
        say(f"warning: {unregistered}; where the store can be written to, `dualread gc` does not know this folder")


def registered(store: Store) -> list[Root]:
    """Return every registered folder, sorted by name."""
    roots = []
    for file in store.root.glob("roots/*.json"):
        try:
            row = read_json(file)
            folder = Path(os.path.normpath(store.root.resolve() / row["folder"]))
            roots.append(Root(file=file, folder=folder, host=row["host"], inode=row["inode"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtifactError(
                f"{file}: cannot be read ({error!r}), so it is not known which results folder it registers. Delete the"
                " file and start the workflow once in every checkout that uses the store."
            ) from error
    return sorted(roots, key=lambda root: root.name)
