"""What tests of files that mean harm begin with: a checkpoint, a study's readers, and a service."""

import shutil
from pathlib import Path

import pytest

from dualread.artifacts.tensors import read_header, read_tensors, write_tensors
from tests import families
from tests.apps.ask.conftest import ask, service, study

__all__ = ["ask", "service", "study"]


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """A checkpoint without harm; no test edits it."""
    return families.build("qwen2_5_vl", tmp_path_factory.mktemp("plain") / "model")


@pytest.fixture
def folder(plain, tmp_path):
    return shutil.copytree(plain, tmp_path / "mine")


@pytest.fixture(scope="session")
def readers(studies):
    """A study whose readers a test may copy and edit."""
    return studies()


def edited(reader: Path, out: Path, place: str, value: object) -> Path:
    """Return a copy of a reader's file in `out` that says something else in one place of its header."""
    header = of = read_header(reader / "reader.safetensors")
    *inside, last = place.split(".")
    for name in inside:
        of = of[name]
    of[last] = value
    out.mkdir(exist_ok=True)
    write_tensors(out / "reader.safetensors", read_tensors(reader / "reader.safetensors"), header)
    return out / "reader.safetensors"
