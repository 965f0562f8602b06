"""What docs/tour.md shows of the source is there: an edit that breaks the tour fails here before the site is built."""

import importlib.util

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


def shown(tmp_path, text):
    (tmp_path / "module.py").write_text(CODE)
    return source.with_code(text, tmp_path)


@pytest.fixture(autouse=True)
def repository(request, tmp_path, monkeypatch):
    """The files of `shown` are those of a repository in `tmp_path`."""
    if "tmp_path" in request.fixturenames and "page" not in request.fixturenames:
        monkeypatch.setattr(source, "REPOSITORY", tmp_path)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_a_page_shows_code_that_is_there(page):
    found = source.excerpts(read(page), REPOSITORY / "docs")
    assert all(1 <= len(one.code.splitlines()) <= 17 for one in found), [one[:3] for one in found]


def test_a_link_becomes_the_code_with_its_lines(tmp_path):
    page = "Text.\n\n[`first` in module.py](module.py)\n\nMore [`first` in module.py](module.py).\n"
    code = 'def first(x):\n    """Return x."""\n    y = [\n        x,\n    ]\n    return y'
    # The function is in lines 7 to 12, its decorator in line 6. A link within a sentence stays a link.
    block = f'```python title="module.py, lines 6 to 12" linenums="6"\n@cache\n{code}\n```'
    assert shown(tmp_path, page) == f"Text.\n\n{block}\n\nMore [`first` in module.py](module.py).\n"


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
def test_a_part_of_a_definition(tmp_path, link, lines, code):
    (tmp_path / "module.py").write_text(CODE)
    (found,) = source.excerpts(f"[{link}](module.py)", tmp_path)
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
def test_code_that_is_gone_stops_the_build(tmp_path, link, message):
    with pytest.raises(LookupError, match=message):
        shown(tmp_path, link)
