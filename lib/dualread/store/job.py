"""The job that `dualread.store.run` gets: a store, and the entries to make. That module documents the format."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError
from dualread.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One artifact to make.

    Attributes:
        spec: The settings of its stage.
        inputs: What it is made from, by name; those that all entries of the job share are included.
        output: Its directory.
        parts: Whether an artifact that was made from more inputs holds for these, too.
    """

    spec: Mapping[str, Any]
    inputs: Mapping[str, Path]
    output: Path
    parts: bool = False

    @classmethod
    def of(cls, entry: Mapping[str, Any], shared: Mapping[str, str]) -> "Entry":
        """Return the entry of a job's JSON, or of its description in the rules."""
        inputs = {name: _path(path) for name, path in {**shared, **entry.get("inputs", {})}.items()}
        return cls(spec=entry["spec"], inputs=inputs, output=Path(entry["output"]), parts=entry.get("parts", False))


_path = cache(Path)  # many entries share an input


def job_text(job: str) -> str:
    """Return the JSON text of a job; `job` is a file, `-` for standard input, or the text itself.

    Raises:
        ConfigError: The file cannot be read.
    """
    if job == "-":
        return sys.stdin.read()
    if job.lstrip().startswith(("{", "[")):
        return job
    try:
        return Path(job).read_text()
    except (OSError, ValueError) as error:
        raise ConfigError(f"JOB: {job}: cannot be read ({error}). Expected a JSON file, -, or JSON.") from error


def parse_job(text: str) -> tuple[Store, list[Entry]]:
    """Return the store and the entries of a job.

    Raises:
        ConfigError: The text is not JSON or not of the documented form.
    """
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
        found = ", ".join(sorted(value)) if isinstance(value, dict) else repr(value)
        wanted = ", ".join(sorted(required)) + "".join(f", [{name}]" for name in sorted(optional))
        raise ConfigError(f"{where}: has {found}; expected {wanted}. See python -m dualread.store.run --help.")
