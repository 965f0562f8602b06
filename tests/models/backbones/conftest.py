import shutil

import pytest


@pytest.fixture
def folder(tiny, tmp_path):
    """A copy of the checkpoint that tests can damage."""
    return shutil.copytree(tiny.checkpoint, tmp_path / "mine")


@pytest.fixture
def copy_of(tmp_path):
    """Copy a checkpoint, so that tests can change it."""
    return lambda checkpoint: shutil.copytree(checkpoint, tmp_path / "changed")
