"""Run one stage for a list of entries: `python -m dualread.store.run STAGE JOB`.

JOB is a JSON file, `-` for standard input, or the JSON itself:

    {"store": "results/store", "inputs": {name: path},
     "entries": [{"spec": {...}, "inputs": {name: path}, "output": directory}]}

If the store already holds an entry, it is linked to its output and the stage is not imported. Otherwise the stage's
`compute(spec, inputs, out)` computes it, with the spec as the dataclass that its signature names. Entries run in order;
a later entry may read what an earlier one wrote.
"""

import os

# Set before any import that reads it: jobs whose threads compete for cores ran 10 to 15 times slower than with one
# thread per job.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import contextlib
import errno
import gc
import importlib
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from dualread import devices, read_once
from dualread.errors import ArtifactError, DualReadError
from dualread.progress import keep_log, note, say, work_on
from dualread.store import partial
from dualread.store.code import SOURCES_NAME, job_digests, library, stage_roots
from dualread.store.digest import MANIFEST_NAME, StatCache, canonical_json, raw_digest
from dualread.store.job import Entry, job_text, parse_job
from dualread.store.link import link
from dualread.store.manifest import TEMPORARY, Action, Manifest, artifact_directory, read_manifest
from dualread.store.packages import replaced
from dualread.store.record import measured
from dualread.store.store import Store, is_no_space, no_space
from dualread.store.typed import spec_of

_QUICK_BYTES = 2**24
_MACHINE_ERRORS = (errno.EIO, *TEMPORARY)
Compute = Callable[[Any, Mapping[str, Path], Path], str]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input of an entry: a finished artifact, which has a manifest, or raw data."""

    path: Path
    digest: str
    manifest: Manifest | None


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m dualread.store.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", metavar="STAGE", help="a module of dualread.stages, such as generate")
    parser.add_argument("job", metavar="JOB", help="a JSON file, - for standard input, or the JSON itself")
    parser.add_argument(
        "--log",
        metavar="FILE",
        type=Path,
        help="also write all messages to FILE; the reason of a failure goes only there",
    )
    parser.add_argument(
        "--gpus",
        metavar="N",
        type=int,
        default=0,
        help="take N GPUs of this machine; wait until they are free. By default, the job uses all that it can see",
    )
    parser.add_argument(
        "--planned",
        metavar=("CODE", "PACKAGES"),
        nargs=2,
        help="the digests of dualread.store.code.job_digests with which the run was planned; - for one that is unknown",
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        if options.log:
            _keep_log(options.log)
        store, entries = parse_job(job_text(options.job))
        runner = Runner(options.stage, store)
        if options.planned:
            runner.check_plan(entries, *options.planned)
        with devices.taken(options.gpus):
            runner.run(entries)
    except DualReadError as error:
        return _fail(options, str(error))
    except KeyboardInterrupt:
        say(f"[{options.stage}] interrupted; the entries finished so far are in the store")
        return 130
    except Exception as error:
        lines = traceback.format_exc().rstrip()
        (note if options.log else say)(lines)
        where = "in the log" if options.log else "above"
        cause = "This is an unexpected error: a bug in dualread or in a package that it uses."
        if isinstance(error, MemoryError) or getattr(error, "errno", None) in _MACHINE_ERRORS:
            cause = (
                "The machine or its file system failed, or a resource limit was reached. Finished entries are safe."
                " Solve the problem and run the same command again."
            )
        return _fail(options, f"{type(error).__name__}: {error}. {cause} The traceback is {where}.")
    note(f"[{options.stage}] done")  # a log that ends with neither this line nor an error belongs to a killed job
    return 0


def _keep_log(path: Path) -> None:
    try:
        keep_log(path)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot write the log ({error.strerror}). Make its folder writable.") from error


def _fail(options: argparse.Namespace, reason: str) -> int:
    """Report the reason once, in the log if there is one: the workflow shows the logs of failed jobs at its end."""
    if options.log:
        note(f"[{options.stage}] error: {reason}")
        print(f"[{options.stage}] failed; see {options.log}", file=sys.stderr, flush=True)
    else:
        say(f"[{options.stage}] error: {reason}")
    return 1


class Runner:
    """Looks up, or computes, the entries of one stage in one process."""

    def __init__(self, stage: str, store: Store) -> None:
        self._stage = stage
        self._store = store
        self._index = library(store.root / SOURCES_NAME)
        self._stat_cache = StatCache(store.root / "stat-cache.json")
        self._verified: set[tuple[Path, str]] = set()

    def check_plan(self, entries: list[Entry], code: str, packages: str) -> None:
        """Stop before anything is made if the code or a package was replaced after the run had been planned.

        Results of several versions would be mixed in one table, and Snakemake, which remembers only what was planned,
        would take them for up to date.
        """
        found = job_digests(self._stage, [entry.spec for entry in entries], self._store.root / SOURCES_NAME)
        names = ("code or the settings", "packages")
        for name, now, planned in zip(names, found, (code, packages), strict=True):
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
            action = self._action(entry, inputs)
            where = f"[{self._stage}] {entry.output}:"
            work_on(where.removesuffix(":"))
            if manifest := self._find(action.key):
                line = f"{where} hit {action.key[:8]}"
            else:
                started = time.monotonic()
                manifest, summary = self._compute(entry, inputs, action)
                line = f"{where} computed in {time.monotonic() - started:.1f} s, {action.key[:8]}: {summary}"
            link(self._store.entry(action.key), manifest, entry.output)
            say(line)

    def _action(self, entry: Entry, inputs: Mapping[str, Input]) -> Action:
        canonical_json(entry.spec)  # rejects a spec that JSON cannot express before anything is derived from it
        roots = stage_roots(self._stage, entry.spec)
        return Action(
            stage=self._stage,
            code=self._index.digest(roots),
            spec=entry.spec,
            inputs={name: item.digest for name, item in inputs.items()},
            packages=self._index.packages(roots),
        )

    def _find(self, key: str) -> Manifest | None:
        """Look up an entry; verify its bytes if it is small, or if a file was modified after the entry was finished.

        Small entries such as tables are read by people, and no later stage verifies them. A large entry is verified
        by the stage that computes from it.
        """
        if (manifest := self._store.lookup(key)) is None:
            return None
        entry = self._store.entry(key)
        with contextlib.suppress(FileNotFoundError):  # another process is moving the entry away
            times = {name: (entry / name).stat().st_mtime_ns for name in (MANIFEST_NAME, *manifest.files)}
            size = sum(file["size"] for file in manifest.files.values())
            if size > _QUICK_BYTES and max(times.values()) == times[MANIFEST_NAME]:
                return manifest
        if problems := list(manifest.wrong_bytes(entry)):
            self._store.condemn(key, problems)
            return None
        return manifest

    def _resolve(self, name: str, path: Path) -> Input:
        if (directory := artifact_directory(path)) is None:
            try:
                return Input(path=path, digest=raw_digest(path, self._stat_cache), manifest=None)
            except ArtifactError as error:
                raise ArtifactError(f"input {name}: {error}") from error
        manifest = read_manifest(directory / MANIFEST_NAME)
        return Input(path=directory, digest=manifest.digest, manifest=manifest)

    def _compute(self, entry: Entry, inputs: Mapping[str, Input], action: Action) -> tuple[Manifest, str]:
        for name, item in inputs.items():
            self._verify(name, item)
        roots = stage_roots(self._stage, entry.spec)
        compute: Compute = importlib.import_module(f"dualread.stages.{self._stage}").compute
        spec = spec_of(compute, entry.spec, self._stage)
        with (
            self._store.scratch(action.key) as out,
            self._store.scratch("sources") as sources,
            contextlib.ExitStack() as handing_on,
            partial.offered(self._store, action.key),
        ):
            started = time.monotonic()
            try:
                handing_on.enter_context(read_once.handed_on(sources))
                summary = compute(spec, {name: item.path for name, item in inputs.items()}, out)
            except Exception as error:
                if is_no_space(error, self._store.root):
                    raise ArtifactError(no_space(self._store.root)) from error
                raise
            self._confirm_packages(action)
            self._confirm_raw_inputs(inputs)
            record = {
                **measured(time.monotonic() - started),
                "summary": summary,
                "output": str(entry.output),
                "input_paths": {name: str(item.path) for name, item in inputs.items()},
                "modules": self._index.table(roots),
            }
            keys = {name: item.manifest.key for name, item in inputs.items() if item.manifest}
            return self._store.publish(out, action, input_keys=keys, record=record), summary

    def _verify(self, name: str, item: Input) -> None:
        if item.manifest is None or (item.path, item.digest) in self._verified:
            return
        if problems := list(item.manifest.wrong_bytes(item.path)):
            key, entry = item.manifest.key, self._store.entry(item.manifest.key)
            # The output is linked to the entry, and a lookup checks only sizes: the damaged entry would be a hit again.
            if entry.is_dir() and (damage := list(item.manifest.wrong_bytes(entry))):
                self._store.condemn(key, damage)
            # Without its manifest, the same command recomputes the input.
            with contextlib.suppress(OSError):
                (item.path / MANIFEST_NAME).unlink()
            raise ArtifactError(
                f"input {name}: {'; '.join(problems[:3])}. The file was changed or damaged after it was written."
                f" Run the same command again: {item.manifest.action.stage} will recompute it."
            )
        self._verified.add((item.path, item.digest))

    def _confirm_raw_inputs(self, inputs: Mapping[str, Input]) -> None:
        for name, item in inputs.items():
            if item.manifest is None and raw_digest(item.path, self._stat_cache) != item.digest:
                raise ArtifactError(f"input {name}: {item.path} changed while it was read. Run the same command again.")

    def _confirm_packages(self, action: Action) -> None:
        if changed := replaced(action.packages):
            raise ArtifactError(
                f"{', '.join(changed)}: replaced while {self._stage} ran, so its result cannot be stored under any key."
                " Run the same command again."
            )


def _terminate(signal_number: int, frame: FrameType | None) -> None:
    # Raise instead of dying at once, so that the scratch directory is removed.
    raise SystemExit(128 + signal_number)


if __name__ == "__main__":
    # A model's packages create a million objects, none of them garbage. Python's default of one collection per 700
    # allocations takes a sixth of their load time.
    gc.set_threshold(50_000)
    try:
        sys.exit(main())
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Python ignores exceptions while it ends, and prints them
