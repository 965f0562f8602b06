"""The jobs of a rule: what each reads, why it would run again, and its command.

Snakemake runs a job if an output is missing, an input is newer, or a parameter is not what it was when the output was
made. So one parameter stands for each thing that a result depends on besides its input artifacts:

- `job`: the job file, which holds specs and paths and is named after the digest of its text.
- `planned`: the digests of the code and of the packages that the stage runs with (next: `dualread.store.code`).
- `raw`: the digests of inputs that are no artifacts, such as official files.
- `failed`: when the job failed last (`dualread.study.failures`).

The job itself is one call of the program `dualread.store.run`. Next: `dualread.store.runner`, which looks each artifact
up in the store by its key. A job that runs again for nothing, because its inputs have the old bytes, ends there.
"""

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dualread.errors import ArtifactError
from dualread.store.code import SOURCES_NAME, job_digests
from dualread.store.digest import MANIFEST_NAME, StatCache, raw_digest
from dualread.store.files import replace_text
from dualread.study.workflow import as_planned

_MANIFEST = f"/{MANIFEST_NAME}"
# Inputs that all entries share, by name; and the entries, each with "spec", "inputs" and "output".
Description = tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """The jobs of one rule; functions of a job's wildcards.

    Attributes:
        workflow: The object of the running Snakefile.
        stage: The stage of the rule.
        describe: Returns a job's description for its wildcards.
        environment: The stamp of the environment of the jobs; None for Snakemake's own.
        store: The folder of the store.
        results: The folder of the study's artifacts.
        failed: When the run failed that did not make an output, by output.
    """

    workflow: Any
    stage: str
    describe: Callable[[Any], Description]
    environment: str | None
    store: str
    results: str
    failed: Mapping[str, float]

    def inputs(self, wildcards: Any) -> list[str]:
        """Return the artifacts that a job reads and does not make itself."""
        inputs, entries = self.describe(wildcards)
        made = {_made(entry) for entry in entries}
        paths = [*inputs.values(), *(path for entry in entries for path in entry["inputs"].values())]
        return list(dict.fromkeys(path for path in paths if path.endswith(_MANIFEST) and path not in made))

    @property
    def params(self) -> dict[str, Callable[[Any], Any]]:
        """The rule's parameters, by name."""
        return {"job": self._job, "planned": self._planned, "raw": self._raw, "failed": self._failed}

    def command(self, library: Path, *, on_gpus: bool) -> str:
        """Return the command of the rule. Its messages go to the terminal and to the log.

        Args:
            library: The folder of this checkout's library, which other environments find there.
            on_gpus: Whether a job takes the GPUs that its resources ask for.
        """
        program = f"{shlex.quote(sys.executable)} -m dualread.store.forked"
        if self.environment:
            python = f"PYTHONPATH={shlex.quote(str(library))} {os.path.dirname(self.environment)}/bin/python"
            program = f"{python} -m dualread.store.run"
        gpus = " --gpus {resources.gpu}" if on_gpus else ""
        return f"{program} {self.stage} {{params.job}} --planned {{params.planned}} --log {{log:q}}{gpus}"

    def _job(self, wildcards: Any) -> str:
        """Write the job file, unless it is there and whole, and give it the time of this plan; return its path.

        The command names the file: jobs outgrow what a command line may hold, and an error message prints the command.
        """
        inputs, entries = self.describe(wildcards)
        text = json.dumps({"store": self.store, "inputs": inputs, "entries": entries}, indent=1, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = Path(self.results, "jobs", self.stage, f"{digest[:16]}.json")
        if not path.is_file() or path.read_bytes() != text.encode():
            replace_text(path, text)
        os.utime(path)  # `dualread.study.again` reads the job that was planned last
        return str(path)

    def _planned(self, wildcards: Any) -> list[str]:
        specs = [entry["spec"] for entry in self.describe(wildcards)[1]]
        file, sources = Path(self._job(wildcards)).with_suffix(".planned"), Path(self.store, SOURCES_NAME)
        code, packages = as_planned(self.workflow, file, lambda: job_digests(self.stage, specs, sources))
        return [code, "-" if self.environment else packages]

    def _raw(self, wildcards: Any) -> list[str]:
        paths = [path for entry in self.describe(wildcards)[1] for path in entry["inputs"].values()]
        return [_raw_digest(path, self.store) for path in paths if not path.endswith(_MANIFEST)]

    def _failed(self, wildcards: Any) -> list[float | None]:
        return [self.failed.get(_made(entry)) for entry in self.describe(wildcards)[1]]


def once(describe: Callable[[Any], Description]) -> Callable[[Any], Description]:
    """Return `describe`, called once per job: Snakemake asks for its inputs and for each of its parameters."""
    known: dict[tuple, Description] = {}

    def described(wildcards: Any) -> Description:
        key = tuple(sorted(wildcards.items()))
        if key not in known:
            known[key] = describe(wildcards)
        return known[key]

    return described


def _made(entry: Mapping[str, Any]) -> str:
    return f"{entry['output']}{_MANIFEST}"


@cache
def _raw_digest(path: str, store: str) -> str:
    stat_cache = StatCache(Path(store, "stat-cache.json"))
    try:
        digest = raw_digest(Path(path), stat_cache)
    except ArtifactError as error:
        return str(error)  # the job will say it in better words than Snakemake
    stat_cache.save()
    return digest
