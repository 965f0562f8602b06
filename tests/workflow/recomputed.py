"""The jobs of a finished study, computed once more in this process: to trace what runs, or with an edited library."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from dualread.store import partial
from dualread.store.code import CodeIndex, stage_roots
from dualread.store.digest import MANIFEST_NAME
from dualread.store.job import Entry, parse_job
from dualread.store.manifest import file_table, read_manifest
from dualread.store.runner import spec_of
from dualread.store.store import Store


@dataclass(frozen=True)
class Job:
    """One artifact of a study, with what made it."""

    stage: str
    entry: Entry

    @property
    def roots(self) -> tuple[str, ...]:
        return stage_roots(self.stage, self.entry.spec)

    def is_keyed_as_before(self, index: CodeIndex) -> bool:
        """Return whether code as it is in `index` has the digest that is in the key of the artifact."""
        return index.digest(self.roots) == read_manifest(self.entry.output / MANIFEST_NAME).action.code

    def compute(self, out: Path) -> dict:
        """Compute the artifact from the inputs of the one that is there, into a new folder; return its files table."""
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        compute = import_module(f"dualread.stages.{self.stage}").compute
        inputs = {name: _folder(path) for name, path in self.entry.inputs.items()}
        store = Store(out.parent / "store")
        with partial.offered(store, "0" * 64):
            compute(spec_of(compute, self.entry.spec, self.stage), inputs, out)
        return file_table(out)

    def files(self) -> dict:
        """Return the files table of the artifact that is there."""
        return dict(read_manifest(self.entry.output / MANIFEST_NAME).files)


def _folder(path: Path) -> Path:
    return path.parent if path.name == MANIFEST_NAME else path


def jobs(study: str) -> list[Job]:
    """Return the jobs of the study in results/<study> below this process's folder."""
    found = []
    for file in sorted(Path("results", study, "jobs").glob("*/*.json")):
        found += [Job(file.parent.name, entry) for entry in parse_job(file.read_text())[1]]
    return [job for job in found if (job.entry.output / MANIFEST_NAME).is_file()]


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in `folder` as the jobs of its study do."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
