"""Why artifacts would be made again: how each differs from what the job would make that Snakemake planned last.

Every plan leaves a job file per job (`dualread.study.jobs`), that of a dry run apart from those of runs. So the spec is
that of the last run, or of the last plan of both; code, packages and raw inputs are those that are there now.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError, ConfigError
from dualread.store.code import SOURCES_NAME, library, stage_roots
from dualread.store.differences import changed
from dualread.store.graph import walk
from dualread.store.job import Entry, parse_job
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.place import DRY_RUN
from dualread.store.store import Store
from dualread.study.stale import Plan

_WEEK = 7 * 24 * 3600.0
_JOBS = "jobs/*/*.json"
_SHOWN = 3  # artifacts that are named of those with the same reasons


def reasons(manifest: Manifest, store: Store, *, dry_runs: bool = False, missing: bool = True) -> Iterator[str]:
    """Yield why an artifact below results/ would be made again, and everything that it is made from.

    Each artifact that would be, itself and not for its inputs alone, has a line, and below it one line per change.
    Artifacts with the same changes share these lines: an edit of a module that all stages read has one reason. With
    `dry_runs`, what a dry run planned counts where it is later than the last run. With `missing`, an artifact that is
    not there has a line; where it would be another one than was read, what was made from it has a line in any case.
    """
    if manifest.place is None:
        raise ArtifactError(
            f"{manifest.key[:8]}: an entry of the store is never made again. Give its folder below results/."
        )
    if not Path(manifest.place, MANIFEST_NAME).is_file():
        raise ArtifactError(f"{manifest.place}: is not below this folder. Run the command where Snakemake ran.")
    results = Path(*Path(manifest.place).parts[:2])
    plan = Plan(planned(results, dry_runs=dry_runs), store)
    if manifest.place not in plan.jobs:
        raise ArtifactError(
            f"{manifest.place}: no plan of {results} makes it. Run `snakemake -n` with its study first."
        )
    outputs_by_change: dict[tuple[str, ...], list[str]] = {}
    for output in walk([manifest.place], lambda output: _inputs(output, plan)):
        if not missing and not Path(output, MANIFEST_NAME).is_file():
            continue
        if lines := tuple(changes(output, plan, store)):
            outputs_by_change.setdefault(lines, []).append(f"{plan.jobs[output][0]} {output}")
    for lines, artifacts in outputs_by_change.items():
        named = ", ".join(artifacts[:_SHOWN])
        yield f"{named}:" if len(artifacts) <= _SHOWN else f"{len(artifacts):,} artifacts, such as {named}:"
        yield from (f"  {line}" for line in lines)


def planned(results: Path, *, dry_runs: bool = False) -> Mapping[str, tuple[str, Entry]]:
    """Return stage and entry of the job that makes an artifact, by its directory; of several the job planned last."""
    return {output: (file.parent.name, entry) for output, (file, entry) in _last(results, dry_runs=dry_runs).items()}


def forget_old_plans(results: Path) -> None:
    """Remove the files of jobs that were planned more than a week ago and of which later runs make all artifacts.

    Until then a cluster may still start such a job. Those of dry runs are never started.
    """
    needed = {file for file, _ in _last(results, dry_runs=False).values()}
    for file in (*results.glob(_JOBS), *results.glob(f"{DRY_RUN}/{_JOBS}")):
        if file not in needed and time.time() - file.stat().st_mtime > _WEEK:
            file.unlink(missing_ok=True)
            file.with_suffix(".planned").unlink(missing_ok=True)


def _last(results: Path, *, dry_runs: bool) -> dict[str, tuple[Path, Entry]]:
    """Return, by output, the job file that was planned last and its entry."""
    files = [*results.glob(_JOBS), *(results.glob(f"{DRY_RUN}/{_JOBS}") if dry_runs else ())]
    files.sort(key=lambda file: file.stat().st_mtime_ns)
    last = {}
    for file in files:
        with contextlib.suppress(ConfigError):  # where a kill left half of it
            last |= {str(entry.output): (file, entry) for entry in parse_job(file.read_text())[1]}
    return last


def outdated(results: Path, store: Store) -> set[str]:
    """Return the artifacts of a study that are stale or made from stale ones, by directory.

    They are of an earlier configuration than the others.
    """
    plan = Plan(planned(results), store)
    readers: dict[str, list[str]] = {}
    for output in plan.jobs:
        for read in _inputs(output, plan):
            readers.setdefault(read, []).append(output)
    stale = []
    for output in plan.jobs:
        try:
            stale += [output] if plan.is_stale(output) else []
        except ConfigError:
            stale.append(output)  # of a plugin that is no more
    return {output for output in walk(stale, lambda output: readers.get(output, ())) if plan.made(output) is not None}


def _inputs(output: str, plan: Plan) -> list[str]:
    """Return the artifacts of the plan that an artifact is made from, by directory."""
    paths = (path for path in plan.jobs[output][1].inputs.values() if path.name == MANIFEST_NAME)
    return [directory for path in paths if (directory := str(path.parent)) in plan.jobs]


def changes(output: str, plan: Plan, store: Store) -> Iterator[str]:
    """Yield what differs between the artifact that is there and the one that its job would make."""
    (stage, entry), path = plan.jobs[output], Path(output, MANIFEST_NAME)
    if not path.is_file():
        yield "is not there; it is made again if a job has to read it, or if its MANIFEST.json is given as a target"
        return
    made = read_manifest(path)
    try:
        now = plan.action(output, made)
    except ConfigError as error:
        yield f"cannot be made again: {error}"
        return
    if plan.holds(now, made, entry):
        return
    if made.action.stage != stage:
        yield f"stage: {made.action.stage} -> {stage}"
    index, roots = library(store.root / SOURCES_NAME), stage_roots(stage, entry.spec)
    for line in changed(made.action, now, store.record(made.key).get("modules", {}), index.table(roots)):
        file = line.removeprefix("code file:").partition(": ")[0] if line.startswith("code file:") else ""
        way = index.way_to(roots, file) if file else []  # none where the spec names the file
        yield f"{line}, by {' -> '.join(way)}" if way else line
    for name in sorted(now.inputs.keys() | made.action.inputs.keys()):
        if now.inputs.get(name) != made.action.inputs.get(name):
            known = "" if now.inputs.get(name, "-") else " is not there, and would not be the one that was read"
            pictures = _changed_pictures(Path(output), entry.inputs[name], plan) if name in now.inputs else ""
            yield f"input {name}: {entry.inputs.get(name, 'no longer read')}{known}{pictures}"


def _changed_pictures(output: Path, source: Path, plan: Plan) -> str:
    """Return which pictures of a manifest are no longer among the files of its source.

    The text is empty if all of them are, and if none is: then the images are in tables, and cannot be told apart here.
    """
    if not (table := output / "manifest.parquet").is_file():
        return ""
    import polars as pl

    folder = source.parent if source.name == MANIFEST_NAME else source
    digests = {plan.stat_cache.sha256(file) for file in folder.rglob("*") if file.is_file()}
    shown = pl.read_parquet(table, columns=["image_id", "image_files"]).unique().sort("image_id").rows()
    gone = [name for name, files in shown if not {Path(file).stem for file in files} <= digests]
    listed = f"{', '.join(gone[:_SHOWN])}{', ...' if len(gone) > _SHOWN else ''}"
    return f"; {len(gone)} of {len(shown)} pictures are others now: {listed}" if 0 < len(gone) < len(shown) else ""
