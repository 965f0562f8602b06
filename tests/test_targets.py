"""Every test is run by a target of the Makefile, and continuous integration runs what needs no special machine."""

import ast
import itertools
import re
import tomllib
from pathlib import Path

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
