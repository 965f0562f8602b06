import shutil

import pytest


@pytest.fixture
def folder(tiny, tmp_path):
    """A copy of the checkpoint that tests can damage."""
    return shutil.copytree(tiny.checkpoint, tmp_path / "mine")
