"""Change one line of the library at random, run the tests that are about it, and write down which one notices it first.

    python tests/mutants/random_mutants.py --rooms evaluation readers

Each floor gets `--number` mutants: ten per room, and the others by size. They depend on the source and the seed alone.
A mutant that survives is equivalent, or a test is missing, or its line is needless. What the table has as noticed is
not run again.
"""

import argparse
import ast
import contextlib
import gc
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from changes import Change, changed, changes

ROOT = Path(__file__).resolve().parents[2]
LIBRARY, TESTS = ROOT / "lib/dualread", ROOT / "tests"
# A process per mutant is forked from this one, which has imported what takes seconds.
PACKAGES = (
    *("polars", "scipy.stats", "sklearn.linear_model", "matplotlib.pyplot", "pydantic", "hypothesis.extra.numpy"),
    *("jinja2", "torch", "safetensors.torch", "transformers.models.qwen3_vl.modeling_qwen3_vl", "xdist.scheduler"),
    *("transformers.models.gemma3.modeling_gemma3", "peft", "trl", "pytest", "starlette.testclient", "openai"),
)
OPTIONS = "-n 0 -x --tb=no -p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning --hypothesis-profile=quick"
LEAST = 10  # mutants per room


class Mutant(NamedTuple):
    """A change of a file below lib/dualread."""

    room: str
    file: str
    change: Change

    def name(self) -> str:
        """Return what it is called in the table, where numbers of lines may be of another day."""
        return " | ".join((self.file, self.change.function, self.change.before, self.change.after))


def room_of(file: str) -> str:
    """Return the folder that a file belongs to: apps/<app>, a room of the core, or "modules"."""
    folders = file.split("/")[:-1]
    return "/".join(folders[:2]) if file.startswith("apps/") else (folders or ["modules"])[0]


def drawn(number: int, seed: int) -> list[Mutant]:
    """Return the mutants of both floors."""
    rooms, sizes = defaultdict(list), defaultdict(int)
    for path in sorted(LIBRARY.rglob("*.py")):
        file = str(path.relative_to(LIBRARY))
        if not re.search("vllm|slurm|cuda|_sharding|worker", file):  # for other machines than this
            rooms[room_of(file)].append(file)
            sizes[room_of(file)] += len(path.read_text().splitlines())
    mutants = []
    for floor in (True, False):
        here = [room for room in rooms if room.startswith("apps") == floor]
        rest = max(0, number - LEAST * len(here)) / sum(sizes[room] for room in here)
        for room in here:
            mutants += _of_room(room, rooms[room], LEAST + round(rest * sizes[room]), random.Random(f"{room} {seed}"))
    random.Random(seed).shuffle(mutants)  # then a part of the table is a fair sample, too
    return mutants


def _of_room(room: str, files: list[str], number: int, rng: random.Random) -> list[Mutant]:
    """Draw kinds first, so that rare ones occur; no line twice."""
    by_kind = defaultdict(list)
    for file in files:
        for change in changes((LIBRARY / file).read_text()):
            by_kind[change.kind].append((file, change))
    chosen = {}
    while by_kind and len(chosen) < number:
        kind = rng.choice(sorted(by_kind))
        file, change = by_kind[kind].pop(rng.randrange(len(by_kind[kind])))
        with contextlib.suppress(SyntaxError):
            ast.parse(changed((LIBRARY / file).read_text(), change))
            chosen.setdefault((file, change.line), Mutant(room, file, change))
        if not by_kind[kind]:
            del by_kind[kind]
    return [*chosen.values()]


def tests_about(mutant: Mutant, texts: dict[str, str]) -> list[str]:
    """Return files of tests in their order: those named after the module, those that import it, others of the room."""
    parts = mutant.file.removesuffix("/__init__.py").removesuffix(".py").split("/")
    folder, stem, package = "/".join(parts[:-1]), parts[-1].strip("_"), r"\.".join(["dualread", *parts[:-1]])
    imports = re.compile(rf"{package}\.{parts[-1]}\b|from {package} import .*\b{parts[-1]}\b")
    words = re.compile(rf"\b{stem}\b"), re.compile(rf"\b{mutant.change.function.strip('_') or stem}\b")

    def rank(name: str) -> tuple[bool, ...]:
        here, _, file = name.rpartition("/")
        named = here == folder and file.startswith(f"test_{stem}")
        matched = (named, imports.search(texts[name]), here == folder, name.startswith(f"{mutant.room}/"))
        return tuple(not match for match in (*matched, *(word.search(texts[name]) for word in words)))

    ranked = sorted(texts, key=lambda name: (rank(name), len(texts[name])))
    return [name for name in ranked if not all(rank(name)[:4])]


class Recorder:
    """A plugin of pytest that writes down the test that runs, and the one that fails."""

    def __init__(self, path: Path) -> None:
        self.path, self.passed = path, 0
        path.write_text("error\tpytest did not start")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.path.write_text(f"limit\t{nodeid}")

    def pytest_runtest_logreport(self, report) -> None:
        self.passed += report.when == "call" and report.passed
        if report.failed:
            self.path.write_text(f"noticed\t{report.nodeid}")

    pytest_collectreport = pytest_runtest_logreport

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == 0:
            self.path.write_text(f"survived\t{self.passed} tests")


def run_tests(checkout: Path, files: list[str], marks: str) -> int:
    """Run the files in a forked process of its own group; return its id."""
    if (pid := os.fork()) != 0:
        return pid
    os.setsid()
    os.chdir(checkout)
    import pytest

    recorder = Recorder(checkout.parent / "report.txt")
    with (checkout.parent / "output.txt").open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    ours = (str(ROOT), str(ROOT / "lib"), str(TESTS / "mutants"))
    sys.path[:] = [str(checkout), str(checkout / "lib"), *(path for path in sys.path if path not in ours)]
    os.environ.update(PYTHONPATH=str(checkout / "lib"), HF_HUB_OFFLINE="1")
    options = [*OPTIONS.split(), "--hypothesis-seed=0", "-m", marks, f"--basetemp={checkout.parent}/tmp"]
    try:
        pytest.main([*options, *(f"tests/{name}" for name in files)], plugins=[recorder])
    finally:
        os._exit(0)


def ended(pid: int, until: float) -> bool:
    """Return whether a process has ended; end it with all that it started when its time is over."""
    over = time.monotonic() > until
    if over:
        os.killpg(pid, signal.SIGKILL)
    if os.waitpid(pid, 0 if over else os.WNOHANG) == (0, 0):
        return False
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return True


def edit(path: Path, text: str, edits: int) -> None:
    """Write a file with a date that no byte code has, whatever the clock says."""
    path.write_text(text)
    os.utime(path, (edits, edits))


def run(mutants: list[Mutant], table: dict[str, dict], arguments: argparse.Namespace, folder: Path) -> None:
    """Run the mutants in copies of the repository, one per process; write the table after each."""
    names = {str(path.relative_to(TESTS)): path for path in TESTS.rglob("test_*.py")}
    elsewhere = re.compile("with_|workflow|mutants|test_mutants")
    texts = {name: path.read_text() for name, path in names.items() if not elsewhere.match(name)}
    free, running, waiting, edits = [], {}, mutants[::-1], 0
    for number in range(arguments.processes):
        free.append(folder / str(number) / "checkout")
        generated = shutil.ignore_patterns(".venv", ".git", "build", "results", "__pycache__")
        shutil.copytree(ROOT, free[-1], symlinks=True, ignore=generated)
        subprocess.run("git init --quiet && git add --all --force", cwd=free[-1], check=True, shell=True)
    while waiting or running:
        while waiting and free:
            mutant, checkout = waiting.pop(), free.pop()
            path = checkout / "lib/dualread" / mutant.file
            source, edits = path.read_text(), edits + 2
            edit(path, changed(source, mutant.change), edits)
            pid = run_tests(checkout, tests_about(mutant, texts)[: arguments.files], arguments.marks)
            running[pid] = mutant, checkout, path, source, time.monotonic()
        time.sleep(0.05)
        for pid, (mutant, checkout, path, source, began) in [*running.items()]:
            if ended(pid, began + arguments.seconds):
                del running[pid]
                free.append(checkout)
                edit(path, source, edits := edits + 2)
                outcome, by = (checkout.parent / "report.txt").read_text().split("\t")
                row = {"outcome": outcome, "by": by, "seconds": round(time.monotonic() - began, 1)}
                table[mutant.name()] = {"room": mutant.room, "file": mutant.file, **mutant.change._asdict(), **row}
                arguments.table.write_text(json.dumps(table, indent=1))
                print(len(waiting), *row.values(), f"{mutant.file}:{mutant.change.line}", mutant.name(), flush=True)


def main() -> None:
    """Run the mutants that are not in the table yet, or survive there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", nargs="*", help="such as evaluation or apps/score; all without")
    parser.add_argument("--number", type=int, default=300, help="of mutants per floor")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60, help="after which a mutant has survived")
    parser.add_argument("--files", type=int, default=12, help="of tests that are run for a mutant, at most")
    parser.add_argument("--marks", default="not rest and not long", help="pytest's option -m")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--table", type=Path, default=ROOT / "build/random_mutants.json")
    arguments = parser.parse_args()
    table = json.loads(arguments.table.read_text()) if arguments.table.exists() else {}
    known = {name for name, row in table.items() if row["outcome"] == "noticed"}
    mutants = [mutant for mutant in drawn(arguments.number, arguments.seed) if mutant.name() not in known]
    arguments.table.parent.mkdir(parents=True, exist_ok=True)
    os.environ.update(OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1")
    for package in PACKAGES:
        importlib.import_module(package)
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        chosen = [mutant for mutant in mutants if not arguments.rooms or mutant.room in arguments.rooms]
        run(chosen, table, arguments, Path(folder))


if __name__ == "__main__":
    main()
