import hashlib
import sys
from pathlib import Path

import pytest

from dualread.store import effects, modules, source
from dualread.store.code import CodeIndex

_ROOTS = ["mini.stages.grade"]
_TEXTS = {
    "__init__.py": "",
    "stages/__init__.py": "",
    "stages/grade.py": "import numpy\nfrom mini import parse\nDATA_FILES = ('table.json',)\n",
    "parse.py": "import scipy\n\n\ndef parse(text):\n    return text\n",
    "table.json": "{}",
}


@pytest.fixture
def package(tmp_path):
    for name, text in _TEXTS.items():
        path = tmp_path / "mini" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "mini"


@pytest.fixture
def parsed(monkeypatch):
    """The names of the files that were parsed."""
    names, original = [], source.parse
    monkeypatch.setattr(modules, "parse", lambda *given: names.append(given[-1].name) or original(*given))
    return names


def _answers(package, cache):
    index = CodeIndex(package, cache)
    return index.table(_ROOTS), sorted(index.packages(_ROOTS))


def test_another_process_parses_nothing_and_gets_the_same_answers(package, parsed, tmp_path):
    cache = tmp_path / "store" / "sources.json"
    expected = _answers(package, None)
    parsed.clear()
    assert _answers(package, cache) == expected
    assert len(parsed) == 4
    parsed.clear()
    assert _answers(package, cache) == expected
    assert parsed == []


def test_only_an_edited_file_is_parsed_again(package, parsed, tmp_path):
    cache = tmp_path / "sources.json"
    _answers(package, cache)
    (package / "parse.py").write_text(_TEXTS["parse.py"].replace("scipy", "sklearn"))
    parsed.clear()
    assert _answers(package, cache) == _answers(package, None)
    assert parsed[0] == "parse.py"
    assert len(parsed) == 1 + 4  # without a cache, all are
    (package / "parse.py").write_text(_TEXTS["parse.py"])
    assert _answers(package, cache) == _answers(package, None)


def test_a_cache_of_another_parser_or_python_is_ignored(package, parsed, tmp_path, monkeypatch):
    cache = tmp_path / "sources.json"
    for version in ("one", "two"):
        monkeypatch.setattr(modules, "PARSER", version)
        parsed.clear()
        _answers(package, cache)
        assert len(parsed) == 4


def test_a_parser_is_identified_by_python_and_by_its_code():
    texts = Path(effects.__file__).read_bytes() + Path(source.__file__).read_bytes()
    code = hashlib.sha256(texts).hexdigest()
    assert f"{sys.version} {code}" == source.PARSER


def test_digests_are_the_same_on_every_python():
    """Python 3.12 adds type parameters, and to some formats an empty text; 3.13 leaves out empty lists."""
    text = b'''
@decorated
class A:
    """Text."""
    field: list[int] = []
    def method(self, a, /, *rest, b=(), **others):
        return {}
async def f():
    return f"{A!r:>{len('x')}}" "" f"{1:<{2}}", lambda: ()
match f:
    case []:
        pass
'''
    found = source.parse(text, "mini", Path("mini/a.py")).definitions
    assert [definition.digest[:8] for definition in found] == ["4d411df9", "b78a1a21", "06bafe81"]
