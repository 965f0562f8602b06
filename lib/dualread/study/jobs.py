"""The jobs of a rule: what each reads, why it would run again, and its command.

Snakemake runs a job if an output is missing, an input is newer, or an artifact would be made from something else now
(`dualread.study.stale`). A job's parameters are parts of its command, and no reason to run it:

- `job`: the job file, which holds specs and paths and is named after the digest of its text.
- `planned`: the digests of the code and of the packages that the stage runs with (next: `dualread.store.code`).

The job itself is one call of the program `dualread.store.run`. Next: `dualread.store.runner`, which looks each artifact
up in the store by its key. A job that runs again for nothing, because its inputs have the old bytes, ends there.
"""

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dualread.digests import MANIFEST_NAME
from dualread.store.code import SOURCES_NAME, job_digests
from dualread.store.digest import content, replace_text
from dualread.store.disk import explained
from dualread.store.forked import ADDRESS
from dualread.store.job import Entry
from dualread.study.workflow import as_planned, plan_folder

_MANIFEST = f"/{MANIFEST_NAME}"
# Inputs that all entries share, by name; and the entries, each with "spec", "inputs" and "output".
Description = tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class RuleJobs:
    """The jobs of one rule; functions of a job's wildcards."""

    workflow: Any  # the object of the running Snakefile
    stage: str  # the stage of the rule
    describe: Callable[[Any], Description]  # returns a job's description for its wildcards
    environment: str | None  # the stamp of the environment of the jobs; None for Snakemake's own
    store: str  # the folder of the store
    results: str  # the folder of the study's artifacts
    files: dict[tuple, Path] = field(default_factory=dict)  # the job files that this plan has written, by wildcards
    known: dict[tuple, Description] = field(default_factory=dict)  # the descriptions that were made, by wildcards

    def described(self, wildcards: Any) -> Description:
        """Return a job's description, which is made once: Snakemake asks for its inputs and for each parameter."""
        job = tuple(sorted(wildcards.items()))
        if job not in self.known:
            self.known[job] = self.describe(wildcards)
        return self.known[job]

    def inputs(self, wildcards: Any) -> list[str]:
        """Return the artifacts that a job reads and does not make itself."""
        inputs, entries = self.described(wildcards)
        made = {f"{entry['output']}{_MANIFEST}" for entry in entries}
        paths = [*inputs.values(), *(path for entry in entries for path in entry["inputs"].values())]
        return list(dict.fromkeys(path for path in paths if path.endswith(_MANIFEST) and path not in made))

    @property
    def params(self) -> dict[str, Callable[[Any], Any]]:
        """The rule's parameters, by name."""
        return {"job": self.file, "planned": self._planned}

    def entries(self, wildcards: Any) -> list[Entry]:
        """Return the artifacts that a job makes."""
        inputs, entries = self.described(wildcards)
        return [Entry.of(entry, inputs) for entry in entries]

    def command(self, library: Path, *, on_gpus: bool) -> str:
        """Return the command of the rule; its messages go to the terminal and to the log.

        Other environments find this checkout's `library` there.
        """
        python = shlex.quote(sys.executable)
        if self.environment:
            place = f"PYTHONPATH={shlex.quote(str(library))} {ADDRESS}="  # no server has its packages
            python = f"{place} {os.path.dirname(self.environment)}/bin/python"
        gpus = " --gpus {resources.gpu}" if on_gpus else ""
        job = f"{self.stage} {{params.job}} --planned {{params.planned}} --log {{log:q}}{gpus}"
        return f"{python} -m dualread.store.run {job}"

    def file(self, wildcards: Any) -> str:
        """Write the job file, unless it is there and whole, and give it the time of this plan; return its path.

        The command names the file: jobs outgrow what a command line may hold, and an error message prints the command.
        """
        job = tuple(sorted(wildcards.items()))
        if job in self.files and self.files[job].is_file():
            return str(self.files[job])
        inputs, entries = self.described(wildcards)
        # One line per entry: with an indent, json is ten times as slow.
        head = json.dumps({"store": self.store, "inputs": inputs}, sort_keys=True)
        lines = ",\n".join(json.dumps(entry, sort_keys=True) for entry in entries)
        text = f'{head[:-1]}, "entries": [\n{lines}\n]}}\n'
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = Path(plan_folder(self.workflow, self.results), "jobs", self.stage, f"{digest[:16]}.json")
        try:
            if content(path) != text.encode():
                replace_text(path, text)
            os.utime(path)  # `dualread.study.again` reads the job that was planned last
        except OSError as error:
            sys.exit(f"\n{explained(error, Path(self.results))}")
        self.files[job] = path
        return str(path)

    def _planned(self, wildcards: Any) -> list[str]:
        specs = [entry["spec"] for entry in self.described(wildcards)[1]]
        file, sources = Path(self.file(wildcards)).with_suffix(".planned"), Path(self.store, SOURCES_NAME)
        code, packages = as_planned(self.workflow, file, lambda: job_digests(self.stage, specs, sources))
        return [code, "-" if self.environment else packages]
