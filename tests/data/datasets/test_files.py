import pytest

from dualread.data.datasets._files import checked_request, leaves_folder, lower, not_text, read_json
from dualread.declared.base import Place
from dualread.declared.plugin_settings import NoSettings
from dualread.errors import ConfigError, DataError


def test_a_split_and_settings_must_be_known():
    assert checked_request("x", "test", ["train", "test"], {"folder": "a"}, Place).folder == "a"
    with pytest.raises(ConfigError, match=r"x: no split named 'dev'\. Known: train, test\."):
        checked_request("x", "dev", ["train", "test"], {}, NoSettings)
    with pytest.raises(ConfigError, match=r"x: settings\.b: 2: extra inputs are not permitted"):
        checked_request("x", "test", ["test"], {"folder": "a", "b": 2}, Place)
    with pytest.raises(ConfigError, match=r"x: settings\.folder: 1: input should be a valid string"):
        checked_request("x", "test", ["test"], {"folder": 1}, Place)


def test_json_is_checked_for_its_kind_and_for_keys_that_occur_twice(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('[{"a": 1}]')
    assert read_json(file, list) == [{"a": 1}]
    with pytest.raises(DataError, match="holds a list, expected a dict of rows"):
        read_json(file, dict)
    file.write_text('{"1": {"a": 1, "b": 2, "a": 3}}')
    with pytest.raises(DataError, match=r"not JSON \(the key 'a' occurs twice in one object\)"):
        read_json(file, dict)
    file.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(DataError, match=r"a\.json: not JSON .*Restore it"):
        read_json(file, dict)


def test_missing_values_and_values_that_are_not_text_are_reported():
    assert list(not_text({"a": "x", "b": 1}, ["a", "b", "c"])) == [
        "b is 1, expected text. Correct the row.",
        "c is None, expected text. Correct the row.",
    ]


@pytest.mark.parametrize("name", ["", " ", "/etc/x", "..", "a/../../b", "../a", "a/..", "..\\a", "\\etc\\x"])
def test_paths_that_leave_the_folder_are_recognized(name):
    assert leaves_folder(name)


@pytest.mark.parametrize("name", ["a.jpg", "a/b c.png", "./a", "a..b/...", "a\\b"])
def test_paths_inside_the_folder_are_accepted(name):
    assert not leaves_folder(name)


def test_blank_text_becomes_none():
    assert (lower(" CT Scan "), lower("  "), lower(None)) == ("ct scan", None, None)
