"""Workflows on GitHub call targets that exist, may do no more than they need, and run every test by push or week."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
# What a job may write, and why: the site is published, and newer locks are proposed.
MAY_WRITE = {("site.yml", "publish"): {"pages", "id-token"}, ("locks.yml", "upgrade"): {"contents", "pull-requests"}}


def read(path: Path) -> dict[str, Any]:
    # A plain `on:` is the boolean of YAML 1.1.
    return {"on" if key is True else key: value for key, value in yaml.safe_load(path.read_text()).items()}


def jobs() -> list[Any]:
    return [
        pytest.param(path.name, name, job, id=f"{path.stem}-{name}")
        for path in WORKFLOWS
        for name, job in read(path)["jobs"].items()
    ]


def variants(job: dict[str, Any]) -> list[dict[str, str]]:
    """The values of a job's matrix, one mapping for each of its runs."""
    matrix = job.get("strategy", {}).get("matrix", {})
    if "include" in matrix:
        return matrix["include"]
    return [{name: value} for name, values in matrix.items() for value in values] or [{}]


def commands(job: dict[str, Any]) -> list[str]:
    """What the steps of a job run, with the values of its matrix."""
    texts = [step["run"] for step in job["steps"] if "run" in step]
    return [
        re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda match, values=values: str(values[match[1]]), text)
        for values in variants(job)
        for text in texts
    ]


def targets(lines: list[str]) -> set[str]:
    """The targets of make in some commands."""
    return {
        word
        for line in lines
        for call in re.findall(r"^make ([^|;&\n]*)", line, re.MULTILINE)
        for word in call.split()
        if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")
    }


MAKEFILE = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize(("workflow", "name", "job"), jobs())
def test_a_job_ends_pins_its_actions_calls_targets_and_writes_only_what_it_must(workflow, name, job):
    assert read(ROOT / ".github/workflows" / workflow)["permissions"] == {"contents": "read"}
    assert job["timeout-minutes"]
    for action in (step["uses"] for step in job["steps"] if "uses" in step):
        assert re.fullmatch(r"actions/[\w-]+@v\d+", action)
    written = {scope for scope, right in job.get("permissions", {}).items() if right == "write"}
    assert written == MAY_WRITE.get((workflow, name), set())
    assert targets(commands(job)) <= MAKEFILE


def test_every_suite_runs_on_each_push_or_each_week():
    weekly = read(ROOT / ".github/workflows/weekly.yml")
    called = targets([line for job in weekly["jobs"].values() for line in commands(job)])
    each_push = commands(read(ROOT / ".github/workflows/ci.yml")["jobs"]["test"])
    assert ".ci/run" in each_push
    assert {"test", "test-rest"} <= targets([*each_push, (ROOT / ".ci/run").read_text()])
    of_all = {"test", "test-rest", "test-all"}  # tests/test_targets.py says that these are its tests
    assert {name for name in MAKEFILE if name == "test" or name.startswith("test-")} == called | of_all
    assert weekly["on"]["schedule"]


def test_the_audit_reads_every_file_that_pins_packages():
    recipe = (ROOT / "Makefile").read_text().partition("\naudit:")[2].partition("\n\n")[0]
    read_files = {file for pattern in re.findall(r"(?:envs|plugins)/[\w*./-]+", recipe) for file in ROOT.glob(pattern)}
    files = [*(ROOT / "envs").iterdir(), *ROOT.glob("plugins/*/*")]
    pinning = {path for path in files if path.suffix in (".lock", ".txt") and "==" in path.read_text()}
    package = ROOT / "plugins/lm_polygraph"
    assert pinning - read_files == {package / "lm-polygraph.txt"}  # which is the end of its lock
    assert (package / "lm-polygraph.txt").read_text().splitlines()[-1] in (package / "requirements.lock").read_text()


def test_locks_that_are_installed_into_one_environment_agree():
    together = [ROOT / f"envs/{name}" for name in ("torch.txt", "base.lock", "dev.lock", "dicom.lock")]
    versions: dict[str, set[str]] = {}
    for file in (*together, *ROOT.glob("plugins/*/requirements.lock")):
        for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", file.read_text(), re.MULTILINE):
            versions.setdefault(name, set()).add(version)
    assert {"torch", "numpy", "pytest", "pydicom", "lm-polygraph"} <= versions.keys()
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
