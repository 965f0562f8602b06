"""Trace an artifact through the store: what it was made from, and whether all of it is intact."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.store.code import library, stage_roots
from dualread.store.differences import short
from dualread.store.digest import MANIFEST_NAME, artifact_digest, raw_digest
from dualread.store.key import Action
from dualread.store.manifest import RECORD_NAME, Manifest, artifact_directory, beside, read_manifest
from dualread.store.place import STUDY_MARK, marked_study
from dualread.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a TARGET names: an artifact's directory and manifest, and the copied table if the target is one."""

    directory: Path
    manifest: Manifest
    copy: Path | None = None


def find_target(target: str, store: Store) -> Found:
    """Resolve a TARGET of the command line: an artifact, one of its files, a copied table, or the start of a key.

    Raises:
        ArtifactError: The target is none of these, or the manifest is damaged.
    """
    path = Path(target)
    if not path.exists():
        directory = store.entry(find_key(target, store, near=beside(path)))
        return Found(directory=directory, manifest=read_manifest(directory / MANIFEST_NAME))
    directory = artifact_directory(path) or (artifact_directory(path.parent) if path.is_file() else None)
    if directory is not None:
        return Found(directory=directory, manifest=read_manifest(directory / MANIFEST_NAME))
    directory = _table_source(path)
    return Found(directory=directory, manifest=read_manifest(directory / MANIFEST_NAME), copy=path)


def find_key(start: str, store: Store, *, near: Iterable[str] = ()) -> str:
    """Return the one key that begins with `start`.

    Raises:
        ArtifactError: None or several do. The message suggests one of the paths `near` that is spelled similarly.
    """
    keys = list(store.stored_keys(start)) if start else []
    if len(keys) == 1:
        return keys[0]
    found = (
        f"{len(keys)} keys in {store.root} begin with this"
        if keys
        else f"no such file, and no such key in {store.root}"
    )
    expected = "Expected a table, an artifact's directory, or the first digits of one key."
    raise ArtifactError(f"{start}: {found}. {expected}{did_you_mean(start, near)}")


def damages(found: Found, store: Store) -> Iterator[str]:
    """Yield one sentence per damaged or missing file, of the target and of everything that it was made from."""
    if found.copy is not None:
        yield from _copy_damages(found)
    yield from found.manifest.wrong_bytes(found.directory)
    todo, seen = [(found.manifest.key, f"{found.directory}")], {found.manifest.key}
    while todo:
        key, reader = todo.pop()
        directory = store.entry(key)
        if not directory.is_dir():
            yield f"{directory}: not in the store, and {reader} was made from it"
            continue
        try:
            manifest = read_manifest(directory / MANIFEST_NAME)
        except ArtifactError as error:
            yield f"{error} {reader} was made from it."
            continue
        if manifest.key != key:
            yield f"{directory}: holds the entry {manifest.key[:8]} instead of {key[:8]}"
        if not (key == found.manifest.key and _is_linked(found.directory, directory, manifest)):
            yield from manifest.wrong_bytes(directory)
        yield from _changed_inputs(key, manifest, store)
        parents = [parent for parent in manifest.input_keys.values() if parent not in seen]
        seen.update(parents)
        todo.extend((parent, f"{manifest.action.stage} {key[:8]}") for parent in parents)


def tree(found: Found, store: Store) -> Iterator[str]:
    """Yield the lines of the lineage tree: stage, key, code digest, seconds and spec; each artifact appears once."""
    seen: set[str] = set()

    def lines(name: str, key: str, indent: str) -> Iterator[str]:
        label = f"{indent}{name}: " if name else ""
        try:
            manifest = found.manifest if key == found.manifest.key else read_manifest(store.entry(key) / MANIFEST_NAME)
        except ArtifactError:
            yield f"{label}{key[:8]} is not in the store"
            return
        if key in seen:
            yield f"{label}{manifest.action.stage} {key[:8]} (above)"
            return
        seen.add(key)
        yield f"{label}{_one_line(manifest, store.record(key))}"
        for input_name, digest in sorted(manifest.action.inputs.items()):
            if input_name in manifest.input_keys:
                yield from lines(input_name, manifest.input_keys[input_name], indent + "  ")
            else:
                path = store.record(key).get("input_paths", {}).get(input_name, "raw data")
                yield f"{indent}  {input_name}: {path}, sha256 {digest[:8]}"

    yield from lines("", found.manifest.key, "")


def predecessor(found: Found, store: Store) -> str | None:
    """Return the key of the previous artifact that the same stage wrote for the same output; None if there is none."""
    record = store.record(found.manifest.key)
    output = json.dumps(record.get("output")).encode()
    earlier = []
    for key in store.stored_keys():
        # Most records are for other outputs, so parsing them would waste time.
        if key != found.manifest.key and output in _bytes(store.entry(key) / RECORD_NAME):
            other = store.record(key)
            if "output" in other and other["output"] == record.get("output"):
                earlier.append((other["written"], key))
    by_time = [key for written, key in sorted(earlier, reverse=True) if written <= record["written"]]
    return next((key for key in by_time if _stage(store, key) == found.manifest.action.stage), None)


def _one_line(manifest: Manifest, record: Mapping[str, Any]) -> str:
    action = manifest.action
    seconds = f"{record['seconds']:.1f} s" if "seconds" in record else "time not recorded"
    spec = json.dumps(action.spec, ensure_ascii=False, sort_keys=True)
    code = f"code {action.code[:8]}{edited(action, record)}"
    return f"{action.stage} {manifest.key[:8]}  {code}  {seconds}  {short(spec)}"


def edited(action: Action, record: Mapping[str, Any]) -> str:
    """Return a remark on the modules that were edited since they computed the artifact, or "" if none were."""
    try:
        now = library().table(stage_roots(action.stage, action.spec))
    except ConfigError as error:
        return f" (code not found: {error})"
    then = record.get("modules", now)
    names = [name for name in sorted(then.keys() | now.keys()) if then.get(name) != now.get(name)]
    return f" (edited since: {', '.join(names)})" if names else ""


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _stage(store: Store, key: str) -> str | None:
    try:
        return read_manifest(store.entry(key) / MANIFEST_NAME).action.stage
    except ArtifactError:
        return None


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


def _copy_damages(found: Found) -> Iterator[str]:
    assert found.copy is not None
    source = found.directory / found.copy.name
    if not source.is_file():
        yield f"{found.copy}: the original {source} is missing"
        return
    copied, original = found.copy.read_bytes(), source.read_bytes()
    # The line with the study's name may be part of the table or may have been added to the copy.
    if copied != original and copied.partition(b"\n")[2] != original:
        yield f"{found.copy}: differs from the original {source}"


def _is_linked(directory: Path, entry: Path, manifest: Manifest) -> bool:
    return all(
        (entry / name).exists() and (directory / name).exists() and (entry / name).samefile(directory / name)
        for name in manifest.files
    )


def _changed_inputs(key: str, manifest: Manifest, store: Store) -> Iterator[str]:
    """Compare upstream entries, and raw inputs that are still on this machine, with what the stage read."""
    paths = store.record(key).get("input_paths", {})
    for name, digest in manifest.action.inputs.items():
        upstream = store.entry(manifest.input_keys[name]) / MANIFEST_NAME if name in manifest.input_keys else None
        if upstream is not None and upstream.is_file():
            with contextlib.suppress(ArtifactError):  # a damaged entry is reported by itself
                if artifact_digest(upstream.parent) != digest:
                    reader = f"{manifest.action.stage} {key[:8]}"
                    yield f"{upstream.parent}: its files differ from those that {reader} read as {name}"
        elif upstream is None and name in paths:
            path = Path(paths[name])
            if path.exists() and raw_digest(path) != digest:
                yield f"{path}: changed since {manifest.action.stage} {key[:8]} read it as {name}"
