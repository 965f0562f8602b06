import gc
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import dualread
from dualread import plugins
from dualread.errors import ConfigError


@pytest.fixture
def family(tmp_path, monkeypatch):
    """A family `pets` inside dualread: two plugins, and files that are not plugins."""
    folder = tmp_path / "pets"
    folder.mkdir()
    for name, text in {
        "__init__": "",
        "cat": "def speak():\n    return 'meow'\n",
        "dog": "import not_installed_anywhere\ndef speak():\n    return 'woof'\n",
        "_shared": "def speak():\n    return ''\n",
        "names": "NAMES = ('speak',)\n",
    }.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.setattr(dualread, "__path__", [*dualread.__path__, str(tmp_path)])
    monkeypatch.setitem(plugins.FAMILIES, "pets", ("pets", "speak"))
    plugins.known.cache_clear()
    plugins.declared.cache_clear()
    yield
    plugins.known.cache_clear()
    plugins.declared.cache_clear()
    for name in [name for name in sys.modules if name.startswith("dualread.pets")]:
        del sys.modules[name]


@pytest.mark.usefixtures("family")
def test_plugins_are_found_without_importing_them_and_loaded_by_name():
    assert plugins.known("pets") == ("cat", "dog")
    assert plugins.declared("pets", "dog", "FACTS") is None
    assert not [name for name in sys.modules if name.startswith("dualread.pets")]
    assert plugins.load("pets", "cat").speak() == "meow"
    for name in ("cow", "_shared", "names", ""):
        with pytest.raises(ConfigError, match=r"pets: no plugin named .* Known: cat, dog\."):
            plugins.load("pets", name)
    for of in (lambda: plugins.declared("pets", "cow", "FACTS"), lambda: plugins.summary("pets", "cow")):
        with pytest.raises(ConfigError, match="no plugin named 'cow'"):
            of()


def test_a_module_of_no_family_fails_with_the_packages_that_hold_plugins():
    with pytest.raises(ConfigError, match=r"no_such_family\.x: .*'no_such_family'.*data\.datasets"):
        plugins.load_module("no_such_family.x")


def test_looking_for_plugins_imports_nothing_heavy():
    program = (
        "import sys; from dualread import plugins\n"
        "for family in plugins.FAMILIES: plugins.known(family)\n"
        "assert not {'torch', 'transformers', 'trl'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.usefixtures("family")
def test_a_summary_is_the_first_paragraph_and_nothing_is_imported():
    _rewrite("dog", '"""A dog, which\n  barks.\n\nMore.\n"""\ndef speak(): ...\n')
    assert plugins.summary("pets", "dog") == "A dog, which barks."
    assert "dualread.pets.dog" not in sys.modules


def _rewrite(name, text):
    folder = next(path for path in plugins._files("pets") if path.stem == "dog").parent
    (folder / f"{name}.py").write_text(text)
    plugins.known.cache_clear()
    plugins.declared.cache_clear()
    return folder / f"{name}.py"


@pytest.mark.usefixtures("family")
@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("N = 2\nFACTS = {'k': N}\n", 2, "{'k': N}"),
        ("FACTS = dict(k={})\n", 1, "dict(k={})"),
        ("import sys\nif sys.maxsize > 9:\n    FACTS = {'k': {}}\n", 3, "under `if`"),
        ("try:\n    FACTS = {}\nexcept ValueError:\n    pass\n", 2, "another way"),
        ("from math import pi as FACTS\n", 1, "by an import"),
        ("FACTS, OTHER = {}, {}\n", 1, "unpacking"),
        ("FACTS = {}\nFACTS = {'k': {}}\n", 2, "lines 1, 2"),
        ("FACTS = {}\nFACTS['k'] = {}\n", 2, "lines 1, 2"),
        ("FACTS = {}\nFACTS |= {'k': {}}\n", 2, "lines 1, 2"),
    ],
)
def test_a_constant_that_cannot_be_read_without_an_import_is_reported(text, line, found):
    file = _rewrite("dog", f"{text}def speak(): ...\n")
    with pytest.raises(ConfigError) as error:
        plugins.declared("pets", "dog", "FACTS")
    message = str(error.value)
    assert message.startswith(f"{file}: line {line}: FACTS ")
    assert found in message
    assert "Expected one assignment of a literal" in message


@pytest.mark.usefixtures("family")
@pytest.mark.parametrize(
    "text",
    [
        "FACTS: dict\nFACTS = {'k': -1}\n",
        "FACTS: dict = {'k': -1}\n",
        "OTHER = FACTS = {'k': -1}\n",
        "FACTS = {'k': -1}\ndef local():\n    FACTS = 3\n",
    ],
)
def test_every_plain_assignment_of_a_literal_is_read(text):
    _rewrite("dog", f"{text}def speak(): ...\n")
    assert plugins.declared("pets", "dog", "FACTS") == {"k": -1}


@pytest.mark.usefixtures("family")
def test_a_file_that_is_no_plugin_is_reported_and_the_nearest_one_is_suggested():
    with pytest.raises(ConfigError, match=r"Known: cat, dog\. Did you mean 'cat'\?"):
        plugins.load("pets", "cats")
    for text, name, said in (
        ("FACTS = {}\ndef speak(:\n", "cat", "cow.py: line 2: not valid Python"),
        ("def speek(): ...\n", "cow", "defines no function 'speak'"),
    ):
        file = _rewrite("cow", text)
        with pytest.raises(ConfigError, match=said) as error:
            plugins.load("pets", name)
        assert str(file) in str(error.value)


def test_a_package_that_is_missing_is_named_with_the_command_of_its_folder(tmp_path, monkeypatch):
    folder = tmp_path / "plugins/pets"
    (folder / "dualread_pets").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[tool.dualread]\ninstall = "make pets"\n')
    monkeypatch.setattr("dualread.source_snapshot.ROOT", tmp_path / "lib/dualread")
    said = rf"no module 'dualread_pets.cat' in the packages of .* It is in {folder}: `make pets` installs it with all"
    with pytest.raises(ConfigError, match=said):
        plugins.load("readers", "dualread_pets.cat")
    (folder / "pyproject.toml").write_text("")
    with pytest.raises(ConfigError, match=rf"pip install {folder}`"):
        plugins.load("readers", "dualread_pets.cat")
    with pytest.raises(ConfigError, match=r"no module 'no_pets.cat' in the packages of .+\. Expected package\.module"):
        plugins.load("readers", "no_pets.cat")


@pytest.mark.parametrize(
    ("root", "elsewhere"),
    [
        ("dualread.models.generation.vllm_engine", True),
        ("dualread.models.generation.transformers_engine", False),
        ("dualread.training.rollouts.vllm", True),
        ("dualread.training.grpo", False),
    ],
)
def test_what_has_an_environment_of_its_own_is_known(root, elsewhere):
    """A run took trainings with vLLM for outdated each time: it compared their packages with its own."""
    assert plugins.runs_elsewhere(("dualread.stages.train_actor", root)) == elsewhere


@pytest.mark.usefixtures("family")
def test_plugins_are_read_by_several_threads_at_once():
    """Requests of a server do so. Without a lock, CPython 3.11 fails if a thread comes in while memory is collected."""
    names = [f"pet_{k}" for k in range(40)]
    for name in names:
        _rewrite(name, "FACTS = {'k': [-1, (2, {3: 4})]}\n" * 50 + "def speak(): ...\n")
    threshold = gc.get_threshold()
    gc.callbacks.append(lambda *_: time.sleep(1e-4))
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(4) as threads:
            known = list(threads.map(plugins.known, ["pets"] * 4))
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.pop()
    assert known == [("cat", "dog", *sorted(names))] * 4
