"""A reader's file names our plugins, or those of packages that the user has named; nothing else is imported (E1)."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dualread import plugins
from dualread.apps.score import ScorerChoice
from dualread.apps.score.loading import ChosenReaders
from dualread.artifacts.tensors import read_header, read_tensors, write_tensors
from dualread.errors import ArtifactError, DualReadError
from dualread.limits import UntrustedNameError
from dualread.readers import base
from tests import golden
from tests.apps.score import small
from tests.architectures import others_in_rest
from tests.readers import synthetic
from tests.security import conftest

PACKAGE = "chest_reader"
NAMES = (f"{PACKAGE}.weights_io", "dualread.apps.store.gc", "dualread.readers.linear", "antigravity.x", f"{PACKAGE}.")
# Where a file may name a plugin: (place in the header, value). Views are those of the methods `expected` and `per`.
NAMED = {
    "module": f"{PACKAGE}.weights_io",
    "parents.pre.module": f"{PACKAGE}.weights_io",
    "parents.post.parents.state.module": f"{PACKAGE}.weights_io",
    "provenance.scoring.contract": f"{PACKAGE}.weights_io",
    "parents.pre.provenance.scoring.contract": f"{PACKAGE}.weights_io",
    "provenance.scoring.views": [{**small.CORE.model_dump(), "image": f"{PACKAGE}.weights_io"}],
    "parents.post.provenance.scoring.views": [
        {**small.CORE.model_dump(), "image": {"name": f"{PACKAGE}.weights_io", "settings": {}}}
    ],
    "parents.post.parents.state.provenance.scoring.views": [
        {**small.CORE.model_dump(), "measure": {"name": f"{PACKAGE}.weights_io", "settings": {}}}
    ],
    "provenance.scoring.spans": {f"{PACKAGE}.weights_io": {}},
    "provenance.scoring.prompt.name": f"{PACKAGE}.weights_io",
    "parents.pre.provenance.scoring.views": [
        {**small.CORE.model_dump(), "prompt": {"name": f"{PACKAGE}.weights_io", "sha256": "0" * 64}}
    ],
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that is a reader, a format, an image change and a measure; whoever looks for it is noted."""
    folder = tmp_path / "path" / PACKAGE
    folder.mkdir(parents=True)
    code = Path(plugins.file_of("readers", "verbalized")).read_text()
    more = ["def parse(text): ...", "def change(*given): ...", "def measure(*given): ...", "def spans(*given): ..."]
    (folder / "weights_io.py").write_text("\n\n".join([code, *more]))
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.chdir(folder.parent)
    looked = []

    class Watch:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] in (PACKAGE, "antigravity") or name == "dualread.apps.store.gc":
                looked.append(name)

    monkeypatch.setattr(sys, "meta_path", [Watch, *sys.meta_path])
    importlib.invalidate_caches()
    yield looked
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def edited(readers, out, place, value):
    """Return a copy of the reader `dualread` that says something else in one place."""
    file = conftest.edited(readers.reader("dualread"), out, place, value)
    if place.endswith("module") and value == NAMED["module"]:
        return conftest.edited(out, out, f"{place.removesuffix('module')}settings", {})
    return file


def opened(file, *named):
    """Return a reader, as whatever scores opens it, with what it says of its actor."""
    return ChosenReaders.load(ScorerChoice(reader=file, plugins=named)).by_method.popitem()[1]


def places(of, inside=""):
    """Yield the place of each text, and of each name of a mapping's entry."""
    for name, value in of.items() if isinstance(of, dict) else enumerate(of):
        if isinstance(value, dict | list):
            yield from places(value, f"{inside}{name}.")
        elif isinstance(value, str) and isinstance(of, dict):
            yield f"{inside}{name}"


def test_what_refuses_a_name_says_which_in_which_file_and_field_and_what_to_do(readers, tmp_path, package):
    def refused(place, value):
        return golden.message_of(lambda: opened(edited(readers, tmp_path, place, value)), tmp_path)

    found = {place: refused(place, value) for place, value in NAMED.items()}
    assert package == []
    golden.check(Path(__file__).with_name("named_modules.txt"), found)


@pytest.mark.parametrize("name", others_in_rest(NAMES, n_often=2))
def test_no_text_of_a_header_is_ever_looked_up_as_a_module(readers, tmp_path, package, name):
    header = read_header(readers.reader("dualread") / "reader.safetensors")
    lists = [f"{of}provenance.features" for of in ("", "parents.pre.", "parents.post.")]
    for place in [place for place in places(header) if ".checkpoint." not in place]:
        try:
            opened(edited(readers, tmp_path, place, name))
        except DualReadError:
            continue
        assert place.rpartition(".")[2] not in ("module", "contract"), place
    for place in lists:
        opened(edited(readers, tmp_path, place, [name]))
    assert package == []
    assert not [module for module in sys.modules if module.partition(".")[0] == PACKAGE]


@pytest.mark.parametrize("place", NAMED)
@pytest.mark.parametrize("named", [PACKAGE, f"{PACKAGE}.weights_io"])
def test_a_package_that_the_user_has_named_may_be_named(readers, tmp_path, package, place, named):
    file = edited(readers, tmp_path, place, NAMED[place])
    assert opened(file, "another_package", named)
    with pytest.raises(UntrustedNameError):
        opened(file, "another_package", f"{PACKAGE}.other", "chest", "")


def test_a_reader_of_a_named_package_scores(readers, tmp_path, package):
    file = readers.reader("rlvr") / "reader.safetensors"
    own = tmp_path / "reader.safetensors"
    write_tensors(own, read_tensors(file), {**read_header(file), "module": f"{PACKAGE}.weights_io"})
    reader = opened(own, PACKAGE)
    answers = synthetic.examples(5).answers
    ours = base.score(opened(file), answers)
    assert np.array_equal(base.score(reader, answers).confidence, ours.confidence)
    assert package  # now it was looked for


def test_old_files_may_have_the_whole_name_of_a_module_of_ours_and_a_list_is_no_way_around(readers, tmp_path):
    own = {"parents.pre.module": "readers.psr", "provenance.scoring.contract": "grading.contracts.single"}
    for place, value in own.items():
        assert opened(edited(readers, tmp_path, place, f"dualread.{value}"))
    for place in ("provenance", "parents.pre.provenance"):
        with pytest.raises(ArtifactError):
            opened(edited(readers, tmp_path, place, [["scoring", {"contract": NAMES[0]}]]))


def test_a_folder_in_the_working_directory_takes_no_package_s_place(tmp_path):
    """`python -m` looks there first; a bundle that was cloned has the name that its owner gave it."""
    for name in ("polars", "yaml", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('ran')")
    command = [sys.executable, "-m", "dualread", "schema", "predictions"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "confidence" in done.stdout) == (0, True), done.stderr
