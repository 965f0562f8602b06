"""Every test is run by a target of the Makefile, and hosted machines, which may write little, run all."""

import ast
import itertools
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.conftest import OF_SMOKE

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
MAKEFILE = (ROOT / "Makefile").read_text()
# {target: the command of its recipe}, of the targets that run pytest.
COMMANDS = dict(re.findall(r"^([a-z-]+):.*\n\t(.*(?:\$\(PYTEST\)|-m pytest)\s.*)$", MAKEFILE, re.MULTILINE))
# Folders that pytest enters only if they are named.
LEFT_OUT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["norecursedirs"]


def selects(target: str, **marks: bool) -> bool:
    """Return whether the `-m` expression of a target selects a test that has, or does not have, these marks."""
    (expression,) = re.findall(r' -m "(.*?)"', COMMANDS[target])
    return eval(expression, {}, marks)


def test_three_targets_select_every_test_and_only_property_tests_run_in_two():
    for rest, long, hypothesis in itertools.product([False, True], repeat=3):
        marks = {"rest": rest, "long": long, "hypothesis": hypothesis}
        chosen = [selects(target, **marks) for target in ("test", "test-rest", "test-long")]
        assert sum(chosen) == (2 if hypothesis and not (rest or long) else 1)
        assert selects("test-all", **marks) == any(chosen[:2])


def test_a_folder_that_is_left_out_has_a_target():
    named = {name for command in COMMANDS.values() for name in re.findall(r"tests/(\w+)$", command)}
    assert named == {name for name in LEFT_OUT if name != ".*"}


def test_every_test_is_in_a_file_that_pytest_collects():
    for path in TESTS.rglob("*.py"):
        if not path.name.startswith("test_"):
            names = [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
            assert not [name for name in names if name.startswith("test_")], path


def test_files_that_take_the_smoke_study_share_a_process():
    """In another process, the study would be made once more."""
    folder = TESTS / "workflow"
    for file in folder.glob("test_*.py"):
        functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
        takes = [one for one in functions if one.name.startswith("test_") or one.decorator_list]
        if any(argument.arg == "study" for one in takes for argument in one.args.args):
            assert file.stem.removeprefix("test_") in OF_SMOKE, file


WORKFLOWS = {path.stem: path.read_text() for path in ROOT.glob(".github/workflows/*.yml")}
# What a job may write, and why: the site is published, and newer locks are proposed.
MAY_WRITE = {("site", "publish"): {"pages", "id-token"}, ("locks", "upgrade"): {"contents", "pull-requests"}}
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def called(text: str) -> set[str]:
    """The targets that commands make, or that a matrix names for them."""
    words = [
        word for line in re.findall(r"^(?: *- run: )?make ([^|;&#\n]*)", text, re.MULTILINE) for word in line.split()
    ]
    return {word for word in words if re.fullmatch("[a-z][a-z-]+", word)} | set(re.findall(r"suite: ([a-z-]+)", text))


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_job_ends_pins_its_actions_calls_targets_and_writes_only_what_it_must(workflow):
    text = WORKFLOWS[workflow]
    read = yaml.safe_load(text)
    assert read["permissions"] == {"contents": "read"}
    assert called(text) <= TARGETS  # those that a matrix names, too
    for name, job in read["jobs"].items():
        assert job["timeout-minutes"]
        written = {scope for scope, right in job.get("permissions", {}).items() if right == "write"}
        assert written == MAY_WRITE.get((workflow, name), set())
        assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)
        assert called("\n".join(step.get("run", "") for step in job["steps"])) <= TARGETS


def test_every_suite_runs_on_each_push_or_each_week():
    assert "command: [.ci/run, make test-rest]" in WORKFLOWS["ci"]
    assert "test" in called((ROOT / ".ci/run").read_text())
    suites = {name for name in TARGETS if name == "test" or name.startswith("test-")}
    assert suites - {"test", "test-rest", "test-all"} <= called(WORKFLOWS["weekly"])
    assert "schedule:" in WORKFLOWS["weekly"]


def test_the_audit_reads_every_file_that_pins_packages_and_locks_of_one_environment_agree():
    recipe = MAKEFILE.partition("\naudit:")[2].partition("\n\n")[0]
    audited = {file for pattern in re.findall(r"(?:envs|plugins)/[\w*./-]+", recipe) for file in ROOT.glob(pattern)}
    files = [*(ROOT / "envs").iterdir(), *ROOT.glob("plugins/*/*")]
    pinning = {path for path in files if path.suffix in (".lock", ".txt") and "==" in path.read_text()}
    package = ROOT / "plugins/lm_polygraph"
    assert pinning - audited == {package / "lm-polygraph.txt"}  # which is the end of its lock
    assert (package / "lm-polygraph.txt").read_text().splitlines()[-1] in (package / "requirements.lock").read_text()
    together = [ROOT / f"envs/{name}" for name in ("torch.txt", "base.lock", "dev.lock", "dicom.lock")]
    versions: dict[str, set[str]] = {}
    for file in (*together, *ROOT.glob("plugins/*/requirements.lock")):
        for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", file.read_text(), re.MULTILINE):
            versions.setdefault(name, set()).add(version)
    assert {"torch", "numpy", "pytest", "pydicom", "lm-polygraph"} <= versions.keys()
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
