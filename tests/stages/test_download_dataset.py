"""Data sets from the hub and from a folder; damaged and hostile archives are refused by name, and write nothing."""

import stat
import zipfile
from types import SimpleNamespace

import pytest
from huggingface_hub import errors
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import DataError
from dualread.schema.data import DownloadDatasetSpec, DownloadFiles
from dualread.stages.download_dataset import compute, unpack
from tests.drawn import attempt, few


def archive(folder, members):
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "imgs.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return folder / "imgs.zip"


TWO = {"a/b.txt": b"text " * 20, "c.txt": b"more"}


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


@few
@given(st.data())
def test_a_damaged_archive_is_refused_by_name(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("archive")
    whole = archive(folder, TWO).read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:position] + bytes([whole[position] ^ data.draw(st.integers(1, 255))]) + whole[position + 1 :]
    (folder / "imgs.zip").write_bytes(flipped)
    _, error = attempt(lambda: unpack(folder / "imgs.zip"), DataError)
    assert error is None or "imgs.zip" in str(error)
    assert not [path for path in folder.parent.iterdir() if path.name in ("b.txt", "c.txt")]


def test_every_flipped_bit_of_an_archives_last_records_is_refused_by_name_or_harmless(tmp_path):
    """Some of these flips are offsets that have the zip module seek to before the file's first byte."""
    whole = archive(tmp_path, TWO).read_bytes()
    said = []
    for position in range(whole.index(b"PK\1\2"), len(whole)):
        for bit in range(8):
            folder = tmp_path / f"{position}-{bit}"
            folder.mkdir()
            (folder / "imgs.zip").write_bytes(
                whole[:position] + bytes([whole[position] ^ 1 << bit]) + whole[position + 1 :]
            )
            _, error = attempt(lambda folder=folder: unpack(folder / "imgs.zip"), DataError)
            said.append(str(error or "imgs.zip"))
    assert all("imgs.zip" in error for error in said)
    assert any("Invalid argument" in error for error in said)


@pytest.mark.parametrize(
    "names",
    [["../x"], ["/tmp/x"], ["a", "a/b"], ["a/b", "a"], ["a", "a"], ["x" * 300], ["..\\x", "../x"], ["a/../../x"]],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_hostile_archive_is_refused_by_name(tmp_path, names):
    (path := tmp_path / "inside" / "imgs.zip").parent.mkdir()
    with zipfile.ZipFile(path, "w") as content:
        for name in names:
            content.writestr(name, b"x")
    with pytest.raises(DataError, match=r"imgs\.zip"):
        unpack(path)
    assert [found.name for found in tmp_path.rglob("*")] == ["inside", "imgs.zip"]


def test_an_encrypted_archive_and_one_of_an_unknown_compression_are_refused_by_name(tmp_path):
    path = archive(tmp_path, {"a.txt": b"text"})
    whole = path.read_bytes()
    central = whole.index(b"PK\1\2")
    for offset, value in ((8, 1), (10, 99)):  # the flag of encryption; the method
        changed = bytearray(whole)
        changed[central + offset] = value
        path.write_bytes(changed)
        with pytest.raises(DataError, match=r"imgs\.zip"):
            unpack(path)


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
