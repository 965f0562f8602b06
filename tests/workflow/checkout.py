"""A copy of the repository that tests may edit and run Snakemake in, and that reports what was computed."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from tests.workflow.preloaded import run_snakemake

ROOT = Path(__file__).resolve().parents[2]

# The runner's line for every entry: "[stage] path: hit key" or "[stage] path: computed in ...". It may follow text of
# Snakemake on the same line, because Snakemake writes a line and its end separately.
_ENTRY = re.compile(r"\[(\w+)\] results/[^/]+/(\S+): (hit|computed) ")
# The steps of a plan, in columns (study/display.py).
_STEPS = re.compile(r"^Steps, \d+ in all:\n((?:  .+\n)+)", re.MULTILINE)
_COUNT = re.compile(r"(\w+) (\d+)")
# The line of a job that Snakemake prints with --quiet=host.
_WILDCARDS = re.compile(r"^ +wildcards: backbone=(\S+), actor=(\S+), seed=(\d+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of Snakemake."""

    returncode: int
    text: str

    def entries(self, outcome: str) -> set[tuple[str, str]]:
        """Return (stage, path) of the entries that were "computed" or "hit"."""
        return {(stage, path) for stage, path, said in _ENTRY.findall(self.text) if said == outcome}

    def computed(self) -> set[str]:
        """Return the stages that computed something."""
        return {stage for stage, _ in self.entries("computed")}

    def jobs(self) -> dict[str, int]:
        """Return {rule: number of jobs} of a dry run, without the target rules."""
        counts = {rule: int(n) for steps in _STEPS.findall(self.text) for rule, n in _COUNT.findall(steps)}
        return {rule: n for rule, n in counts.items() if rule != "all"}

    def actors(self) -> set[tuple[str, str, int]]:
        """Return (backbone, actor, seed) of all actors in the jobs of a dry run with --quiet=host."""
        return {(backbone, actor, int(seed)) for backbone, actor, seed in _WILDCARDS.findall(self.text)}

    def did_nothing(self) -> bool:
        """Return whether Snakemake found everything up to date."""
        return self.returncode == 0 and "Nothing to be done" in self.text


def repository_files(root: Path) -> list[str]:
    """Return the names of the files that git tracks, and of new ones that are in a folder with such files.

    What is new beside all of them was made by a user: README.md writes a study and a folder of results there.
    """
    tracked, new = (
        subprocess.run(["git", "ls-files", "-z", *which], cwd=root, capture_output=True, check=True).stdout.decode()
        for which in (["--cached"], ["--others", "--exclude-standard"])
    )
    names = [*filter(None, tracked.split("\0"))]
    folders = {name.partition("/")[0] for name in names if "/" in name}
    return [*names, *(name for name in new.split("\0") if name.partition("/")[0] in folders and "/" in name)]


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A copy of the working tree's files, with its own results."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> "Checkout":
        """Copy the files of the repository, but no generated files."""
        names = repository_files(ROOT)
        modules = [name for name in names if name.startswith("lib/") and name.endswith(".py")]
        # The byte code too: otherwise each copy compiles the library again.
        for name in (*names, *map(cache_from_source, modules)):
            source, target = ROOT / name, folder / name
            if source.is_symlink() or source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        (folder / "results/store").mkdir(parents=True, exist_ok=True)  # a copy of a copy knows it
        shutil.copy(_parsed_modules(), folder / "results/store")
        return cls(folder=folder)

    def snakemake(
        self,
        *arguments: str,
        study: str | None = "workflow/studies/smoke.yaml",
        cores: int = 2,
        environment: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> Run:
        """Run Snakemake with this copy's library on targets and options.

        Files of `study` are laid over config.yaml, variables of `environment` over those of this process; `within` is
        a command that runs the command after it.
        """
        options = ["--configfile", *study.split()] if study else []
        options += [a for a in arguments if a.startswith("-")]
        targets = [a for a in arguments if not a.startswith("-")]
        words = ["--cores", str(cores), *options, "--", *targets]
        variables = {**os.environ, "PYTHONPATH": str(self.folder / "lib"), "HF_HUB_OFFLINE": "1", **(environment or {})}
        if environment is None and not within:
            return self.forked(words, variables)
        done = subprocess.run(
            [*within, sys.executable, "-m", "snakemake", *words],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=environment is not None,  # then a fault may kill it with all its jobs
        )
        return Run(returncode=done.returncode, text=done.stdout + done.stderr)

    def forked(self, words: list[str], variables: Mapping[str, str]) -> Run:
        """Do what `python -m snakemake` does, without importing its packages and those of jobs again."""
        with tempfile.TemporaryDirectory() as folder:
            streams = [Path(folder, name) for name in ("stdout", "stderr")]
            returncode = run_snakemake(words, self.folder, variables, streams)
            return Run(returncode=returncode, text="".join(stream.read_text() for stream in streams))

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace the one occurrence of `old` in a file."""
        path = self.folder / name
        text = path.read_text()
        assert text.count(old) == 1, f"{name}: {old!r} occurs {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def append(self, name: str, text: str) -> None:
        """Add lines to the end of a file."""
        with (self.folder / name).open("a") as file:
            file.write(text)


@functools.cache
def _parsed_modules() -> Path:
    """Return the file in which a store keeps the parsed library, by digest; to parse it takes longer than a dry run."""
    from dualread.store.code import SOURCES_NAME, CodeIndex  # not in a child of `_SNAKEMAKE`

    root, kept = ROOT / "lib/dualread", ROOT / "build/tests" / SOURCES_NAME
    kept.parent.mkdir(parents=True, exist_ok=True)
    names = [path.relative_to(root.parent).with_suffix("").parts for path in root.rglob("*.py")]
    CodeIndex(root, kept).closure(".".join(parts) for parts in names if parts[-1] != "__init__")
    return kept
