import pytest

from dualread.data.datasets.base import lower
from dualread.limits import leaves_folder


@pytest.mark.parametrize("name", ["", " ", "/etc/x", "..", "a/../../b", "../a", "a/..", "..\\a", "\\etc\\x"])
def test_paths_that_leave_the_folder_are_recognized(name):
    assert leaves_folder(name)


@pytest.mark.parametrize("name", ["a.jpg", "a/b c.png", "./a", "a..b/...", "a\\b"])
def test_paths_inside_the_folder_are_accepted(name):
    assert not leaves_folder(name)


def test_blank_text_becomes_none():
    assert (lower(" CT Scan "), lower("  "), lower(None)) == ("ct scan", None, None)
