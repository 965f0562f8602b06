import pytest

from dualread.artifacts.schemas.train_log import TRAIN_LOG
from dualread.artifacts.tables import read_table
from dualread.errors import ArtifactError
from dualread.stages import copy_checkpoint

FILES = ("config.json", "tokenizer_config.json", "processor_config.json", "model.safetensors", "README.md", "old.bin")


def folder(path, files=FILES):
    path.mkdir()
    for name in files:
        (path / name).write_text(name)
    return path


def test_a_folder_becomes_an_actor(tmp_path):
    (out := tmp_path / "out").mkdir()
    said = copy_checkpoint.compute({"source": {"folder": "mine"}}, {"source": folder(tmp_path / "mine")}, out)
    assert {path.name for path in (out / "checkpoint").iterdir()} == set(FILES[:4])
    assert read_table(out / "train_log.parquet", TRAIN_LOG).height == 0
    assert said == f"copied 4 files of {tmp_path / 'mine'}"


@pytest.mark.parametrize("missing", FILES[:4])
def test_what_is_no_checkpoint_is_refused_with_what_it_lacks(tmp_path, missing):
    source = folder(tmp_path / "mine", [name for name in FILES if name != missing])
    (out := tmp_path / "out").mkdir()
    with pytest.raises(ArtifactError, match=r"mine: no file .*\. Expected a checkpoint in safetensors"):
        copy_checkpoint.compute({"source": {"folder": "mine"}}, {"source": source}, out)


def test_a_hub_repository_is_taken_at_its_revision(tmp_path, monkeypatch):
    asked = {}

    def snapshot_download(repository, **options):
        asked.update(options, repository=repository)
        return folder(tmp_path / "snapshot")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    (out := tmp_path / "out").mkdir()
    copy_checkpoint.compute({"source": {"hub": "a/b", "revision": "c" * 40}}, {}, out)
    assert (asked["repository"], asked["revision"]) == ("a/b", "c" * 40)
    assert (out / "checkpoint" / "model.safetensors").exists()
