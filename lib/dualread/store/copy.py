"""Copy entries from one store to another, and keep a study's tables by their keys.

Each entry is verified byte by byte and published with one rename. Several machines may copy into one store and run from
it at the same time: an entry appears as a whole or not at all.

results.lock has the key and digest of every artifact of a study, so that its tables can be restored without computing.
It has one line per target, sorted, so that two locks can be compared line by line:

    {"format": 1, "study": "embedded", "targets": {
    "tables/main": {"digest": "...", "key": "..."},
    ...
    }}

After a run of a part of the study, what is still of an earlier configuration has `"outdated": true`. Where the last
run was one of a selection, the first line has `"selection": "seeds: 17"`.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.store.differences import edited
from dualread.store.digest import content, read_json, replace_text
from dualread.store.graph import artifacts_below
from dualread.store.manifest import read_manifest
from dualread.store.place import STUDY_MARK, register, write_study
from dualread.store.results import link
from dualread.store.store import Store

LOCK_NAME = "results.lock"
_FORMAT = 1
_SHOWN = ("tables", "figures")  # targets whose files are also copied to tables/ and figures/
_THREADS = 8  # small entries take the disk's latency rather than its bandwidth


def copy_entries(keys: Iterable[str], source: Store, target: Store) -> Iterator[int | str | None]:
    """Copy those entries `keys` of `source` that `target` lacks.

    Yield of each, in the same order, its size in bytes if it was copied, None if it was there, and why it was refused
    if the source's is damaged. An entry of the target with wrong file sizes is replaced.
    """

    def copied(key: str) -> int | str | None:
        if target.lookup(key) is not None:
            return None
        try:
            manifest = source.manifest(key)
        except ArtifactError as error:
            return str(error)
        return target.take(manifest, source.entry(key)) or sum(file["size"] for file in manifest.files.values())

    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(copied, keys)


@dataclass(frozen=True, kw_only=True)
class Lock:
    """The artifacts of a study: {target: {"key", "digest"}}; a target is a path below results/<study>."""

    study: str
    targets: Mapping[str, Mapping[str, Any]]
    selection: str | None = None

    @property
    def target_keys(self) -> set[str]:
        """The keys of all targets."""
        return {target["key"] for target in self.targets.values()}

    def only(self, names: Sequence[str] | None) -> "Lock":
        """Return the lock with only these targets (tables/main), or those in these folders (tables); None means all."""
        if names is None:
            return self
        folders = tuple(f"{name}/" for name in names)
        chosen = {target: row for target, row in self.targets.items() if f"{target}/".startswith(folders)}
        if not chosen:
            meant = "".join(did_you_mean(name, self.targets) for name in names)
            raise ConfigError(
                f"--only {' '.join(names)}: the lock of {self.study} has no such target. Expected names such as"
                f" tables/main.{meant}"
            )
        return replace(self, targets=chosen)

    def to_text(self) -> str:
        """Return the text of the file."""
        rows = sorted(self.targets.items())
        lines = [f"{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in rows]
        selection = f', "selection": {json.dumps(self.selection)}' if self.selection else ""
        head = f'{{"format": {_FORMAT}, "study": {json.dumps(self.study)}{selection}, "targets": {{\n'
        return head + ",\n".join(lines) + "\n}}\n"


def read_lock(path: Path) -> Lock:
    """Read a results.lock."""
    try:
        document = read_json(path)
        lock = Lock(study=document["study"], targets=document["targets"], selection=document.get("selection"))
        valid = document["format"] == _FORMAT and all({"key", "digest"} <= set(row) for row in lock.targets.values())
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror}). Expected a {LOCK_NAME}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"{path}: not a {LOCK_NAME} ({error!r}). The workflow writes one when it ends.") from error
    if not valid:
        raise ArtifactError(f"{path}: not a {LOCK_NAME} of format {_FORMAT}. The workflow writes one when it ends.")
    return lock


def write_lock(folder: Path, store: Store, *, outdated: Collection[str] = (), selection: str | None = None) -> Lock:
    """Write results.lock of the study in `folder`, results/<study>; `outdated` are of earlier configurations."""
    targets = {}
    for directory in artifacts_below(folder, store):
        manifest = read_manifest(directory / MANIFEST_NAME)
        earlier = {"outdated": True} if str(directory) in outdated else {}
        row = {"key": manifest.key, "digest": manifest.digest, **earlier}
        targets[directory.relative_to(folder).as_posix()] = row
    lock, path = Lock(study=folder.name, targets=targets, selection=selection), folder / LOCK_NAME
    if content(path) != lock.to_text().encode():
        replace_text(path, lock.to_text())
    return lock


def restore(lock: Lock, store: Store, *, root: Path) -> Iterator[str]:
    """Link the locked artifacts that `store` holds to `root`/results and copy tables and figures; yield messages.

    Nothing is computed, and keys are not compared with those of the present code.
    """
    folder = root / "results" / lock.study
    # Snakemake would take the restored artifacts for those of another lock.
    if content(folder / LOCK_NAME) != lock.to_text().encode() and next(artifacts_below(folder, store), None):
        raise ArtifactError(f"{folder}: holds artifacts that are not of this lock. Choose another folder (--to).")
    shown = [name for name in sorted(lock.targets) if name.split("/")[0] in _SHOWN]
    there = [name for name in sorted(lock.targets) if store.lookup(lock.targets[name]["key"]) is not None]
    if missing := sorted(set(shown) - set(there)):
        raise ArtifactError(
            f"{store.root}: lacks {len(missing)} of the locked tables and figures, such as {missing[0]}"
            f" ({lock.targets[missing[0]]['key'][:8]}). Get them with `dualread store copy`."
        )
    folder.mkdir(parents=True, exist_ok=True)
    register(root / "results", store)
    replace_text(folder / LOCK_NAME, lock.to_text())
    write_study(folder, Store(store.root.resolve()))
    for name in there:
        target = lock.targets[name]
        entry, manifest = store.entry(target["key"]), store.manifest(target["key"])
        if manifest.digest != target["digest"]:
            raise ArtifactError(
                f"{entry}: its files (digest {manifest.digest[:12]}) differ from those that the lock records for {name}"
                f" ({target['digest'][:12]}): two machines got different results. Copy into an empty store."
            )
        if problems := list(manifest.wrong_bytes(entry)):
            raise ArtifactError(f"{problems[0]}; {name} is damaged. Delete {entry} and copy it again.")
        link(entry, manifest, folder / name)
    for name in shown:
        key = lock.targets[name]["key"]
        action = store.manifest(key).action
        told = [key[:8], f"code {action.code[:8]}{edited(action, store.record(key))}"]
        told += ["of an earlier configuration than others in this lock"] if lock.targets[name].get("outdated") else []
        yield f"{name}: {', '.join([*told, *map(str, _copies(name, lock.study, folder, root))])}"
    yield f"{folder}: {len(there)} of {len(lock.targets)} locked artifacts are in {store.root}."
    yield "These results are those of the locked code and data; the present code has computed none of them."


def _copies(name: str, study: str, folder: Path, root: Path) -> Iterator[Path]:
    """Copy the files of a table or figure as the workflow does; the first line of a .tex says that it was restored."""
    kind, table = name.split("/")
    for source in sorted((folder / name).glob(f"{table}.*")):
        target = root / kind / source.name
        target.parent.mkdir(exist_ok=True)
        mark = f"{STUDY_MARK}{study} (restored from a lock)\n".encode() if source.suffix == ".tex" else b""
        target.write_bytes(mark + source.read_bytes())
        yield target
