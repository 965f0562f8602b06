"""`pip install` of a wheel and of an sdist brings what `dualread evaluate` needs, on each Python of this machine."""

import math
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from dualread.apps.evaluate.evaluation import evaluate

pytestmark = pytest.mark.rest

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs/example"
# Where people keep further Pythons: on the PATH, and where pyenv and uv put them.
KEPT = (".pyenv/versions/{}*/bin/python{}", ".local/share/uv/python/cpython-{}*/bin/python{}")
# What the dependencies of pyproject.toml bring, and nothing else: no matplotlib, no jinja2, no torch.
PACKAGES = {"numpy", "polars", "polars-runtime-32", "pyyaml", "scipy", "tqdm"} | {
    *("pydantic", "pydantic-core", "annotated-types", "typing-extensions", "typing-inspection")
}
METRICS_ON_ARRAYS = """
import importlib.abc, sys
ALLOWED = {"dualread", "numpy", "scipy", *sys.stdlib_module_names, *sys.builtin_module_names}
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if path is None and name not in ALLOWED and not name.startswith("_"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refuse())
import numpy as np
from dualread.evaluation.metrics import auroc, ece_noise_floor, natural_ccg_auc
print(auroc(np.float32([.9, .8, .3]), [1, 0, 0]))
assert not {"polars", "pydantic"} & set(sys.modules)
"""


def run(*command: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that sees nothing of this environment and this checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run([*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True)


def python_of(version: str) -> Path | None:
    """Return a Python of this minor version that runs."""
    found = [shutil.which(f"python{version}")]
    found += [path for place in KEPT for path in sorted(Path.home().glob(place.format(version, version)))]
    for path in filter(None, found):
        done = run(path, "-c", "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])")
        if done.returncode == 0 and done.stdout.strip() == version:
            return Path(path)
    return None


@dataclass(frozen=True)
class Built:
    """The two files that a release has."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist of this checkout, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    shutil.copytree(ROOT / "lib", source / "lib", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    shutil.copytree(EXAMPLE, source / "docs/example")
    shutil.copytree(ROOT / "tests", source / "tests", ignore=shutil.ignore_patterns("*_*", "__pycache__"))
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"):
        shutil.copy(ROOT / name, source)
    build = "import sys; from setuptools import build_meta; getattr(build_meta, f'build_{sys.argv[1]}')(sys.argv[2])"
    assert run(sys.executable, "-c", build, "sdist", folder, folder=source).returncode == 0
    (sdist,) = folder.glob("dualread-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    assert not (unpacked / "tests").exists()
    assert run(sys.executable, "-c", build, "wheel", folder, folder=unpacked).returncode == 0
    (wheel,) = folder.glob("dualread-*.whl")
    return Built(sdist=sdist, wheel=wheel)


def test_the_wheel_holds_every_file_of_the_library(built):
    packed = {name for name in zipfile.ZipFile(built.wheel).namelist() if name.startswith("dualread/")}
    files = [path for path in (ROOT / "lib/dualread").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert packed == {str(path.relative_to(ROOT / "lib")) for path in files}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Skip tests where pip reaches no index (--isolated would leave out the one that it is configured to ask)."""
    asked = run(sys.executable, "-m", "pip", "download", "--no-deps", "-d", tmp_path_factory.mktemp("asked"), "tqdm")
    if asked.returncode:
        pytest.skip(f"pip reaches no package index: {asked.stderr.strip().splitlines()[-1]}")


def pip(environment: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the pip that is locked here in an environment without one: to put one there takes longer than to install."""
    return run(sys.executable, "-m", "pip", "--python", environment / "bin/python", *words)


PYTHONS = ("3.11", "3.12", "3.13")


@pytest.fixture(scope="module", params=PYTHONS)
def environment(request, built, index, tmp_path_factory):
    """An environment of one Python in which pip has installed the wheel, with what it declares."""
    if (python := python_of(request.param)) is None:
        pytest.skip(f"no Python {request.param} on this machine")
    folder = tmp_path_factory.mktemp("environment")
    assert run(python, "-m", "venv", "--without-pip", folder).returncode == 0
    done = pip(folder, "install", "--no-compile", built.wheel)
    assert done.returncode == 0, done.stderr
    return folder


def check_evaluate(environment: Path, folder: Path) -> None:
    for name in ("predictions.csv", "pairs.csv"):
        shutil.copy(EXAMPLE / name, folder)
    command = [environment / "bin/dualread", "evaluate", "predictions.csv", "--pairs", "pairs.csv", "--out", "mine"]
    done = run(*command, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(
        "wrote mine: metrics.csv, graded.csv\n"
        "no figures, because matplotlib is not installed. Run: pip install 'dualread[plots]'.\n"
    )
    here = evaluate(EXAMPLE / "predictions.csv", EXAMPLE / "pairs.csv").metrics
    there = pl.read_csv(folder / "mine/metrics.csv", schema_overrides=here.schema)
    for name in ("metric", "n", "reason"):
        assert there[name].to_list() == here[name].to_list()
    for name in ("estimate", "low", "high"):
        expected = here[name].fill_null(math.nan).to_list()
        assert there[name].fill_null(math.nan).to_list() == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True)


def test_a_wheel_brings_what_evaluate_needs_and_nothing_else(environment, tmp_path):
    listed = pip(environment, "list", "--format", "freeze").stdout.split()
    names = {line.partition("==")[0].lower().replace("_", "-") for line in listed}
    assert names == {*PACKAGES, "dualread"}
    check_evaluate(environment, tmp_path)


@pytest.mark.parametrize("environment", PYTHONS[:1], indirect=True)
def test_an_sdist_installs_the_same(environment, built, tmp_path):
    """On one Python: the wheel that the others have was built from it."""
    installed = pip(environment, "install", "--no-compile", "--force-reinstall", "--no-deps", built.sdist)
    assert installed.returncode == 0, installed.stderr
    check_evaluate(environment, tmp_path)


def test_metrics_of_arrays_need_numpy_and_scipy_alone(environment):
    done = run(environment / "bin/python", "-c", METRICS_ON_ARRAYS)
    assert (done.stdout, done.stderr) == ("1.0\n", "")


def test_what_is_missing_for_another_verb_is_one_extra(environment, tmp_path):
    done = run(environment / "bin/dualread", "report", tmp_path, folder=tmp_path)
    assert done.stderr.endswith("Run: pip install 'dualread[study]'.\n")
    question = ["--image", "x.png", "--question", "Is there a lesion?"]
    done = run(environment / "bin/dualread", "score", "--reader", tmp_path, *question, folder=tmp_path)
    assert done.stderr.endswith("Run: pip install 'dualread[models]'.\n")
