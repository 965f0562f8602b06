"""The spine that docs/structure.md lists is short, is walked by the tour, and makes no detours."""

import ast
import re

import pytest

from dualread import plugins
from tests.test_docs import REPOSITORY, read
from tests.test_tour import source

LISTED = read("docs/structure.md").split("\n## The spine\n")[1].split("\n## ")[0]
QUESTION, EDIT = (
    re.findall(r"^\|[^|]*\| `([\w./]+)` \|", road, re.MULTILINE) for road in LISTED.split("And the road of one edit")
)
SPINE = [*QUESTION, *EDIT]


def imported(file: str) -> set[str]:
    """The modules of the library, and the names in them, that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(read(file))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def is_plugin(file: str) -> bool:
    package, name = file.removeprefix("lib/dualread/").removesuffix(".py").replace("/", ".").rsplit(".", 1)
    return any(folder == package and name in plugins.known(of) for of, (folder, _) in plugins.FAMILIES.items())


def test_the_spine_is_read_in_an_afternoon():
    assert len(set(SPINE)) == len(SPINE) <= 27
    assert sum(len(read(file).splitlines()) for file in SPINE) <= 3150
    assert "at most 3,150 lines" in LISTED


def test_the_tour_visits_each_file_in_the_order_of_the_spine():
    shown = [one.file for one in source.excerpts(read("docs/tour.md"), REPOSITORY / "docs")]
    first = sorted(SPINE, key=lambda file: shown.index(file))  # a ValueError names a file that the tour does not visit
    assert first == SPINE


@pytest.mark.parametrize("file", [file for file in QUESTION if "/stages/" not in file])
def test_a_step_is_called_by_a_stage_or_by_a_step_before_it(file):
    """What stages share (`stages/_*.py`) counts as a stage. Plugins are loaded by the name that the config gives."""
    module = file.removeprefix("lib/").removesuffix(".py").replace("/", ".")
    stages = [str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("lib/dualread/stages/*.py")]
    callers = [*stages, *QUESTION[: QUESTION.index(file)]]
    assert is_plugin(file) or any(module in imported(caller) for caller in callers)
