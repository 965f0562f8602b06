"""What people read is true: links and paths exist, tables of files are complete, and the commands of the README run."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import dualread
from tests.study.test_config import merged

REPOSITORY = Path(__file__).parents[1]
LIBRARY = REPOSITORY / "lib/dualread"
DOCS = sorted(path.name for path in REPOSITORY.glob("docs/*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{name}" for name in DOCS)]


def read(page: str) -> str:
    return (REPOSITORY / page).read_text()


def test_the_readme_is_short():
    assert len(read("README.md").splitlines()) <= 200


@pytest.mark.parametrize("page", PAGES)
def test_links_and_paths_lead_somewhere(page):
    folder = (REPOSITORY / page).parent
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(page)):
        assert "://" in target or (folder / target).exists(), target
    for path in set(re.findall(r"(?<![\w/.])(?:workflow|envs|docs|rules|lib|tests|benchmarks)/[\w./-]+\w(?![\w<])", read(page))):
        assert (REPOSITORY / path).exists(), path


def test_every_page_is_in_the_sites_navigation():
    listed = {page for entry in yaml.safe_load(read("mkdocs.yml"))["nav"] for page in entry.values()}
    assert listed == set(DOCS)


def test_the_structure_names_every_room_of_the_library():
    """Each is a row of the table, or a module that a row names; and each folder of the repository is in the tree."""
    rows = [row.split("|")[1] for row in read("docs/structure.md").splitlines() if row.startswith("| `")]
    named = {name.strip("/") for row in rows for name in re.findall(r"`(\w+)/?`", row)}
    rooms = {path.stem for path in LIBRARY.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert named == {room for room in rooms if not room.startswith("__")}


def test_a_room_says_what_it_is():
    for path in LIBRARY.iterdir():
        if (path / "__init__.py").exists():
            assert (path / "__init__.py").read_text().startswith('"""'), path


def test_the_table_of_stages_names_every_stage():
    table = read("docs/running.md").split("## The stages")[1].split("\n## ")[0]
    named = {name for line in table.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    assert {path.stem for path in (LIBRARY / "stages").glob("[a-z]*.py")} == named


def test_the_map_points_to_files_of_the_library():
    rows = [row for row in read("docs/paper-map.md").splitlines() if row.startswith("| ")][1:]
    for row in rows:
        for name in re.findall(r"`([\w./*]+)`", row.split("|")[3]):
            assert list(LIBRARY.glob(name)), name


def test_the_changelog_begins_with_this_version():
    assert re.search(r"^## ([\d.]+)", read("CHANGELOG.md"), re.MULTILINE)[1] == dualread.__version__


def test_the_readmes_first_command_gives_metrics(tmp_path):
    command = re.search(r"^dualread (evaluate .*) --out mine$", read("README.md"), re.MULTILINE)[1]
    words = [sys.executable, "-m", "dualread", *command.split(), "--out", str(tmp_path / "mine"), "--replicates", "200"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert re.search(r"^natural_ccg_auc +0\.\d+ +0\.\d+ to 0\.\d+", done.stdout, re.MULTILINE)
    assert {path.name for path in (tmp_path / "mine").iterdir()} >= {"metrics.csv", "reliability.pdf"}


def test_the_form_that_the_readme_shows_is_the_one_that_evaluate_reads(tmp_path):
    shown = re.findall(r"```\n(sample_id,.*?)```", read("README.md"), re.DOTALL)
    for name, text in zip(("predictions.csv", "pairs.csv"), shown, strict=True):
        (tmp_path / name).write_text(text)
        assert text in read("docs/evaluate.md")
    words = [sys.executable, "-m", "dualread", "evaluate", "predictions.csv", "--pairs", "pairs.csv"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"^accuracy +0\.6667 ", done.stdout, re.MULTILINE)


def choices() -> list[str]:
    """The entries of docs/choices.md, each on one line."""
    entries = re.findall(r"^- \*\*.*?(?=^- |^#|\Z)", read("docs/choices.md"), re.DOTALL | re.MULTILINE)
    return [" ".join(entry.split()) for entry in entries]


def name_of_choice(entry: str) -> str:
    return entry.split("**")[1].rstrip(".")


def is_key(tree: Any, names: list[str]) -> bool:
    """Whether a nested mapping has the keys `names`, where `*` is any key."""
    if not names:
        return True
    if not isinstance(tree, Mapping):
        return False
    below = tree.values() if names[0] == "*" else [tree[names[0]]] if names[0] in tree else []
    return any(is_key(entry, names[1:]) for entry in below)


@pytest.mark.parametrize("entry", choices(), ids=name_of_choice)
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
