"""What a newcomer waits for: a study from nothing, a second run, and runs after an edit of a table and of a metric.

    python benchmarks/edits.py                                          the micro study
    python benchmarks/edits.py workflow/studies/smoke.yaml --cores 2    another one
    python benchmarks/edits.py --from results/embedded                  starts from a copy of a finished study

Everything happens in a copy of the checkout in a temporary folder. The table has the wall seconds, the CPU seconds of
all processes, and the CPU seconds of a reference loop just before (pure Python). Machines, and hours of one machine,
differ by a factor of two and more; the loop shows how much of a difference is the machine's.
"""

import argparse
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
PR_SET_CHILD_SUBREAPER = 36
# What is edited, and by what: each changes a result.
EDITS = {
    "edit of a table": ("reporting/tables/main.py", '"Confidence"', '"Group"'),
    "edit of a metric": ("evaluation/metrics/selective.py", "HIGH_CONFIDENCE = 0.9", "HIGH_CONFIDENCE = 0.6"),
}


def reference() -> float:
    """Return the CPU seconds of a loop that is the same everywhere."""
    started, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number & 7
    return time.process_time() - started


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder: Path, study: str | None, cores: int) -> tuple[float, float]:
    """Run Snakemake; return the wall seconds and the CPU seconds, with those of all processes that it leaves."""
    started, used = time.perf_counter(), cpu_seconds()
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores), *(["--configfile", study] if study else [])]
    environment = {**os.environ, "PYTHONPATH": str(folder / "lib"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    wall = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    while True:  # processes that outlive Snakemake are children of this one
        try:
            os.wait()
        except ChildProcessError:
            break
    return wall, cpu_seconds() - used


def copy(target: Path, results: Path | None) -> None:
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, target / name, follow_symlinks=False)
    if results:
        for folder in (results.parent, *(results.parents[1] / name for name in ("tables", "figures", ".snakemake"))):
            subprocess.run(["cp", "-a", folder, target], check=True)  # with times and hard links


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", default="workflow/studies/micro.yaml")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--from", dest="results", type=Path, help="results/<study> of a checkout where it is finished")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    study = None if options.results and options.results.name == "embedded" else options.study
    named = yaml.safe_load((REPOSITORY / (study or "config.yaml")).read_text())["study"]
    with tempfile.TemporaryDirectory(prefix="edits") as folder:
        checkout = Path(folder)
        copy(checkout, options.results.resolve() if options.results else None)
        steps: dict[str, tuple[str, str, str] | None] = {"from nothing": None} if not options.results else {}
        print(f"{named:<20}{'wall s':>8}{'CPU s':>8}{'reference s':>13}")
        for name, edit in {**steps, "no-op": None, **EDITS}.items():
            if edit:
                file, old, new = checkout / "lib/dualread" / edit[0], edit[1], edit[2]
                assert file.read_text().count(old) == 1, file
                file.write_text(file.read_text().replace(old, new))
            loop = reference()
            wall, used = run(checkout, study, options.cores)
            print(f"{name:<20}{wall:>8.1f}{used:>8.1f}{loop:>13.2f}", flush=True)


if __name__ == "__main__":
    main()
