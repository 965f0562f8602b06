import hashlib
import json
import multiprocessing
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.digests import artifact_digest, canonical_json, digest_of
from dualread.errors import ArtifactError
from dualread.store import digest
from dualread.store.digest import KeptTable, StatCache, raw_digest, sha256_file

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4))
def test_the_order_of_keys_does_not_matter(mapping):
    backwards = dict(reversed(mapping.items()))
    assert digest_of(mapping) == digest_of(backwards)
    assert json.loads(canonical_json(mapping)) == mapping


def test_a_value_has_one_canonical_json():
    assert canonical_json({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'.encode()


def test_sha256_of_a_file(tmp_path):
    path = tmp_path / "abc"
    path.write_bytes(b"abc")
    # The first test vector of FIPS 180-2.
    assert sha256_file(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_the_digest_of_a_folder_covers_names_and_contents_but_no_hidden_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    before = raw_digest(tmp_path)
    one, two = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()
    assert before == digest_of({"a/one": one, "two": two})
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "time").write_text("now")
    (tmp_path / ".snakemake_timestamp").touch()
    assert raw_digest(tmp_path) == before
    (tmp_path / "two").rename(tmp_path / "three")
    assert raw_digest(tmp_path) != before


@pytest.fixture
def readings(monkeypatch):
    """The files whose contents were read. Files need not settle here, because a test cannot set back their ctime."""
    read = []
    monkeypatch.setattr(digest, "sha256_file", lambda path: read.append(path) or sha256_file(path))
    monkeypatch.setattr(digest, "_SETTLED_SECONDS", -1.0)
    return read


def test_an_unchanged_file_is_read_once(tmp_path, readings):
    path = tmp_path / "raw"
    path.write_text("raw")
    first = StatCache(tmp_path / "store" / "stat-cache.json")
    expected = first.sha256(path)
    assert first.sha256(path) == expected
    first.save()
    assert StatCache(tmp_path / "store" / "stat-cache.json").sha256(path) == expected
    assert readings == [path]


def test_an_edit_of_equal_size_and_mtime_is_seen(tmp_path, readings):
    path = tmp_path / "raw"
    path.write_text("raw")
    status = path.stat()
    cache = StatCache(tmp_path / "stat-cache.json")
    before = cache.sha256(path)
    path.write_text("war")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache.sha256(path) != before  # the ctime differs


def test_the_digest_of_a_file_that_just_changed_is_not_cached(tmp_path):
    path = tmp_path / "raw"
    path.write_text("raw")
    cache = StatCache(tmp_path / "stat-cache.json")
    cache.sha256(path)
    cache.save()
    assert not (tmp_path / "stat-cache.json").exists()


def test_two_processes_keep_each_others_digests(tmp_path, readings):
    for name in "ab":
        (tmp_path / name).write_text(name)
    caches = [StatCache(tmp_path / "stat-cache.json") for _ in "ab"]
    for cache, name in zip(caches, "ab", strict=True):
        cache.sha256(tmp_path / name)
    for cache in caches:
        cache.save()
    again = StatCache(tmp_path / "stat-cache.json")
    assert [again.sha256(tmp_path / name) for name in "ab"] == [
        hashlib.sha256(name.encode()).hexdigest() for name in "ab"
    ]
    assert len(readings) == 2


@pytest.mark.parametrize("damage", ["nothing", "half", "digest", "one letter", "other bytes", "a list"])
def test_a_damaged_table_counts_as_empty_and_is_replaced(tmp_path, damage):
    file = tmp_path / "table.json"

    def kept(row=None):
        table = KeptTable(file, "1")
        if row is not None:
            table.keep("name", row)
            table.save()
        return table.get("name")

    assert kept("a row") == kept() == "a row"
    assert KeptTable(file, "2").get("name") is None
    text = file.read_text()
    damaged = {
        "nothing": "",
        "half": text[: len(text) // 2],
        "digest": "0" * 64 + text[64:],
        "one letter": text.replace("a row", "a tow"),  # still JSON
        "other bytes": "\0\x07",
        "a list": "[]",
    }[damage]
    assert damaged != text
    file.write_text(damaged)
    assert kept() is None
    assert kept("another") == kept() == "another"


def _keep_again_and_again(file, number):
    for k in range(20):
        table = KeptTable(file)
        table.keep(f"{number} {k}", k)
        table.save()


def test_several_writers_leave_an_intact_file(tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_keep_again_and_again, args=(tmp_path / "table.json", n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert 19 in [KeptTable(tmp_path / "table.json").get(f"{n} 19") for n in range(4)]  # of the last writer
    assert [path.name for path in tmp_path.iterdir()] == ["table.json"]


def test_a_cache_that_cannot_be_written_is_left_alone(tmp_path, readings):
    (tmp_path / "file").write_text("not a folder")
    cache = StatCache(tmp_path / "file" / "stat-cache.json")
    (tmp_path / "raw").write_text("raw")
    cache.sha256(tmp_path / "raw")
    cache.save()


def test_artifact_digest_is_what_the_manifest_states(tmp_path):
    (tmp_path / "MANIFEST.json").write_text('{"digest": "d1"}')
    assert artifact_digest(tmp_path) == "d1"
    with pytest.raises(ArtifactError, match="states no content digest"):
        artifact_digest(tmp_path / "nowhere")
