"""What `pip install .` installs, and the message if an optional part is missing."""

import ast
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml

import dualread
from dualread.apps import main as program

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}
OWN_ENVIRONMENT = {"vllm"}  # envs/vllm.lock, which pins another transformers
THEIRS = {"inspect_ai", "httpx2"}  # whoever uses an adapter for a harness has it; openai's own client


def declared(requirements):
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def third_party_imports():
    for path in (REPOSITORY / "lib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"dualread"}:
                yield DISTRIBUTIONS.get(top, top.replace("_", "-"))


def test_temporary_files_are_where_something_removes_what_a_kill_leaves():
    """In the machine's folder for them, nobody does. There, `score` removes those of earlier processes itself."""
    makers = ("TemporaryDirectory", "TemporaryFile", "NamedTemporaryFile", "mkdtemp", "mkstemp", "mktemp")
    files = set()
    for path in (REPOSITORY / "lib").rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        made = [node for node in calls if ast.unparse(node.func).rpartition(".")[2] in makers]
        if any("dir" not in {keyword.arg for keyword in node.keywords} for node in made):
            files.add(path.name)
    assert files == {"loading.py"}


def test_every_package_that_the_library_imports_is_declared():
    extras = PROJECT["optional-dependencies"].values()
    known = declared(PROJECT["dependencies"]).union(*map(declared, extras)) - {"dualread"}
    assert set(third_party_imports()) - OWN_ENVIRONMENT - THEIRS <= known


def test_the_declared_bounds_admit_the_locked_versions():
    from packaging.requirements import Requirement

    locked = {}
    for file in ("dev.lock", "base.lock", "torch.txt", "inspect.txt"):
        locked |= dict(re.findall(r"^([\w-]+)==([\w.]+)", (REPOSITORY / "envs" / file).read_text(), re.MULTILINE))
    for text in chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        requirement = Requirement(text)
        if requirement.name != "dualread":
            assert requirement.specifier.contains(locked[requirement.name]), text


def test_one_version_everywhere(capsys):
    with pytest.raises(SystemExit) as stop:
        program.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"dualread {dualread.__version__}\n"
    assert yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())["version"] == dualread.__version__


def test_a_missing_package_is_reported_with_the_command_that_installs_it(tmp_path):
    (tmp_path / "answers.csv").write_text("confidence,correct\n.9,1\n.2,0\n")
    program = (
        "import sys; sys.modules['polars'] = None\n"
        "from dualread.apps.main import main; sys.exit(main(['evaluate', 'answers.csv']))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "dualread evaluate: polars is not installed. Run: pip install 'dualread'.\n"


def test_the_message_gives_the_extra_of_the_verb_or_the_smallest_that_has_the_package(monkeypatch):
    declared = """
        numpy>=2.0
        matplotlib>=3.9; extra == "plots"
        dualread[plots]; extra == "study"
        safetensors>=0.8; extra == "study"
        dualread[study]; extra == "models"
        scikit-learn>=1.7; extra == "models"
        starlette>=1.0; extra == "demo"
        dualread[plots,demo]; extra == "all"
    """
    lines = [line.strip() for line in declared.strip().splitlines()]
    monkeypatch.setattr(program.importlib.metadata, "requires", lambda name: lines)

    def advice(module, verb):
        return program._missing(module, verb).partition("pip install ")[2]

    assert advice("numpy.linalg", "score") == "'dualread'."
    assert advice("matplotlib", "evaluate") == "'dualread[plots]'."
    assert advice("matplotlib.figure", "report") == "'dualread[study]'."
    assert advice("matplotlib", "score") == "'dualread[models]'."
    assert advice("sklearn", "evaluate") == "'dualread[models]'."
    assert advice("starlette", "demo") == "'dualread[demo]'."
    assert advice("some_thing", "score") == "some-thing."
    assert {*program._EXTRAS.values()} <= {*PROJECT["optional-dependencies"]}
    assert {*program._EXTRAS} <= {*program._VERBS}
