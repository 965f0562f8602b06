"""Time and peak memory of every operation on a store of 1,000, 10,000, and 100,000 tiny entries.

    TMPDIR=/dev/shm python benchmarks/store_scale.py   minutes, and 2 GB of memory
    python benchmarks/store_scale.py 1000 4000         other sizes, on the disk of temporary files

A study has 100 entries: 98 artifacts, an artifact of metrics that reads them, and a table. The results folder of every
second study is missing, so gc lists half of the store. The micro study is in each store, too. Each cell runs in a
process of its own and gives CPU time, wall time, and peak memory. `growth` is the CPU time of the last size divided by
that of the size before; with ten times as many entries, n log n grows by 12 or 13.

When the table is printed, the entries are removed. On a disk that is mounted with `discard`, that took 6 to 13 ms per
entry, which is up to 20 minutes for 100,000.

Measured on 2 cores beside much other work, which multiplies the wall times, and explains some of the growth where it
displaced the disk's cache:

                                         1,000    10,000       100,000    growth
    lookup of a key                     0.1 ms    0.1 ms        0.1 ms       1.0    25 MB
    publish an entry                    2.8 ms    2.0 ms        1.8 ms       0.9    25 MB
    find a key by 8 digits              0.2 ms    0.2 ms        0.5 ms       3.2    25 MB
    verify one table (100 entries)       15 ms     15 ms         21 ms       1.4    25 MB
    results.lock of one study             6 ms     10 ms          7 ms       0.7    25 MB
    explain --why                        36 ms    243 ms      2,489 ms      10.2    25 MB
    look before a run of one study      4.3 ms    4.5 ms             -       1.1    25 MB
    gc, listing half of it              107 ms  1,186 ms     16,329 ms      13.8    78 MB
    pull, everything there               97 ms  1,214 ms     10,921 ms       9.0   219 MB

The operations that grow make the same number of system calls and function calls per entry at any size. Counted with
cProfile at 1,000, 4,000, and 8,000 entries, gc makes 246, 241, and 240 calls per entry, among them 3.5 stat, 1.5 open,
1 scandir.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from dualread.store.copy import copy_entries, write_lock
from dualread.store.differences import predecessor
from dualread.store.digest import MANIFEST_NAME
from dualread.store.disk import check_writable
from dualread.store.gc import leftovers
from dualread.store.graph import damages
from dualread.store.key import Action
from dualread.store.manifest import RECORD_NAME, Manifest, file_table, read_manifest
from dualread.store.place import Target, find_key
from dualread.store.results import repair
from dualread.store.store import Store

REPOSITORY = Path(__file__).resolve().parents[1]
STUDY = 100
REPEATS = 50
_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def build(root: Path, n: int) -> None:
    """Write the entries as the store does, but without waiting for the disk after each."""
    store = Store(root / "results/store")
    for study in range(n // STUDY):
        leaves = {f"leaf/{k}": _put(root, store, study, f"leaf/{k}", {}) for k in range(STUDY - 2)}
        metrics = _put(root, store, study, "metrics", leaves)
        _put(root, store, study, "tables/main", {"metrics": metrics})


def _put(root: Path, store: Store, study: int, name: str, inputs: dict[str, Manifest]) -> Manifest:
    spec, digests = {"study": study, "name": name}, {key: manifest.digest for key, manifest in inputs.items()}
    action = Action(stage="bench", code="c" * 64, spec=spec, inputs=digests, packages={})
    entry = store.entry(action.key)
    entry.mkdir(parents=True)
    (entry / "value.txt").write_text(f"{study} {name}")
    keys = {key: manifest.key for key, manifest in inputs.items()}
    manifest = Manifest(action=action, files=file_table(entry), input_keys=keys)
    (entry / MANIFEST_NAME).write_bytes(manifest.to_bytes())
    output = root / f"results/study{study}" / name
    record = {"seconds": 1.0, "output": f"results/study/{name}", "written": f"2026-01-01T{study:08d}"}
    (entry / RECORD_NAME).write_text(json.dumps(record))
    if study % 2 == 0:
        output.mkdir(parents=True)
        os.link(entry / "value.txt", output / "value.txt")
        (output / MANIFEST_NAME).write_bytes(replace(manifest, place=str(output)).to_bytes())
    return manifest


def _table(root: Path) -> Target:
    directory = root / "results/study0/tables/main"
    return Target(directory=directory, manifest=read_manifest(directory / MANIFEST_NAME))


def lookup(root: Path, store: Store) -> None:
    key = _table(root).manifest.key
    for _ in range(REPEATS):
        assert store.lookup(key)


def publish(root: Path, store: Store) -> None:
    for k in range(REPEATS):
        action = Action(stage="bench", code="c" * 64, spec={"new": [os.getpid(), k]}, inputs={}, packages={})
        with store.scratch(action.key) as scratch:
            (scratch / "value.txt").write_text("1")
            store.publish(scratch, action, input_keys={}, record={})


def find(root: Path, store: Store) -> None:
    key = _table(root).manifest.key
    for _ in range(REPEATS):
        assert find_key(key[:8], store) == key


def verify(root: Path, store: Store) -> None:
    assert list(damages(_table(root), store)) == []


def why(root: Path, store: Store) -> None:
    predecessor(_table(root), store)


def look_before_a_run(root: Path, store: Store) -> None:
    """A run looks at the results of its own study, and at the folders of the store, and at no other entry."""
    check_writable(store.root)
    assert len(repair(root / "results/study0", store)) == STUDY


def plan(root: Path, store: Store) -> None:
    """Plan all jobs of the micro study, whose entries are in the store beside all others."""
    assert "train_actor" in micro(root, "-n", "--forceall")


def find_nothing_to_do(root: Path, store: Store) -> None:
    assert "Nothing to be done" in micro(root)


def micro(root: Path, *options: str) -> str:
    """Run the micro study with this store, and return what Snakemake prints."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--directory", str(root), "tables/main.tex", *options]
    command += ["--configfile", "workflow/studies/micro.yaml"]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def collect(root: Path, store: Store) -> None:
    assert list(leftovers(store, results=[root / "results"]))


def lock(root: Path, store: Store) -> None:
    write_lock(root / "results/study0", store)


def pull(root: Path, store: Store) -> None:
    """Pull from a store whose entries are all here already."""
    assert all(copied is None for copied in copy_entries(store.stored_keys(), store, store))


# The measured operations, and how often each is repeated.
ONCE = (verify, lock, why, look_before_a_run, plan, find_nothing_to_do, collect, pull)
STEPS = {lookup: REPEATS, publish: REPEATS, find: REPEATS, **dict.fromkeys(ONCE, 1)}
NAMES = {
    lookup: "lookup of a key",
    publish: "publish an entry",
    find: "find a key by 8 digits",
    verify: "verify one table (100 entries)",
    lock: "results.lock of one study",
    why: "explain --why: find the earlier one",
    look_before_a_run: "look before a run of one study",
    plan: "snakemake -n, micro study",
    find_nothing_to_do: "snakemake with nothing to do",
    collect: "gc, listing half of it",
    pull: "pull, everything there",
}


def measured(step: str, root: Path) -> None:
    """Run one operation in this process; print CPU and wall seconds per repetition, and peak memory in MB."""
    function, n = next((function, n) for function, n in STEPS.items() if function.__name__ == step)
    cpu, started = _cpu(), time.perf_counter()
    function(root, Store(root / "results/store"))
    taken = (_cpu() - cpu) / n, (time.perf_counter() - started) / n
    print(json.dumps([*taken, max(resource.getrusage(who).ru_maxrss for who in _PROCESSES) / 1024]))


def _cpu() -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, _PROCESSES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        return measured(options.step[0], Path(options.step[1]))
    with ExitStack() as folders:
        _print(options.sizes, [_column(n, folders) for n in options.sizes])
    return None


def _column(n: int, folders: ExitStack) -> list[list[float]]:
    """Measure all operations on a store of `n` entries, in a folder that is removed with `folders`."""
    folder, started, cells = folders.enter_context(tempfile.TemporaryDirectory(prefix="store_scale")), time.time(), []
    build(Path(folder), n)
    os.sync()  # else the first entry that is published waits for all of these
    micro(Path(folder))
    print(f"{n:,} entries made in {time.time() - started:.0f} s", file=sys.stderr, flush=True)
    for function in STEPS:
        command = [sys.executable, __file__, "--step", function.__name__, folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        cells.append(json.loads(done.stdout.splitlines()[-1]))
        print(f"{n:,} entries, {NAMES[function]}: {cells[-1][1]:.3f} s", file=sys.stderr, flush=True)
    return cells


def _print(sizes: list[int], columns: list[list[list[float]]]) -> None:
    print(f"{'':<37}" + "".join(f"{n:>30,}" for n in sizes) + "    growth")
    for function, cells in zip(STEPS, zip(*columns, strict=True), strict=True):
        texts = "".join(f"{cpu * 1e3:>10,.1f} {wall * 1e3:>8,.1f} ms {mb:>4.0f} MB" for cpu, wall, mb in cells)
        growth = f"{cells[-1][0] / cells[-2][0]:>10.1f}" if len(cells) > 1 else ""
        print(f"{NAMES[function]:<37}{texts}{growth}", flush=True)


if __name__ == "__main__":
    main()
