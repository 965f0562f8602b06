"""Faults for tests of the workflow: kills at a given moment, full disks, read-only folders, damage, random edits."""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from tests.workflow.checkout import Checkout, Run

INJECTION = Path(__file__).parent / "injection"
STUDIES = "workflow/studies"
STUDY = f"{STUDIES}/micro.yaml"
TABLES = ("tables/main.tex", "tables/data.tex")
MICRO = "results/micro"


def run(checkout: Checkout, *arguments: str, study: str = STUDY, **options) -> Run:
    """Run the workflow for the tables, with further `arguments`."""
    return checkout.snakemake(*TABLES, *arguments, study=study, **options)


def from_nothing(folder: Path) -> Checkout:
    """Run the micro study in a new checkout without a fault."""
    checkout = Checkout.create(folder)
    done = run(checkout)
    assert done.returncode == 0, done.text
    return checkout


def faulty(
    checkout: Checkout,
    *arguments: str,
    stage: str,
    event: str,
    path: str,
    count: int = 1,
    victim: str = "job",
    study: str = STUDY,
) -> Run:
    """Run the workflow for the tables while the process of one stage is killed (see injection/sitecustomize.py)."""
    fault = {"stage": stage, "event": event, "path": path, "count": count, "victim": victim}
    environment = {"FAULT": json.dumps(fault), "PYTHONPATH": f"{INJECTION}:{checkout.folder / 'lib'}"}
    done = run(checkout, *arguments, study=study, environment=environment)
    assert "FAULT: killed at " in done.text, done.text
    return done


def killed(checkout: Checkout, *arguments: str, **fault: Any) -> Run:
    """Run the workflow as `faulty` does; the fault ends it."""
    done = faulty(checkout, *arguments, **fault)
    assert done.returncode != 0
    return done


def contents(checkout: Checkout) -> dict[str, object]:
    """Return the bytes of the tables, and the manifests (with digests) of everything that they were made from."""
    found: dict[str, object] = {f"tables/{path.name}": path.read_bytes() for path in checkout.folder.glob("tables/*")}
    for path in checkout.folder.glob("results/*/**/MANIFEST.json"):
        name = path.relative_to(checkout.folder)
        if name.parts[1] != "store":
            # If two inputs have the same bytes, either may be recorded as the origin: that is lineage, not content.
            found[str(name)] = {**json.loads(path.read_bytes()), "input_keys": None}
    return found


def assert_same(checkout: Checkout, other: Checkout) -> None:
    """Compare the tables, and everything that they were made from and `checkout` still has, with another checkout."""
    found, expected = contents(checkout), contents(other)
    assert {name for name in found if name.startswith("tables/")} >= {*TABLES, *(t[:-3] + "csv" for t in TABLES)}
    assert found == {name: expected.get(name) for name in found}


def copy(checkout: Checkout, folder: Path) -> Checkout:
    """Copy a checkout with its results, keeping times and hard links."""
    subprocess.run(["cp", "-a", checkout.folder, folder], check=True)
    return Checkout(folder=folder)


def artifacts(checkout: Checkout, *stages: str) -> list[str]:
    """Return the results of some stages as targets."""
    paths = sorted(checkout.folder.glob(f"{MICRO}/**/MANIFEST.json"))
    return [str(p.relative_to(checkout.folder)) for p in paths if json.loads(p.read_text())["stage"] in stages]


def forget(checkout: Checkout, *stages: str) -> list[str]:
    """Remove the results of some stages, also from the store, so that they are recomputed; return them as targets."""
    found = artifacts(checkout, *stages)
    assert found, stages
    for target in found:
        path = checkout.folder / target
        shutil.rmtree(stored(checkout, target))
        path.unlink()
    return found


def stored(checkout: Checkout, target: str) -> Path:
    """Return the entry of the store that a result is linked to."""
    key = json.loads((checkout.folder / target).read_text())["key"]
    return checkout.folder / "results/store" / key[:2] / key


def flip(path: Path, *, secretly: bool = False) -> None:
    """Flip one bit in the middle of a file; `secretly` keeps its times."""
    before = path.stat()
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(before.st_size // 2)
        byte = file.read(1)[0]
        file.seek(before.st_size // 2)
        file.write(bytes([byte ^ 1]))
    if secretly:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncate(path: Path) -> None:
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size // 2)


def mounting(script: str) -> list[str]:
    """Return a command prefix that runs `script`, which mounts something only the command can see, before a command."""
    alone = ["unshare", "--map-root-user", "--mount"] if os.geteuid() else ["unshare", "--mount"]
    tried = subprocess.run([*alone, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {tried.stderr.strip()}")
    return [*alone, "sh", "-ec", f'{script}; exec "$@"', "sh"]


def _edit(name: str, old: str, new: str) -> Callable[[Checkout], None]:
    return lambda checkout: checkout.edit(name, old, new)


def _remove(pattern: str) -> Callable[[Checkout], None]:
    def remove(checkout: Checkout) -> None:
        for path in checkout.folder.glob(pattern):  # nothing, in a checkout without results
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


# Edits of values and names in the config, of stages' code, of a frozen table and of an output, from the first stage on.
EDITS = {
    "a setting of training": _edit(STUDY, "steps: 3,", "steps: 2,"),
    "a setting of readers": _edit(STUDY, "p_state: {settings: {steps: 20}}", "p_state: {settings: {steps: 30}}"),
    "a rule of pairing": _edit("config.yaml", "match_on: [modality]", "match_on: [location]"),
    "a label": _edit("config.yaml", "label: SLAKE-test", "label: Another"),
    "the bootstrap": _edit(STUDY, "replicates: 50", "replicates: 70"),
    "a reward": _edit("lib/dualread/training/rewards/rlvr.py", "[v.correctness_reward", "[-v.correctness_reward"),
    "a loss": _edit("lib/dualread/readers/_network.py", "sum() / correct.sum())", "sum() / correct.sum()) ** 0.5"),
    "the grader": _edit("lib/dualread/grading/canonical.py", "if len(word) <= 3 or", "if len(word) <= 4 or"),
    "the fusion": _edit(STUDY, "epochs: 3, patience: 2", "epochs: 2, patience: 2"),
    "a metric": _edit("lib/dualread/evaluation/metrics/selective.py", "HIGH_CONFIDENCE = 0.9", "HIGH_CONFIDENCE = 0.6"),
    "a table": _edit("lib/dualread/reporting/tables/main.py", '"Confidence"', '"Group"'),
    "a removed table": _remove("tables/main.tex"),
    "removed answers": _remove(f"{MICRO}/generations/*/*/*/*/test"),
    "a removed stage": _remove(f"{MICRO}/graded"),
    "a removed store": _remove("results/store/?[0-7]"),
    "removed metadata": _remove(".snakemake"),
}


REMOVALS = {name for name in EDITS if "removed" in name}


def draw_edits(*, seed: int, number: int, among: Collection[str] = EDITS.keys()) -> list[Callable[[Checkout], None]]:
    """Return some of EDITS in a random order that depends on `seed`."""
    return [EDITS[name] for name in random.Random(seed).sample(sorted(among), number)]
