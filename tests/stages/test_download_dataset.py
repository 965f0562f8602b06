import zipfile

import pytest

from dualread.errors import DataError
from dualread.stages.download_dataset import compute, unpack


def archive(folder, members):
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "imgs.zip", "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return folder / "imgs.zip"


def test_members_replace_the_archive(tmp_path):
    path = archive(tmp_path / "data", {"imgs/xmlab1/source.jpg": "a", "imgs/xmlab2/source.jpg": "b", "__MACOSX/x": "c"})
    assert unpack(path) == 2
    found = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert found == ["data/imgs/xmlab1/source.jpg", "data/imgs/xmlab2/source.jpg"]


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil.txt", "imgs/../../evil.txt"])
def test_a_member_that_leaves_the_folder_is_refused_before_anything_is_written(tmp_path, name):
    path = archive(tmp_path / "data", {"imgs/good.txt": "a", name: "b"})
    with pytest.raises(DataError, match="leaves the folder"):
        unpack(path)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["imgs.zip"]


def test_a_damaged_archive_is_named(tmp_path):
    (tmp_path / "imgs.zip").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DataError, match=r"imgs\.zip: damaged"):
        unpack(tmp_path / "imgs.zip")


def test_the_snapshot_is_taken_at_the_pinned_revision(tmp_path, monkeypatch):
    asked = {}

    def snapshot_download(repo_id, *, repo_type, revision, local_dir):
        asked.update(repo_id=repo_id, repo_type=repo_type, revision=revision)
        archive(local_dir, {"imgs/xmlab1/source.jpg": "a"})
        (local_dir / "train.json").write_text("[]")
        (local_dir / ".cache/huggingface").mkdir(parents=True)
        (local_dir / ".cache/huggingface/train.json.metadata").write_text("time")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    summary = compute({"hub": "owner/name", "revision": "a" * 40}, {}, tmp_path)
    assert asked == {"repo_id": "owner/name", "repo_type": "dataset", "revision": "a" * 40}
    found = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert found == ["imgs/xmlab1/source.jpg", "train.json"]
    assert summary == "read owner/name at aaaaaaaaaaaa, unpacked 1 members of 1 archives, wrote 2 files"
