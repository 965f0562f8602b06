"""The cost of the graph of jobs: of a call that plans everything, and of one that finds everything done.

    python benchmarks/graph.py                                  the paper's study: minutes, and a GB of temporary files
    python benchmarks/graph.py workflow/studies/smoke.yaml      another one
    python benchmarks/graph.py --only "as it is" "both x 10"

Each study is planned (`snakemake -n`) as it is, with ten times the seeds, with ten times the data sets (copies of those
out of distribution), and with both. For the second call, every artifact that the jobs name is written beforehand, with
its true key and one small file as its contents, and `snakemake --touch` records it as made. Then a plain `snakemake` is
measured. It reads the config, plans, looks for damage, compares all times and parameters, and finds nothing to do. The
numbers are CPU seconds (wall time in brackets) and the peak memory of the process.

The paper's study, CPU seconds on a machine with much other work:

                        jobs  artifacts         planned        all done
    as it is             270      1,843   6.5 s, 179 MB   6.6 s, 182 MB
    seeds x 10         1,836     17,233  22.6 s, 275 MB  27.7 s, 276 MB
    data sets x 10       418     11,495  21.0 s, 236 MB
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import yaml

from dualread.store.code import library, stage_roots
from dualread.store.digest import MANIFEST_NAME
from dualread.store.key import Action
from dualread.store.manifest import RECORD_NAME, Manifest, file_table
from dualread.store.results import link
from dualread.store.store import Store
from dualread.study.files import load

REPOSITORY = Path(__file__).resolve().parents[1]
TIMES = {"as it is": (1, 1), "seeds x 10": (10, 1), "data sets x 10": (1, 10), "both x 10": (10, 10)}


def overlay(study: Path, times_seeds: int, times_datasets: int) -> dict[str, Any]:
    """Return what multiplies the seeds and the data sets of a study when it is laid over it."""
    config = load([study], REPOSITORY).as_mapping()
    others = [(name, entry) for name, entry in config["datasets"].items() if not entry.get("id")]
    n_new = len(config["datasets"]) * (times_datasets - 1)
    copies = islice(cycle(others), n_new) if others else ()
    datasets = {f"{name}_{k}": {**entry, "label": f"{entry['label']} {k}"} for k, (name, entry) in enumerate(copies)}
    seeds = list(range(1, len(config["seeds"]) * times_seeds + 1)) if times_seeds > 1 else config["seeds"]
    return {"study": "scaled", "seeds": seeds, **({"datasets": datasets} if datasets else {})}


def snakemake(folder: Path, study: Path, *options: str) -> tuple[str, str]:
    """Run Snakemake in `folder`; return its output and its cost."""
    command = ["snakemake", "--snakefile", REPOSITORY / "Snakefile", "--directory", folder, "--cores", "1", *options]
    command += ["--configfile", study, folder / "overlay.yaml"]
    log, started = folder / "log", time.perf_counter()
    with log.open("w") as file:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "lib")}
        process = subprocess.Popen(list(map(str, command)), cwd=folder, stdout=file, stderr=file, env=environment)
        _, status, used = os.wait4(process.pid, 0)
    wall, process.returncode = time.perf_counter() - started, os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(log.read_text()[-4000:])
    cost = f"{used.ru_utime + used.ru_stime:.1f} s ({wall:.1f}), {used.ru_maxrss / 1024:,.0f} MB"
    return log.read_text(), cost


def put_everything(folder: Path) -> int:
    """Write the artifacts of all jobs of a dry run, each after its inputs; return how many."""
    store, manifests = Store(folder / "results/store"), {}
    jobs = [(path.parent.name, json.loads(path.read_bytes())) for path in folder.glob("results/*/jobs/*/*.json")]
    todo = [(stage, entry, {**job["inputs"], **entry["inputs"]}) for stage, job in jobs for entry in job["entries"]]
    while todo:
        later = []
        for stage, entry, inputs in todo:
            made = [path for path in inputs.values() if path.endswith(MANIFEST_NAME)]
            if all(path in manifests for path in made):
                manifests[f"{entry['output']}/{MANIFEST_NAME}"] = _put(folder, store, stage, entry, inputs, manifests)
            else:
                later.append((stage, entry, inputs))
        assert len(later) < len(todo), later[0]
        todo = later
    return len(manifests)


def _put(folder: Path, store: Store, stage: str, entry: dict, inputs: dict, manifests: dict) -> Manifest:
    digests = {name: manifests[path].digest if path in manifests else "raw" for name, path in inputs.items()}
    code = library().digest(stage_roots(stage, entry["spec"]))
    action = Action(stage=stage, code=code, spec=entry["spec"], inputs=digests, packages={})
    directory = store.entry(action.key)
    if (manifest := store.lookup(action.key)) is None:  # copies of a data set share its download
        directory.mkdir(parents=True)
        (directory / "file.txt").write_text(entry["output"])
        keys = {name: manifests[path].key for name, path in inputs.items() if path in manifests}
        manifest = Manifest(action=action, files=file_table(directory), input_keys=keys)
        (directory / MANIFEST_NAME).write_bytes(manifest.to_bytes())
        (directory / RECORD_NAME).write_text("{}")
    link(directory, manifest, folder / entry["output"])
    return manifest


def other_outputs(folder: Path, study: Path) -> Iterator[Path]:
    """Yield the outputs that are not artifacts: copies of tables and figures, records, the report, environments."""
    summary, _ = snakemake(folder, study, "--summary")
    for line in summary.splitlines():
        name = line.split("\t")[0]
        if name.startswith(("tables/", "figures/", "results/")) and not name.endswith(MANIFEST_NAME):
            yield folder / name


def measured(name: str, study: Path, folder: Path) -> None:
    (folder / "overlay.yaml").write_text(yaml.safe_dump(overlay(study, *TIMES[name]), sort_keys=False))
    said, planned = snakemake(folder, study, "-n", "--quiet", "host")
    n_jobs = int(re.findall(r"^total +(\d+)", said, re.MULTILINE)[0])
    started = time.process_time()
    n_artifacts = put_everything(folder)
    print(f"{n_artifacts:,} artifacts made in {time.process_time() - started:.0f} s", file=sys.stderr, flush=True)
    for path in other_outputs(folder, study):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"% study: scaled\n{path.name}\n")
    snakemake(folder, study, "--touch", "--quiet", "all")
    said, done = snakemake(folder, study)
    assert "Nothing to be done" in said, said[-4000:]
    print(f"{name:<16}{n_jobs:>8,}{n_artifacts:>11,}{planned:>32}{done:>32}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, nargs="?", default=REPOSITORY / "workflow/studies/paper.yaml")
    parser.add_argument("--only", choices=TIMES, nargs="+", default=list(TIMES))
    options = parser.parse_args()
    print(f"{options.study.stem:<16}{'jobs':>8}{'artifacts':>11}{'planned':>32}{'all done':>32}")
    for name in options.only:
        with tempfile.TemporaryDirectory(prefix="graph") as folder:
            measured(name, options.study.resolve(), Path(folder))


if __name__ == "__main__":
    main()
