"""What artifacts were made from, and whether all of it is intact.

A MANIFEST.json names the keys of the inputs, so the entries of a store are a graph without circles. Whatever follows
it uses the one walk of this file: `reachable` for what has to be kept or copied, `Graph` for what a report or
`dualread explain` says, `damages` for `dualread verify`. The artifacts that a study plans (`dualread.study.again`) are
such a graph, too.
"""

import contextlib
import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError
from dualread.store.batches import RECORDED, batch_files, is_damaged
from dualread.store.differences import described, short
from dualread.store.digest import raw_digest
from dualread.store.disk import is_same
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.place import Target, study_folder
from dualread.store.store import Store

_Node = TypeVar("_Node", bound=Hashable)


def walk(starts: Iterable[_Node], inputs: Callable[[_Node], Iterable[_Node]]) -> Iterator[_Node]:
    """Yield `starts` and all that they were made from, each once; `inputs` of a node are asked for with the next."""
    reached = dict.fromkeys(starts)
    for node in (todo := list(reached)):  # grows
        yield node
        new = [origin for origin in dict.fromkeys(inputs(node)) if origin not in reached]
        reached.update(dict.fromkeys(new))
        todo += new


def artifacts_below(
    folder: Path, store: Store, *, unreadable: Callable[[OSError], None] | None = None
) -> Iterator[Path]:
    """Yield the directory of every artifact below `folder`, sorted, without those of a store in it.

    `unreadable` is called with the error if a folder cannot be read; without it, such a folder counts as empty.
    """
    root = store.root.resolve()
    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if name != root.name or Path(parent, name).resolve() != root)
        if MANIFEST_NAME in files:
            yield Path(parent)


def keys_below(folder: Path, store: Store) -> set[str]:
    """Return the keys of all artifacts below `folder`."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise ArtifactError(f"{error.filename}: cannot be read ({error.strerror}). Ask its owner for access.")

    directories = artifacts_below(folder, store, unreadable=refuse)
    return {read_manifest(directory / MANIFEST_NAME).key for directory in directories}


def reachable(keys: Iterable[str], store: Store) -> list[str]:
    """Return `keys` and the keys of all entries that they were made from, directly or indirectly.

    The result includes keys that the store lacks; what those were made from is not known.
    """

    def inputs(key: str) -> Iterable[str]:
        return store.manifest(key).input_keys.values() if (store.entry(key) / MANIFEST_NAME).exists() else ()

    return list(walk(sorted(set(keys)), inputs))


class Graph:
    """The entries of a store, each read once and kept: its manifest, and its record, where there is a readable one."""

    def __init__(self, store: Store) -> None:
        self.store, self.manifest, self.record = store, cache(store.find), cache(store.record)

    def behind(self, keys: Iterable[str]) -> dict[str, Manifest | None]:
        """Return the manifests of `keys` and of all that they were made from, by key; None where there is none."""

        def inputs(key: str) -> Iterable[str]:
            manifest = self.manifest(key)
            return manifest.input_keys.values() if manifest else ()

        return {key: self.manifest(key) for key in walk(keys, inputs)}


class Lineage(Graph):
    """The lines that show artifacts and, indented below each, what it was made from; each is shown once."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.shown: dict[str, Manifest] = {}  # by key

    def line(self, manifest: Manifest) -> str:
        """Return the line of an artifact."""
        spec = json.dumps(manifest.action.spec, ensure_ascii=False, sort_keys=True)
        return f"{described(manifest, self.record(manifest.key))}  {short(spec)}"

    def followed(self, manifest: Manifest) -> Iterable[str]:
        """Return the names of the inputs that are shown, in order."""
        return sorted(manifest.action.inputs)

    def lines(self, key: str, name: str = "", indent: str = "") -> Iterator[str]:
        """Yield the lines of the artifact `key`, labelled `name`, and of everything that it was made from."""
        label = f"{indent}{name}: " if name else indent
        manifest = self.manifest(key)
        if manifest is None:
            yield f"{label}{key[:8]} is not in the store"
            return
        if key in self.shown:
            yield f"{label}{key[:8]}, above"
            return
        self.shown[key] = manifest
        yield f"{label}{self.line(manifest)}"
        above = []
        for below in self.followed(manifest):
            parent = manifest.input_keys.get(below)
            if parent is None:
                path = self.record(key).get("input_paths", {}).get(below, "raw data")
                yield f"{indent}  {below}: {path}, sha256 {manifest.action.inputs[below][:8]}"
            elif parent in self.shown:
                above.append(f"{below} {parent[:8]}")
            else:
                yield from self.lines(parent, below, f"{indent}  ")
        if above:
            yield f"{indent}  above: {', '.join(above)}"


def damages(target: Target, store: Store, locked: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield one sentence per damaged or missing file, of the target and of everything that it was made from.

    Whoever can write into the store can replace an entry's files and its MANIFEST.json consistently. What was made from
    it still has the digest of the files that were there, and so has `locked`: the study's results.lock, by key.
    """
    if target.copy is not None:
        yield from _copy_damages(target)
    yield from target.manifest.wrong_bytes(target.directory)
    # Manifests are not kept: those of a hundred thousand images would take a hundred megabytes each.
    inputs: dict[str, Sequence[str]] = {}
    digests: dict[str, str] = {}
    reads: list[tuple[str, str, str, str]] = []  # reader, name of the input, its key, and its digest then
    readers = {target.manifest.key: f"{target.directory}"}
    study = study_folder(target.copy or target.directory)
    folder = study.parent.parent if study else Path()  # Snakemake ran here
    for key in walk([target.manifest.key], lambda key: inputs.get(key, ())):
        directory = store.entry(key)
        if not directory.is_dir():
            yield f"{directory}: not in the store, and {readers[key]} was made from it"
            continue
        try:
            manifest = store.manifest(key)
        except ArtifactError as error:
            yield f"{error} {readers[key]} was made from it."
            continue
        is_read = key == target.manifest.key
        if not (is_read and all(is_same(directory / name, target.directory / name) for name in manifest.files)):
            yield from manifest.wrong_bytes(directory)
        reader = f"{manifest.action.stage} {key[:8]}"
        current, record = _current(manifest, store, folder)
        for name, digest in current.action.inputs.items():  # raw inputs that are still on this machine
            recorded = record.get("input_paths", {}).get(name)
            if name in current.input_keys or recorded is None or not (path := folder / recorded).exists():
                continue
            if raw_digest(path) != digest:
                yield f"{path}: changed since {reader} read it as {name}"
        if locked and locked.get(key, manifest.digest) != manifest.digest:
            yield f"{directory}: its files are others than the study's results.lock records; somebody replaced them"
        batches = (file for name in store.record(key).get(RECORDED, ()) for file in batch_files(store, name))
        for file in filter(is_damaged, batches):
            yield f"{file}: a batch of {reader} is damaged; remove it, and it is computed again if it is needed"
        digests[key], inputs[key] = manifest.digest, [*manifest.input_keys.values()]
        readers |= {parent: reader for parent in inputs[key] if parent not in readers}
        reads += [(reader, name, parent, manifest.action.inputs[name]) for name, parent in manifest.input_keys.items()]
    for reader, name, key, digest in reads:
        if digests.get(key, digest) != digest:
            yield f"{store.entry(key)}: its files differ from those that {reader} read as {name}"


def _copy_damages(target: Target) -> Iterator[str]:
    assert target.copy is not None
    source = target.directory / target.copy.name
    if not source.is_file():
        yield f"{target.copy}: the original {source} is missing"
        return
    copied, original = target.copy.read_bytes(), source.read_bytes()
    # The line with the study's name may be part of the table or may have been added to the copy.
    if copied != original and copied.partition(b"\n")[2] != original:
        yield f"{target.copy}: differs from the original {source}"


def _current(manifest: Manifest, store: Store, folder: Path) -> tuple[Manifest, Mapping[str, Any]]:
    """Return the manifest and the record of what is in the place of an artifact, where that has the same bytes."""
    # An artifact may be made again, from other raw data, with the old bytes. What was made from the earlier one then
    # holds for the later one, and the raw data that have to be there are those that the later one was made from.
    record = store.record(manifest.key)
    with contextlib.suppress(ArtifactError, KeyError):
        later = read_manifest(folder / record["output"] / MANIFEST_NAME)
        if later.digest == manifest.digest:
            return later, store.record(later.key)
    return manifest, record
