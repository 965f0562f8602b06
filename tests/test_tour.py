"""What docs/tour.md shows of the source is there, and is the spine that docs/structure.md lists, in its order."""

import importlib.util
import re

import pytest

from tests.test_docs import PAGES, REPOSITORY, read

_FILE = importlib.util.spec_from_file_location("source", REPOSITORY / "docs/hooks/source.py")
source = importlib.util.module_from_spec(_FILE)
_FILE.loader.exec_module(source)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_a_page_shows_code_that_is_there(page):
    found = source.excerpts(read(page), REPOSITORY / "docs")
    assert all(1 <= len(one.code.splitlines()) <= 17 for one in found), [one[:3] for one in found]


def test_the_spine_is_read_in_an_afternoon_and_the_tour_visits_it_in_its_order():
    listed = read("docs/structure.md").split("\n## The spine\n")[1].split("\n## ")[0]
    spine = re.findall(r"^\|[^|]*\| `([\w./]+)` \|", listed, re.MULTILINE)
    assert len(set(spine)) == len(spine) <= 27
    assert sum(len(read(file).splitlines()) for file in spine) <= 3170
    shown = [one.file for one in source.excerpts(read("docs/tour.md"), REPOSITORY / "docs")]
    assert sorted(spine, key=shown.index) == spine  # a ValueError names a file that the tour does not visit
