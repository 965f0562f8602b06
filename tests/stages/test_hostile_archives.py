"""Damaged and hostile archives: refused by name, and nothing is written anywhere else."""

import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import DataError
from dualread.stages.download_dataset import unpack
from tests.drawn import attempt, few


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        for name, data in members.items():
            content.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


@few
@given(st.data())
def test_a_damaged_archive_is_refused_by_name(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("archive")
    whole = archive(folder / "a.zip", {"a/b.txt": b"text " * 20, "c.txt": b"more"}).read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:position] + bytes([whole[position] ^ data.draw(st.integers(1, 255))]) + whole[position + 1 :]
    (folder / "a.zip").write_bytes(flipped)
    _, error = attempt(lambda: unpack(folder / "a.zip"), DataError)
    assert error is None or "a.zip" in str(error)
    assert not [path for path in folder.parent.iterdir() if path.name in ("b.txt", "c.txt")]


def test_every_flipped_bit_of_an_archives_last_records_is_refused_by_name_or_harmless(tmp_path):
    """Some of these flips are offsets that have the zip module seek to before the file's first byte."""
    whole = archive(tmp_path / "whole.zip", {"a/b.txt": b"text " * 20, "c.txt": b"more"}).read_bytes()
    errors = []
    for position in range(whole.index(b"PK\1\2"), len(whole)):
        for bit in range(8):
            folder = tmp_path / f"{position}-{bit}"
            folder.mkdir()
            (folder / "a.zip").write_bytes(
                whole[:position] + bytes([whole[position] ^ 1 << bit]) + whole[position + 1 :]
            )
            _, error = attempt(lambda folder=folder: unpack(folder / "a.zip"), DataError)
            errors.append(str(error or "a.zip"))
    assert all("a.zip" in error for error in errors)
    assert any("Invalid argument" in error for error in errors)


@pytest.mark.parametrize(
    "names",
    [["../x"], ["/tmp/x"], ["a", "a/b"], ["a/b", "a"], ["a", "a"], ["x" * 300], ["..\\x", "../x"], ["a/../../x"]],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_hostile_archive_is_refused_by_name(tmp_path, names):
    path = tmp_path / "inside" / "a.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as content:
        for name in names:
            content.writestr(name, b"x")
    with pytest.raises(DataError, match=r"a\.zip"):
        unpack(path)
    assert [found.name for found in tmp_path.rglob("*")] == ["inside", "a.zip"]


def test_an_encrypted_archive_and_one_of_an_unknown_compression_are_refused_by_name(tmp_path):
    path = archive(tmp_path / "a.zip", {"a.txt": b"text"})
    whole = path.read_bytes()
    central = whole.index(b"PK\1\2")
    for offset, value in ((8, 1), (10, 99)):  # the flag of encryption; the method
        changed = bytearray(whole)
        changed[central + offset] = value
        path.write_bytes(changed)
        with pytest.raises(DataError, match=r"a\.zip"):
            unpack(path)
