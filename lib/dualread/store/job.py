"""The job that `dualread.store.run` gets (that module documents the format), and whether a later run took its place.

Jobs can outlive their run: Snakemake was killed, or lost its connection to a cluster. Settings or code may have been
edited since, so planned.json says what the last run of a study makes in each place, and no other job writes there.
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError, ConfigError
from dualread.store.digest import read_mapping, replace_text
from dualread.store.key import Action
from dualread.store.manifest import read_manifest
from dualread.store.store import Store

PLANNED_NAME = "planned.json"  # in the results folder of a study: {output: recipe}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One artifact to make."""

    spec: Mapping[str, Any]  # the settings of its stage
    inputs: Mapping[str, Path]  # what it is made from, by name; those that all entries of the job share are included
    output: Path  # its directory
    parts: bool = False  # whether an artifact that was made from more inputs holds for these, too

    @classmethod
    def of(cls, entry: Mapping[str, Any], shared: Mapping[str, str]) -> "Entry":
        """Return the entry of a job's JSON, or of its description in the rules."""
        inputs = {name: _path(path) for name, path in {**shared, **entry.get("inputs", {})}.items()}
        return cls(spec=entry["spec"], inputs=inputs, output=Path(entry["output"]), parts=entry.get("parts", False))


_path = cache(Path)  # many entries share an input


def job_text(job: str) -> str:
    """Return the JSON text of a job; `job` is a file, `-` for standard input, or the text itself."""
    if job.lstrip().startswith(("{", "[")):
        return job
    try:
        return sys.stdin.read() if job == "-" else Path(job).read_text()
    except (OSError, ValueError) as error:
        raise ConfigError(f"JOB: {job}: cannot be read ({error}). Expected a JSON file, -, or JSON.") from error


def parse_job(text: str) -> tuple[Store, list[Entry]]:
    """Return the store and the entries of a job."""
    try:
        job = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"JOB: not JSON ({error}). See python -m dualread.store.run --help.") from error
    _check_keys(job, {"store", "entries"}, {"inputs"}, "JOB")
    entries = []
    for number, entry in enumerate(job["entries"]):
        _check_keys(entry, {"spec", "output"}, {"inputs", "parts"}, f"JOB: entries[{number}]")
        entries.append(Entry.of(entry, job.get("inputs", {})))
    return Store(Path(job["store"])), entries


def _check_keys(value: Any, required: set[str], optional: set[str], where: str) -> None:
    if not isinstance(value, dict) or not required <= set(value) <= required | optional:
        keys = ", ".join(sorted(value)) if isinstance(value, dict) else repr(value)
        wanted = ", ".join((*sorted(required), *(f"[{name}]" for name in sorted(optional))))
        raise ConfigError(f"{where}: has {keys}; expected {wanted}. See python -m dualread.store.run --help.")


def write_planned(folder: Path, recipes: Mapping[str, str]) -> float:
    """Note the `recipes` of a run that begins, besides those of other targets; return the file system's time."""
    path = folder / PLANNED_NAME
    replace_text(path, json.dumps({**read_mapping(path), **recipes}).replace(", ", ",\n") + "\n")
    return path.stat().st_mtime


def check_planned(output: Path, action: Action) -> None:
    """Refuse to show a result where a later run makes something else; `output` is results/<study>/..."""
    planned = read_mapping(Path(*output.parts[:2], PLANNED_NAME))
    if planned.get(str(output), action.recipe) != action.recipe:
        raise ArtifactError(
            f"{output}: a later run makes something else here, because settings or code were edited since this job was"
            f" planned. The result is kept in the store ({action.key[:8]}) and is not shown."
        )


@contextlib.contextmanager
def shown(output: Path, action: Action) -> Iterator[None]:
    """Call `check_planned` before and after a block that fills `output`; take it back if a run began meanwhile."""
    check_planned(output, action)
    yield
    try:
        check_planned(output, action)
    except ArtifactError:
        manifest = output / MANIFEST_NAME
        with contextlib.suppress(OSError, ArtifactError):
            if read_manifest(manifest).key == action.key:
                manifest.unlink()
        raise
