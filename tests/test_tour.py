"""What docs/tour.md shows of the source is there, and is the spine that docs/structure.md lists, in its order."""

import importlib.util
import re

import pytest

from tests.test_docs import PAGES, REPOSITORY, read

_FILE = importlib.util.spec_from_file_location("source", REPOSITORY / "docs/hooks/source.py")
source = importlib.util.module_from_spec(_FILE)
_FILE.loader.exec_module(source)

CODE = '''\
"""A module."""

LIMIT: int = 3


@cache
def first(x):
    """Return x."""
    y = [
        x,
    ]
    return y


class Second:
    def first(self):
        return 1

    def last(self):
        if LIMIT:
            return 2
        return 3


first(LIMIT)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A repository with one module."""
    (tmp_path / "module.py").write_text(CODE)
    monkeypatch.setattr(source, "REPOSITORY", tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_a_page_shows_code_that_is_there(page):
    found = source.excerpts(read(page), REPOSITORY / "docs")
    assert all(1 <= len(one.code.splitlines()) <= 17 for one in found), [one[:3] for one in found]


def test_the_spine_is_read_in_an_afternoon_and_the_tour_visits_it_in_its_order():
    listed = read("docs/structure.md").split("\n## The spine\n")[1].split("\n## ")[0]
    spine = re.findall(r"^\|[^|]*\| `([\w./]+)` \|", listed, re.MULTILINE)
    assert len(set(spine)) == len(spine) <= 27
    assert sum(len(read(file).splitlines()) for file in spine) <= 3150
    shown = [one.file for one in source.excerpts(read("docs/tour.md"), REPOSITORY / "docs")]
    assert sorted(spine, key=shown.index) == spine  # a ValueError names a file that the tour does not visit


def test_a_link_becomes_the_code_with_its_lines(folder):
    page = "Text.\n\n[`first` in module.py](module.py)\n\nMore [`first` in module.py](module.py).\n"
    code = 'def first(x):\n    """Return x."""\n    y = [\n        x,\n    ]\n    return y'
    # The function is in lines 7 to 12, its decorator in line 6. A link within a sentence stays a link.
    block = f'```python title="module.py, lines 6 to 12" linenums="6"\n@cache\n{code}\n```'
    assert source.with_code(page, folder) == f"Text.\n\n{block}\n\nMore [`first` in module.py](module.py).\n"


@pytest.mark.parametrize(
    ("link", "lines", "code"),
    [
        ("`LIMIT` in module.py", (3, 3), "LIMIT: int = 3"),
        ("`Second.first` in module.py", (16, 17), "def first(self):\n    return 1"),
        ("`Second.last` in module.py, from `if` to `return`", (20, 21), "if LIMIT:\n    return 2"),
        ("`first` in module.py, from `x,` to `return`", (10, 12), "    x,\n]\nreturn y"),
        ("`first` in module.py, from `y =` to `y =`", (9, 9), "y = ["),
    ],
)
def test_a_part_of_a_definition(folder, link, lines, code):
    (found,) = source.excerpts(f"[{link}](module.py)", folder)
    assert (found.file, found.start, found.end, found.code) == ("module.py", *lines, code)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("[`third` in module.py](module.py)", "has no third"),
        ("[`last` in module.py](module.py)", "has no last"),
        ("[`Second.third` in module.py](module.py)", "has no Second.third"),
        ("[`first` in module.py, from `z =` to `return`](module.py)", "no line begins with 'z ='"),
        ("[`first` in module.py, from `return` to `y =`](module.py)", "or none after it with 'y ='"),
        ("[`first` in module.py](gone.py)", "gone.py: no such file"),
        ("[`first` in other.py](module.py)", "not the other.py that the link names"),
    ],
)
def test_code_that_is_gone_stops_the_build(folder, link, message):
    with pytest.raises(LookupError, match=message):
        source.with_code(link, folder)
