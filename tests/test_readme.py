"""The README's tree names every file of the library and nothing else; the paths and keys that it gives exist."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_config import merged

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text()
LIBRARY = REPOSITORY / "lib/dualread"


def tree() -> str:
    return README.split("## The tree")[1].split("```")[1]


def listed() -> set[str]:
    """Every file of the tree's library part, relative to lib/dualread."""
    lines = tree().split("lib/dualread/           ")[1].splitlines()[1:]
    files, folder = set(), ""
    for line in lines:
        if not line.startswith("  "):
            break
        indent = len(line) - len(line.lstrip())
        names = re.match(r"\s*((?:[\w./-]+  )*[\w./-]+)", line)[1].split()
        names = [name for name in names if "." in name or name.endswith("/")]
        folder = "/".join(folder.split("/")[: indent // 2 - 1])
        folder += "/" if folder else ""
        files.update(folder + name for name in names if not name.endswith("/"))
        folder += next((name for name in names if name.endswith("/")), "")
    return files


def test_the_tree_names_every_file_of_the_library():
    there = {
        str(path.relative_to(LIBRARY))
        for path in LIBRARY.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("__")
    }
    stages = {name for name in there if name.startswith("stages/")}
    assert listed() == there - stages  # stages have a table of their own


def test_the_pipeline_table_names_every_stage():
    table = README.split("## The pipeline in one line")[1].split("## ")[0]
    named = {name for line in table.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    assert {path.stem for path in (LIBRARY / "stages").glob("[a-z]*.py")} == named


def test_named_paths_exist():
    for path in set(re.findall(r"(?:workflow|envs|docs|rules|lib)/[\w./-]+\w", README)):
        assert (REPOSITORY / path).exists(), path


def test_the_map_points_to_files_of_the_library():
    rows = README.split("## From the paper to a file")[1].split("## ")[0].splitlines()
    cells = [row.split("|")[3] for row in rows if row.startswith("| ") and "---" not in row][1:]
    for cell in cells:
        folder = ""
        for name in re.findall(r"`([\w./*]+)`", cell):
            folder = name.rpartition("/")[0] or folder
            target = name if "/" in name else f"{folder}/{name}"
            assert list(LIBRARY.glob(target)), target


def choices() -> list[str]:
    """The entries of "Deviations and choices", each on one line."""
    section = README.split("## Deviations and choices")[1].split("Discrepancies of the paper")[0]
    return [" ".join(entry.split()) for entry in section.split("\n- ")[1:]]


def is_key(tree: Any, names: list[str]) -> bool:
    """Whether a nested mapping has the keys `names`, where `*` is any key."""
    if not names:
        return True
    if not isinstance(tree, Mapping):
        return False
    below = tree.values() if names[0] == "*" else [tree[names[0]]] if names[0] in tree else []
    return any(is_key(entry, names[1:]) for entry in below)


@pytest.mark.parametrize("entry", choices(), ids=lambda entry: entry.split("**")[1])
def test_a_choice_names_where_it_is_decided(entry):
    named = re.findall(r"`([\w*./-]+)`", entry)
    files = [name for name in named if re.fullmatch(r"[\w/-]+\.(?:py|txt|json|yaml)", name)]
    keys = [name for name in named if name not in files and re.fullmatch(r"\w+(?:\.[\w*]+)+", name)]
    assert files or keys
    for file in files:
        assert any((root / file).is_file() for root in (LIBRARY, REPOSITORY)), file
    study = yaml.safe_load((REPOSITORY / "workflow/studies/paper.yaml").read_text())
    config = merged(yaml.safe_load((REPOSITORY / "config.yaml").read_text()), study)
    for key in keys:
        assert is_key(config, key.split(".")), key
