import stat
import zipfile
from types import SimpleNamespace

import pytest
from huggingface_hub import errors

from dualread.errors import DataError
from dualread.schema.data import DownloadDatasetSpec, DownloadFiles
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


def test_a_link_is_refused(tmp_path):
    path = tmp_path / "imgs.zip"
    link = zipfile.ZipInfo("imgs/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("imgs/good.txt", "a")
        file.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match=r"imgs\.zip: member 'imgs/link' is a link or a device"):
        unpack(path)
    assert [p.name for p in tmp_path.rglob("*")] == ["imgs.zip"]


def test_a_member_overwrites_no_file_and_no_archive_explodes(tmp_path):
    (tmp_path / "test.json").write_text("official")
    for member, members in (("test\\.json", {"test.json": "other"}), (r"a/\.\./b", {"b": "one", "a/../b": "two"})):
        with pytest.raises(DataError, match=f"member '{member}' would overwrite another file"):
            unpack(archive(tmp_path, members))
    assert (tmp_path / "test.json").read_text() == "official"
    # Deflate packs zeros about a thousand times.
    with zipfile.ZipFile(tmp_path / "imgs.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(10**6))
    with pytest.raises(DataError, match="bytes would become 1000000, more than 200 times"):
        unpack(tmp_path / "imgs.zip")


@pytest.fixture
def hub(monkeypatch):
    """Return what the hub was asked for; `hub["refuses"]` is raised instead of an answer."""
    asked = {}

    def snapshot_download(repo_id, *, local_dir, **options):
        asked.update(repo_id=repo_id, **options)
        if "refuses" in asked:
            raise asked["refuses"]
        if asked.get("is_empty"):
            return
        archive(local_dir, {"imgs/xmlab1/source.jpg": "a"})
        (local_dir / "test.json").write_text("[]")
        (local_dir / ".cache/huggingface").mkdir(parents=True)
        (local_dir / ".cache/huggingface/test.json.metadata").write_text("time")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return asked


FILES = DownloadFiles(hub="owner/name", revision="a" * 40, files=("imgs.zip", "test.json"))
SPEC = DownloadDatasetSpec(loader="slake", source=FILES)


def test_what_matches_is_fetched_at_the_pinned_revision(tmp_path, hub):
    summary = compute(SPEC, {}, tmp_path)
    assert hub == {
        **{"repo_id": "owner/name", "repo_type": "dataset", "revision": "a" * 40},
        **{"allow_patterns": ["imgs.zip", "test.json"]},
    }
    found = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert found == ["imgs/xmlab1/source.jpg", "test.json"]
    assert summary == "read owner/name at aaaaaaaaaaaa, unpacked 1 members of 1 archives, wrote 2 files"


def test_no_file_is_no_success(tmp_path, hub):
    hub["is_empty"] = True
    with pytest.raises(DataError, match=r"owner/name at a{40}: no file matches \['imgs\.zip', 'test\.json'\]"):
        compute(SPEC, {}, tmp_path)


def _refusal(kind, status):
    return kind("who\n are you?", response=SimpleNamespace(status_code=status, request=None, headers={}))


@pytest.mark.parametrize(
    ("kind", "status"),
    [(errors.GatedRepoError, 403), (errors.RepositoryNotFoundError, 404), (errors.HfHubHTTPError, 401)],
)
def test_who_has_no_access_reads_the_terms_and_what_to_do(tmp_path, hub, kind, status):
    hub["refuses"] = _refusal(kind, status)
    with pytest.raises(DataError) as error:
        compute(SPEC, {}, tmp_path)
    message = str(error.value)
    assert message.startswith(f"owner/name at aaaaaaaaaaaa: {kind.__name__} (who are you?). CC BY 4.0, Liu et al. 2021")
    assert "https://huggingface.co/datasets/owner/name and give your token by `hf auth login` or in HF_TOKEN" in message


@pytest.mark.parametrize("refusal", [_refusal(errors.HfHubHTTPError, 500), errors.LocalEntryNotFoundError("offline")])
def test_a_hub_that_cannot_be_reached_is_no_question_of_access(tmp_path, hub, refusal):
    hub["refuses"] = refusal
    with pytest.raises(DataError, match=r"owner/name at aaaaaaaaaaaa: \w+ \(.+\)\. Check the network"):
        compute(SPEC, {}, tmp_path)


def test_an_absent_folder_is_named_with_the_terms_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as error:
        compute(DownloadDatasetSpec(loader="slake", folder="../data/slake"), {}, tmp_path)
    message = str(error.value)
    assert message.startswith(f"{tmp_path.parent / 'data/slake'}: there was no such folder when this run began.")
    assert "Official files: www.med-vqa.com/slake. Put them there, or give the data set's `source`" in message
