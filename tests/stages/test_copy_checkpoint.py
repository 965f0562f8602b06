import shutil

import pytest

from dualread.artifacts.tables import read_table
from dualread.errors import ArtifactError
from dualread.schema.backbones import CopyCheckpointSpec
from dualread.schema.base import Repository
from dualread.schema.columns import TRAIN_LOG
from dualread.stages import copy_checkpoint
from tests.tiny import MODEL

LEFT_OUT = ("README.md", "old.bin")


@pytest.fixture
def mine(study, tmp_path):
    """A checkpoint as it was published, with a page about it and weights in another format."""
    folder = shutil.copytree(study.tiny.checkpoint, tmp_path / "mine")
    for name in LEFT_OUT:
        (folder / name).write_text(name)
    return folder


def enter(out, repository=None, **inputs):
    out.mkdir()
    spec = CopyCheckpointSpec(model=MODEL, repository=repository)
    return copy_checkpoint.compute(spec, inputs, out)


def test_a_folder_becomes_an_actor(study, mine, tmp_path):
    out = tmp_path / "out"
    said = enter(out, source=mine)
    expected = {path.name for path in study.tiny.checkpoint.iterdir()}
    assert {path.name for path in (out / "checkpoint").iterdir()} == expected
    assert read_table(out / "train_log.parquet", TRAIN_LOG).height == 0
    assert said == f"copied {len(expected)} files of {mine}"


@pytest.mark.parametrize(
    "missing", ["config.json", "tokenizer_config.json", "processor_config.json", "model.safetensors"]
)
def test_what_is_no_checkpoint_is_refused_with_what_it_lacks(mine, tmp_path, missing):
    (mine / missing).unlink()
    with pytest.raises(ArtifactError, match=rf"mine: no file .*{missing}.*\. Expected "):
        enter(tmp_path / "out", source=mine)
    assert not list((tmp_path / "out").iterdir())


def test_a_hub_repository_is_taken_at_its_revision(mine, tmp_path, monkeypatch):
    asked = {}

    def snapshot_download(repository, **options):
        asked.update(options, repository=repository)
        return mine

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    out = tmp_path / "out"
    enter(out, Repository(hub="a/b", revision="c" * 40))
    assert (asked["repository"], asked["revision"]) == ("a/b", "c" * 40)
    assert (out / "checkpoint" / "model.safetensors").exists()
