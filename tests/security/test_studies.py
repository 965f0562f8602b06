"""Files of studies in YAML: aliases that stand for thousands of millions, depth without an end, tags (D5, D7)."""

import os
import time

import pytest

from dualread.errors import ConfigError
from dualread.study.config import resolve
from dualread.study.files import parsed, read

BOMB = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
MERGES = "a0: &a0 {x0: 1, y0: 2}\n" + "".join(
    f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 10)}]\n  x{i}: 1\n" for i in range(1, 10)
)


def refused(tmp_path, content):
    """Return the message with which a file is refused, in seconds."""
    file = tmp_path / "mine.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    started = time.monotonic()
    with pytest.raises(ConfigError) as error:
        read(file)
    assert time.monotonic() - started < 10
    assert len(str(error.value)) < 1000
    return str(error.value)


@pytest.mark.parametrize("text", [BOMB, MERGES])
def test_aliases_that_stand_for_too_much_are_counted(tmp_path, text):
    assert "its aliases stand for" in refused(tmp_path, text)


def test_a_study_that_snakemake_has_read_is_counted_too():
    """Snakemake reads the files by itself; what is shared in memory would be written out by the checks."""
    value = ["x"] * 10
    for _ in range(9):
        value = [value] * 10
    with pytest.raises(ConfigError, match=r"aliases .* stand for 1e\+10 entries"):
        resolve({"study": "x", "methods": value})


def test_ordinary_aliases_are_read():
    found = parsed(b"a: &a {x: [1, 2]}\nb: *a\nc: {<<: *a, y: 3}\n")
    assert found == {"a": {"x": [1, 2]}, "b": {"x": [1, 2]}, "c": {"x": [1, 2], "y": 3}}
    assert parsed(b"") is None


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000, "a: " + "[" * 100_000 + "]" * 100_000]
)
def test_depth_without_an_end_is_a_sentence(tmp_path, text):
    assert "mine.yaml" in refused(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system ['touch ran']",
        "a: !!python/name:os.system",
        "!!python/object/new:subprocess.Popen [[touch, ran]]",
        "a: !x 1",
        "a: 2001-99-99",
        "? [a]\n: 1",
        "? {a: 1}\n: 1",
        b"\xff\xfe\x00",
        b"a: \x00",
        b"a: \x1b[2J\n",
        "a: " + "1" * 10_000,
        "x" * 11_000_000,
        "7",
        "- a",
    ],
    ids=lambda text: f"{text[:30]!r}",
)
def test_what_is_no_study_is_a_sentence(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    refused(tmp_path, text)
    assert not (tmp_path / "ran").exists()


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    for file in (tmp_path / "pipe.yaml", tmp_path, "/dev/zero"):
        with pytest.raises(ConfigError, match="cannot be read"):
            read(type(tmp_path)(file))


@pytest.mark.parametrize(
    "text", ["seeds: [1]\nseeds: [2]", "a: {b: 1, 'b': 1}", "- {x: 1}\n- &a {1: y, 1: z}\n- *a", "? a\n? a\n"]
)
def test_an_entry_that_is_there_twice_is_refused_wherever_it_is(tmp_path, text):
    assert "twice" in refused(tmp_path, text)


def test_what_only_looks_like_the_same_entry_is_none():
    text = b"1: a\n'1': b\nx: &x {p: 1}\ny: &y {q: 2}\nz: {<<: *x, p: 3}\nw: {<<: *x, <<: *y}\n"
    found = parsed(text)
    assert (found[1], found["1"], found["z"]) == ("a", "b", {"p": 3})
