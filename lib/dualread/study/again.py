"""Why artifacts would be made again: how each differs from what the job would make that Snakemake planned last.

Every plan, also that of `snakemake -n`, leaves a job file per job (`dualread.study.jobs`). So the spec is that of the
last plan; code, packages and raw inputs are those that are there now.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from dualread import plugins
from dualread.errors import ArtifactError
from dualread.store.code import SOURCES_NAME, library, stage_roots
from dualread.store.differences import changed
from dualread.store.digest import MANIFEST_NAME, StatCache, artifact_digest, raw_digest
from dualread.store.job import Entry, parse_job
from dualread.store.key import Action
from dualread.store.manifest import Manifest, artifact_directory, read_manifest
from dualread.store.store import Store
from dualread.study.failures import FAILURES_NAME, read_failures

_SHOWN = 3  # artifacts that are named of those with the same reasons


def reasons(manifest: Manifest, store: Store) -> Iterator[str]:
    """Yield why an artifact below results/ would be made again, and everything that it is made from.

    Each artifact that would be, itself and not for its inputs alone, has a line, and below it one line per change.
    Artifacts with the same changes share these lines: an edit of a module that all stages read has one reason.

    Raises:
        ArtifactError: `manifest` is that of an entry of the store, or no plan of its study makes it.
    """
    planned = _Planned(manifest, store)
    todo = [str(manifest.place)]
    found: dict[tuple[str, ...], list[str]] = {}
    for output in todo:  # grows
        stage, entry = planned.jobs[output]
        if lines := tuple(planned.changes(stage, entry)):
            found.setdefault(lines, []).append(f"{stage} {output}")
        inputs = [str(path.parent) for path in entry.inputs.values() if path.name == MANIFEST_NAME]
        todo += [path for path in dict.fromkeys(inputs) if path in planned.jobs and path not in todo]
    for lines, artifacts in found.items():
        yield f"{_named(artifacts)}:"
        yield from (f"  {line}" for line in lines)


def _named(artifacts: Sequence[str]) -> str:
    if len(artifacts) <= _SHOWN:
        return ", ".join(artifacts)
    return f"{len(artifacts):,} artifacts, such as {', '.join(artifacts[:_SHOWN])}"


class _Planned:
    """The jobs of a study that were planned last."""

    def __init__(self, manifest: Manifest, store: Store) -> None:
        if manifest.place is None:
            raise ArtifactError(
                f"{manifest.key[:8]}: an entry of the store is never made again. Give its folder below results/."
            )
        self._results, self._store = Path(*Path(manifest.place).parts[:2]), store
        self._failed = read_failures(self._results / FAILURES_NAME)
        self._stat_cache = StatCache(store.root / "stat-cache.json")
        if manifest.place not in self.jobs:
            raise ArtifactError(
                f"{manifest.place}: no plan of {self._results} makes it. Run `snakemake -n` with its study first."
            )

    @cached_property
    def jobs(self) -> Mapping[str, tuple[str, Entry]]:
        """Stage and entry of the job that makes an output, by output; of several the one that was planned last."""
        files = sorted(self._results.glob("jobs/*/*.json"), key=lambda file: file.stat().st_mtime_ns)
        found = ((file.parent.name, entry) for file in files for entry in parse_job(file.read_text())[1])
        return {str(entry.output): (stage, entry) for stage, entry in found}

    def changes(self, stage: str, entry: Entry) -> Iterator[str]:
        """Yield what differs between the artifact that is there and the one that the job would make."""
        path = entry.output / MANIFEST_NAME
        failed = self._failed.get(str(path), 0.0)
        if not path.is_file():
            why = ": the last run was to make it, and failed"
            when = "; it is made again if a job has to read it, or if its MANIFEST.json is given as a target"
            yield f"is not there{why if failed else when}"
            return
        made, roots = read_manifest(path), stage_roots(stage, entry.spec)
        index = library(self._store.root / SOURCES_NAME)
        now = Action(
            stage=stage,
            code=index.digest(roots),
            spec=entry.spec,
            inputs=self._inputs(entry, made.action.inputs),
            packages=made.action.packages if _runs_elsewhere(roots) else index.packages(roots),
        )
        if failed > path.stat().st_mtime:
            yield "the last run was to make it, and failed"
        yield from changed(made.action, now, self._store.record(made.key).get("modules", {}), index.table(roots))
        for name in sorted(now.inputs.keys() | made.action.inputs.keys()):
            if now.inputs.get(name) != made.action.inputs.get(name):
                yield f"input {name}: {entry.inputs.get(name, 'no longer read')}"

    def _inputs(self, entry: Entry, known: Mapping[str, str]) -> dict[str, str]:
        """Return the digest of each input; of an artifact that is not there, the digest that is `known`.

        That artifact has lines of its own.
        """
        digests = {}
        for name, path in entry.inputs.items():
            if path.name == MANIFEST_NAME and not path.is_file():
                digests[name] = known.get(name, "")
            elif (directory := artifact_directory(path)) is not None:
                digests[name] = artifact_digest(directory)
            else:
                digests[name] = raw_digest(path, self._stat_cache)
        self._stat_cache.save()
        return digests


def _runs_elsewhere(roots: Sequence[str]) -> bool:
    """Whether one of the modules is a plugin with an environment of its own, whose packages are not known here."""
    families = {f"dualread.{package}": family for family, (package, _) in plugins.FAMILIES.items()}
    named = [(families.get(package), name) for package, _, name in (root.rpartition(".") for root in roots)]
    return any(family and plugins.declared(family, name, "ENVIRONMENT") for family, name in named)
