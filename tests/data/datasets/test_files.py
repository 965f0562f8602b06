import pytest

from dualread.data.datasets._files import checked_request, leaves_folder, lower, not_text, read_json
from dualread.schema.base import Place


def test_the_settings_of_a_data_set_are_what_it_declares():
    assert checked_request("x", "test", ["train", "test"], {"folder": "a"}, Place).folder == "a"


def test_json_is_read(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('[{"a": 1}]')
    assert read_json(file, list) == [{"a": 1}]


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
