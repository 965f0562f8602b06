"""Make the entries of a job: look each up in the store by its key, or have its stage compute it.

The order of `Runner.run` is that of this file: the digests of the inputs, the key (next: `dualread.store.key`), the
lookup, and, if the store has no such entry, the computation. What the key says is looked at again when the stage
has ended, so that no result is stored under the key of another.
"""

import contextlib
import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from dualread import source_snapshot as source_snapshot
from dualread.digests import MANIFEST_NAME, canonical_json
from dualread.errors import ArtifactError
from dualread.machine import return_freed_memory
from dualread.progress import say, work_on
from dualread.store import batches, partial
from dualread.store.belongs import RunIdentity, check_identities
from dualread.store.code import SOURCES_NAME, job_digests, library, stage_roots
from dualread.store.digest import StatCache, raw_digest
from dualread.store.disk import is_no_space, no_space
from dualread.store.job import Entry, shown
from dualread.store.key import Action, replaced
from dualread.store.manifest import Manifest, artifact_directory, read_manifest
from dualread.store.record import measured
from dualread.store.results import link
from dualread.store.store import Store

_QUICK_BYTES = 2**24
_LONG_SECONDS = 1  # after less there is not much to give back, and it takes some milliseconds
Compute = Callable[[Any, Mapping[str, Path], Path], str]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input of an entry: a finished artifact, which has a key, or raw data."""

    # Its manifest is not kept: that of a hundred thousand images would take a hundred megabytes beside the computation.

    path: Path
    digest: str
    key: str | None
    identity: RunIdentity | None = None


class Runner:
    """Looks up, or computes, the entries of one stage in one process; messages name outputs from `below` on."""

    def __init__(self, stage: str, store: Store, *, below: Path | None = None) -> None:
        self._stage, self._store, self._below = stage, store, below
        self._index = library(store.root / SOURCES_NAME)
        self._stat_cache = StatCache(store.root / "stat-cache.json")
        self._verified: set[tuple[Path, str]] = set()

    def check_plan(self, entries: list[Entry], code: str, packages: str) -> None:
        """Stop before anything is made if code or packages were replaced since the plan: tables would mix both."""
        digests = job_digests(self._stage, [entry.spec for entry in entries], self._store.root / SOURCES_NAME)
        names = ("code or the settings", "packages")
        for name, now, planned in zip(names, digests, (code, packages), strict=True):
            if planned not in ("-", now):
                raise ArtifactError(
                    f"the {name} of {self._stage} changed after this run was planned, so nothing was computed."
                    " Run the same command again: it plans with what is there now."
                )

    def run(self, entries: list[Entry]) -> None:
        """Produce the outputs of all entries, in order; print one line per entry."""
        self._store.remove_stale()
        for entry in entries:
            inputs = {name: self._resolve(name, path) for name, path in entry.inputs.items()}
            self._stat_cache.save()
            canonical_json(entry.spec)  # rejects a spec that JSON cannot express before anything is derived from it
            roots = stage_roots(self._stage, entry.spec)
            action = Action(
                stage=self._stage,
                code=self._index.digest(roots),
                spec=entry.spec,
                inputs={name: item.digest for name, item in inputs.items()},
                packages=self._index.packages(roots),
            )
            output = entry.output if self._below is None else entry.output.relative_to(self._below)
            where = f"[{self._stage}] {output}:"
            work_on(where.removesuffix(":"))
            identities = {name: item.identity for name, item in inputs.items()}
            check_identities(RunIdentity.from_spec(entry.spec), identities, str(entry.output))
            if manifest := self._find(action.key):
                line = f"{where} hit {action.key[:8]}"
            else:
                started = time.monotonic()
                manifest, summary = self._compute(entry, inputs, action, self._index.table(roots))
                seconds = time.monotonic() - started
                line = f"{where} computed in {seconds:.1f} s, {action.key[:8]}: {summary}"
                if seconds > _LONG_SECONDS:
                    return_freed_memory()
            with shown(entry.output, action):
                link(self._store.entry(action.key), manifest, entry.output)
            say(line)

    def _resolve(self, name: str, path: Path) -> Input:
        if directory := artifact_directory(path):
            manifest = read_manifest(directory / MANIFEST_NAME)
            identity = RunIdentity.from_spec(manifest.action.spec)
            return Input(path=directory, digest=manifest.digest, key=manifest.key, identity=identity)
        try:
            return Input(path=path, digest=raw_digest(path, self._stat_cache), key=None)
        except ArtifactError as error:
            raise ArtifactError(f"input {name}: {error}") from error

    def _find(self, key: str) -> Manifest | None:
        """Look up an entry; verify its bytes if it is small, or if a file was modified after the entry was finished."""
        # Small entries such as tables are read by people, and no later stage verifies them. A large entry is verified
        # by the stage that computes from it.
        if (manifest := self._store.lookup(key)) is None:
            return None
        entry, is_settled = self._store.entry(key), False
        if sum(file["size"] for file in manifest.files.values()) > _QUICK_BYTES:
            with contextlib.suppress(FileNotFoundError):  # another process is moving the entry away
                written = (entry / MANIFEST_NAME).stat().st_mtime_ns
                is_settled = all((entry / name).stat().st_mtime_ns <= written for name in manifest.files)
        if not is_settled and (problems := list(manifest.wrong_bytes(entry))):
            self._store.quarantine(key, problems)
            return None
        return manifest

    def _compute(
        self, entry: Entry, inputs: Mapping[str, Input], action: Action, modules: Mapping[str, str]
    ) -> tuple[Manifest, str]:
        def confirm() -> None:
            if changed := replaced(action.packages):
                raise ArtifactError(
                    f"{', '.join(changed)}: replaced while {self._stage} ran, so its result cannot be stored under any"
                    " key. Run the same command again."
                )
            for name, item in inputs.items():  # a later run may make one again while this job outlives its own
                self._confirm(name, item)

        for name, item in inputs.items():
            self._verify(name, item)
        compute: Compute = importlib.import_module(f"dualread.stages.{self._stage}").compute
        spec = spec_of(compute, entry.spec, self._stage)
        with (
            self._store.scratch(action.key) as out,
            self._store.scratch("sources") as sources,
            contextlib.ExitStack() as snapshot,
            partial.offered(self._store, action),
            batches.offered(self._store, action, confirm) as offered,
        ):
            started = time.monotonic()
            try:
                snapshot.enter_context(source_snapshot.handed_on(sources))
                summary = compute(spec, {name: item.path for name, item in inputs.items()}, out)
            except Exception as error:
                if is_no_space(error, self._store.root):
                    raise ArtifactError(no_space(self._store.root)) from error
                raise
            confirm()
            record = {
                **measured(time.monotonic() - started),
                "summary": summary,
                "output": str(entry.output),
                "input_paths": {name: str(item.path) for name, item in inputs.items()},
                "modules": modules,
            } | ({batches.RECORDED: offered.names} if offered.names else {})
            keys = {name: item.key for name, item in inputs.items() if item.key}
            return self._store.publish(out, action, input_keys=keys, record=record), f"{summary}{offered.summary()}"

    def _verify(self, name: str, item: Input) -> None:
        if item.key is None or (item.path, item.digest) in self._verified:
            return
        manifest = self._confirm(name, item)
        assert manifest is not None
        if problems := list(manifest.wrong_bytes(item.path)):
            entry = self._store.entry(item.key)
            # The output is linked to the entry, and a lookup checks only sizes: the damaged entry would be a hit again.
            if entry.is_dir() and (damage := list(manifest.wrong_bytes(entry))):
                self._store.quarantine(item.key, damage)
            # Without its manifest, the same command recomputes the input.
            with contextlib.suppress(OSError):
                (item.path / MANIFEST_NAME).unlink()
            raise ArtifactError(
                f"input {name}: {'; '.join(problems[:3])}. The file was changed or damaged after it was written."
                f" Run the same command again: {manifest.action.stage} will recompute it."
            )
        self._verified.add((item.path, item.digest))

    def _confirm(self, name: str, item: Input) -> Manifest | None:
        """Check that an input has not become another; return its manifest if it is an artifact."""
        path = item.path / MANIFEST_NAME
        manifest = read_manifest(path) if item.key is not None and path.is_file() else None
        digest = manifest.digest if manifest else raw_digest(item.path, self._stat_cache) if item.key is None else None
        if digest != item.digest:
            raise ArtifactError(f"input {name}: {item.path} changed while it was read. Run the same command again.")
        return manifest


def spec_of(compute: Callable, spec: Mapping[str, Any], stage: str) -> Any:
    """Return `spec` as the declaration that the annotation of `compute` asks for; as it is where that is none."""
    kind: Any = get_type_hints(compute).get("spec")
    return kind.from_spec(spec, f"{stage}.spec") if hasattr(kind, "from_spec") else spec
