"""What people read is true: links and paths exist, tables of files are complete, and commands are understood."""

import importlib
import importlib.util
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from benchmarks import gallery
from mkdocs.utils.yaml import yaml_load
from snakemake.cli import get_argument_parser

from dualread.apps.main import _MODULES, main
from dualread.schema.study import Config
from dualread.study.config import resolve
from tests.study.embedded import EMBEDDED, merged

REPOSITORY = Path(__file__).parents[1]
LIBRARY = REPOSITORY / "lib/dualread"
DOCS = sorted(path.name for path in REPOSITORY.glob("docs/*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "envs/README.md", *(f"docs/{name}" for name in DOCS)]
PAGES += [str(path.relative_to(REPOSITORY)) for path in sorted(REPOSITORY.glob("plugins/*/README.md"))]
# Files whose comments are read like documents.
COMMENTED = [
    "config.yaml",
    *(str(path.relative_to(REPOSITORY)) for path in sorted(REPOSITORY.glob("workflow/*/**/*.yaml"))),
]
WRITTEN_BY_COMMANDS = {"tuned/bicr.yaml", "store.yaml", "mine.yaml"}
WRITTEN_STUDIES = {"ours.yaml"}


def read(page: str) -> str:
    return (REPOSITORY / page).read_text()


def hook(name: str) -> ModuleType:
    """A module of the site's build, which is no part of the library."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / f"docs/hooks/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [*PAGES, *COMMENTED])
def test_links_and_paths_lead_somewhere(page):
    folder = (REPOSITORY / page).parent
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(page)):
        # A page of GitHub, whose address says neither where the repository is nor what its branch is called.
        if badge := re.fullmatch(r"\.\./\.\./actions/(workflows/\w+\.yml)(?:/badge\.svg)?", target):
            target = REPOSITORY / ".github" / badge[1]
        assert "://" in str(target) or (folder / target).exists(), target
    folders = "workflow|envs|docs|rules|lib|plugins|tests|benchmarks"
    added = set(re.findall(rf"`((?:{folders})/[\w./-]+)`\n\n```", read(page)))  # files that the reader writes
    for path in set(re.findall(rf"(?<![\w/.])(?:{folders})/[\w./-]+\w(?![\w<])", read(page))) - added:
        assert (REPOSITORY / path).exists(), path


def navigation() -> list[str]:
    """The pages in the navigation of the site, in order."""

    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [page for below in (entry.values() if isinstance(entry, Mapping) else entry) for page in pages(below)]

    return pages(yaml_load(read("mkdocs.yml"))["nav"])


def test_every_page_is_in_the_sites_navigation_once():
    notebooks = {f"notebooks/{path.stem}.md" for path in REPOSITORY.glob("docs/notebooks/*.py")}  # made from these
    assert sorted(navigation()) == sorted({*DOCS, *notebooks})


def test_the_python_api_names_what_there_is():
    page = read("docs/python-api.md")
    for module, members in re.findall(
        r"^::: (\S+)\n(?:    options:\n      members: \[(.*)\])?", page, flags=re.MULTILINE
    ):
        there = vars(importlib.import_module(module))
        assert [name for name in members.split(", ") if name and name not in there] == [], module


def test_the_gallery_shows_each_picture_with_the_command_that_made_it():
    page, folder = read("docs/gallery.md"), REPOSITORY / "docs/gallery"
    assert {path.stem for path in folder.glob("*")} == set(gallery.SHOTS)
    for name, shot in gallery.SHOTS.items():
        assert f"```sh\n{shot.command}\n```" in page.partition(f"](gallery/{name}.png)")[0]
    assert all(path.stat().st_size <= gallery.MOST_BYTES for path in folder.glob("*"))


@pytest.mark.parametrize(
    ("html", "address"),
    [
        ('<script defer src="{}"></script>', "https://unpkg.com/iframe-worker/shim"),
        ('<link rel="stylesheet" href="{}">', "//fonts.example/css?family=Roboto"),
        ('<link href="{}" rel="icon">', "https://a.example/i.svg"),
        ('<img alt="x" src={}>', "http://a.example/x.png"),
        ("<style>p { background: url('{}') }</style>", "https://a.example/y.png"),
        ('<a href="https://a.example">a</a> <link rel="canonical" href="https://a.example/page.html">', None),
        ('<script src="../site/iframe-worker.js"></script><img src="data:image/png;base64,//8=">', None),
    ],
)
def test_the_build_of_the_site_finds_what_pages_load_from_elsewhere(html, address):
    found = hook("offline").loaded_from_elsewhere(html.replace("{}", str(address)))
    assert found == ([address] if address else [])


def test_the_table_of_stages_names_every_stage():
    table = read("docs/running-reference.md").split("## The stages")[1].split("\n## ")[0]
    named = {name for line in table.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    assert {path.stem for path in (LIBRARY / "stages").glob("[a-z]*.py")} == named


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


@cache
def study_of(*files: str) -> dict[str, Any]:
    """The study of config.yaml with `files` laid over it, as the workflow resolves it."""
    config = EMBEDDED
    for file in files:
        config = merged(config, yaml.safe_load(read(file)))
    return resolve(config).as_mapping()


def shown(page: str, kind: str) -> list[str]:
    """The blocks of a page that are marked as "sh", "python", or "" for anything else."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", read(page), re.DOTALL | re.MULTILINE)
    return [text for marked, text in blocks if marked == kind]


def commands(program: str) -> list[tuple[str, str]]:
    """Every line of commands, in a block or an indented comment, that starts with `program`: page and arguments."""
    line = re.compile(rf"^(?:#  +)?{program} (.*?)(?: {{2,}}.*)?$", re.MULTILINE)
    blocks = [(page, "\n".join(shown(page, "sh"))) for page in PAGES]
    blocks += [(page, read(page)) for page in COMMENTED]
    whole = [(page, re.sub(r"\\\n +", "", block)) for page, block in blocks]  # a backslash continues a line
    return sorted({(page, words) for page, block in whole for words in line.findall(block)})


def check_files(files: Sequence[Path | str]) -> dict[str, Any]:
    """The study of the files behind --configfile; those that a command of the page writes are not there yet."""
    return study_of(*(str(file) for file in files if str(file) not in WRITTEN_BY_COMMANDS | WRITTEN_STUDIES))


def is_target(target: str, study: dict[str, Any]) -> bool:
    """Whether the workflow can make `target`: a rule's name, a table or figure of the study, or an actor."""
    rules = {
        name for path in REPOSITORY.glob("rules/*.smk") for name in re.findall(r"^rule (\w+):", path.read_text(), re.M)
    }
    files = {f"tables/{name}.tex" for name in study["tables"]} | {f"figures/{name}.pdf" for name in study["figures"]}
    if path := re.fullmatch(r"results/(\w+)/actors/([\w.-]+)/(\w+)/(\d+)/MANIFEST\.json", target):
        name, backbone, actor, seed = path.groups()
        known = backbone in study["backbones"] and actor in study["actors"] and int(seed) in study["seeds"]
        return name == study["study"] and known
    return target in rules | files


@pytest.mark.parametrize(("page", "words"), commands("snakemake"))
def test_a_snakemake_command_is_understood(page, words):
    """Its options exist, it says how many cores it may use, its studies are valid, and it asks for what they have."""
    options = get_argument_parser().parse_args(shlex.split(words))
    assert options.cores or options.dryrun or options.unlock or options.workflow_profile
    study = check_files(options.configfile)
    written = {str(file) for file in options.configfile or ()} & WRITTEN_STUDIES
    assert written or all(is_target(target, study) for target in options.targets)


@pytest.mark.parametrize(("page", "words"), commands("dualread"))
def test_a_dualread_command_is_understood(page, words, monkeypatch):
    """The program accepts it, and its studies are valid; the command itself is not run."""
    parsed = []
    verb = words.split()[0]
    module = _MODULES.get(verb, verb)
    monkeypatch.setattr(f"dualread.apps.{module}.run", lambda options: parsed.append(options) or 0)
    assert main(shlex.split(words)) == 0
    check_files(getattr(parsed[0], "configfile", None) or [])


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/settings.md"])  # that lists all that may be
def test_a_config_key_that_a_page_names_exists(page):
    sections = "|".join(Config.model_fields)
    keys = re.findall(rf"`((?:{sections})(?:\.[\w*-]+)+)`", read(page))
    studies = [study_of(), study_of("workflow/studies/paper.yaml")]
    for key in keys:
        is_file = re.search(r"\.(csv|tex|pdf|py|yaml|parquet)$", key)
        assert is_file or any(is_key(study, key.split(".")) for study in studies), key


def test_the_data_set_that_a_page_shows_is_valid():
    shown = re.search(r"```\n(datasets:\n.*?)```", read("docs/data-sets.md"), re.DOTALL)[1]
    assert "mine" in resolve(merged(EMBEDDED, yaml.safe_load(shown))).datasets


def test_code_cites_labels_and_choices_that_are_explained():
    explained = set(re.findall(r"^\| `(\w+:\w+)` \|", read("docs/choices.md"), re.MULTILINE))
    names = [name_of_choice(entry) for entry in choices()]
    assert len(set(names)) == len(names)
    code = "\n".join(path.read_text() for path in [*LIBRARY.rglob("*.py"), *REPOSITORY.glob("rules/*.smk")])
    assert set(re.findall(r"\b(?:app|eq|sec):[a-z_]+", code)) <= explained
    assert set(re.findall(r'docs/choices\.md\W{1,8}"([^"\n]+)"', code)) <= set(names)
