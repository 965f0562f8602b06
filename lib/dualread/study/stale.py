"""Which artifacts are not what would be made now, whatever Snakemake remembers of them.

Snakemake's memory can be wrong: a run was lost before it noted that a job had failed, a record was cleaned away, or
results were touched. So what the MANIFEST.json of each artifact says that it was made from is compared with the plan
before each run. What depends on an artifact that is made again is looked up in the store by its own job.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from dualread.digests import MANIFEST_NAME, artifact_digest
from dualread.errors import ArtifactError
from dualread.plugins import runs_elsewhere
from dualread.store.code import SOURCES_NAME, library, stage_roots
from dualread.store.digest import StatCache, raw_digest
from dualread.store.job import Entry
from dualread.store.key import Action
from dualread.store.manifest import Manifest, artifact_directory, read_manifest
from dualread.store.store import Store

_UNKNOWN = ""  # the digest of an input that has to be made before it can be known


class Plan:
    """What the jobs of a study, stage and entry by the directory of an artifact, would make now.

    Artifacts that have been read already are `made`. No raw file is read twice (`stat_cache`).
    """

    def __init__(
        self, jobs: Mapping[str, tuple[str, Entry]], store: Store, made: Mapping[str, Manifest] | None = None
    ) -> None:
        self.jobs = jobs
        self._store = store
        self._index = library(store.root / SOURCES_NAME)
        self.stat_cache = StatCache(store.root / "stat-cache.json")
        self._made: dict[str, Manifest | None] = {**(made or {})}
        for name in ("shown", "_digest_of_missing", "_raw_digest"):
            setattr(self, name, cache(getattr(self, name)))

    def stale(self) -> list[str]:
        """Return the directories of the artifacts that are there and would be made from something else now."""
        stale = [output for output in self.jobs if self.is_stale(output)]
        self.stat_cache.save()
        return stale

    def made(self, output: str) -> Manifest | None:
        """Return the manifest of an artifact; None if it is not there, or damaged."""
        if output not in self._made:
            self._made[output] = None
            with contextlib.suppress(ArtifactError):
                self._made[output] = read_manifest(Path(output, MANIFEST_NAME))
        return self._made[output]

    def action(self, output: str, earlier: Manifest | None) -> Action:
        """Return what an artifact would be made from now.

        The `earlier` one in its place says which packages another environment had, and what a missing input was.
        """
        stage, entry = self.jobs[output]
        roots = stage_roots(stage, entry.spec)
        packages = dict(earlier.action.packages) if earlier and runs_elsewhere(roots) else self._index.packages(roots)
        return Action(
            stage=stage,
            code=self._index.digest(roots),
            spec=entry.spec,
            inputs={name: self._digest(name, path, earlier) for name, path in entry.inputs.items()},
            packages=packages,
        )

    def recipes(self) -> dict[str, str]:
        """Return the recipe (`Action.recipe`) of each artifact, by directory."""
        recipes = {}
        for output, (stage, entry) in self.jobs.items():
            code = self._index.digest(stage_roots(stage, entry.spec))
            recipes[output] = Action(stage=stage, code=code, spec=entry.spec, inputs={}, packages={}).recipe
        return recipes

    def is_found(self, entry: Entry) -> bool:
        """Return whether nothing has to be computed for an entry of a job."""
        return str(entry.output) in self.jobs and self.shown(str(entry.output)) is not None

    def shown(self, output: str) -> Manifest | None:
        """Return what the run will show in a place; None if it has to be computed, or depends on what has to be."""
        entry, digests = self.jobs[output][1], {}
        for name, path in entry.inputs.items():
            if path.name == MANIFEST_NAME and (read := str(path.parent)) in self.jobs:
                if (manifest := self.shown(read)) is None:
                    return None
                digests[name] = manifest.digest
        made = self.made(output)
        now = self.action(output, made)
        now = replace(now, inputs={**now.inputs, **digests})
        return made if made and self.holds(now, made, entry) else self.stored(now.key)

    def holds(self, now: Action, made: Manifest, entry: Entry) -> bool:
        """Return whether `made` is what `now` would make, or was made from more inputs where that is enough."""
        if entry.parts and now.inputs.items() <= made.action.inputs.items():
            now = replace(now, inputs=made.action.inputs)
        return now.key == made.key

    def is_stale(self, output: str) -> bool:
        """Return whether an artifact is there and would be made from something else now."""
        made = self.made(output)
        return made is not None and not self.holds(self.action(output, made), made, self.jobs[output][1])

    def _digest(self, name: str, path: Path, earlier: Manifest | None) -> str:
        """Return an input's digest; `_UNKNOWN` if it is not there and its job would not make what `earlier` read."""
        output, _, file = str(path).rpartition("/")
        if file != MANIFEST_NAME:
            return self._raw_digest(path)
        if made := self.made(output):
            return made.digest
        key, digest = "", _UNKNOWN
        if earlier:
            key, digest = earlier.input_keys.get(name, ""), earlier.action.inputs.get(name, _UNKNOWN)
        return self._digest_of_missing(output, key, digest)

    def _digest_of_missing(self, output: str, key: str, digest: str) -> str:
        """Return the digest of a missing artifact, if its job would make the entry `key`, or finds its own."""
        # Results that nothing needs for now may be missing: people delete checkpoints to save space.
        if output not in self.jobs:
            return digest  # of another plan
        now = self.action(output, self.stored(key))
        if now.key == key:
            return digest
        stored = self.stored(now.key)
        return stored.digest if stored else _UNKNOWN

    def stored(self, key: str) -> Manifest | None:
        """Return the manifest of an entry of the store; None if it is not there, or damaged."""
        return self._store.find(key) if key else None

    def _raw_digest(self, path: Path) -> str:
        try:
            directory = artifact_directory(path)
            return artifact_digest(directory) if directory else raw_digest(path, self.stat_cache)
        except ArtifactError as error:
            return str(error)  # the job says it
