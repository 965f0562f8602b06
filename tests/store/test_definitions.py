"""Which edits reach a key, by hand: each case is a small package whose stage prints something, and an edit of it.

Where the edit changes what the stage prints, the digest has to change. Both are looked at: the package runs before and
after the edit.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dualread.store.code import CodeIndex

STAGE = "mini/stages/work.py"
ROOT = "mini.stages.work"

# {what is edited: (files, file, old text, new text)}; each edit changes what the stage prints.
REACHES = {
    "a function": (
        {STAGE: "from mini.a import f\nprint(f())", "mini/a.py": "def f():\n    return 1"},
        "mini/a.py",
        "1",
        "2",
    ),
    "a function through a module": (
        {STAGE: "from mini import a\nprint(a.f())", "mini/a.py": "def f():\n    return 1"},
        "mini/a.py",
        "1",
        "2",
    ),
    "a function of a module with a long name": (
        {STAGE: "import mini.a\nprint(mini.a.f())", "mini/a.py": "def f():\n    return 1"},
        "mini/a.py",
        "1",
        "2",
    ),
    "a function that is imported inside a function": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "def f():\n    from mini.b import g\n    return g()",
            "mini/b.py": "def g():\n    return 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "a constant through two modules": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "from mini.b import LIMIT\ndef f():\n    return LIMIT",
            "mini/b.py": "from mini.c import LIMIT",
            "mini/c.py": "OTHER = 0\nLIMIT = 1",
        },
        "mini/c.py",
        "LIMIT = 1",
        "LIMIT = 2",
    ),
    "where a name comes from, if both places count anyway": (
        {
            STAGE: "from mini import b\nfrom mini.c import f, g\nprint(b.h(), f(), g())",
            "mini/b.py": "from mini.c import f as h",
            "mini/c.py": "def f():\n    return 1\ndef g():\n    return 2",
        },
        "mini/b.py",
        "f as h",
        "g as h",
    ),
    "what an import of another package names": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "from math import floor as whole\ndef f():\n    return whole(1.5)",
        },
        "mini/a.py",
        "floor",
        "ceil",
    ),
    "a default": (
        {STAGE: "from mini.a import f\nprint(f())", "mini/a.py": "def f(n=1):\n    return n"},
        "mini/a.py",
        "n=1",
        "n=2",
    ),
    "a constant that a default names": (
        {STAGE: "from mini.a import f\nprint(f())", "mini/a.py": "N = 1\ndef f(n=N):\n    return n"},
        "mini/a.py",
        "N = 1",
        "N = 2",
    ),
    "a decorator": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "def twice(g):\n    return lambda: 2 * g()\n@twice\ndef f():\n    return 1",
        },
        "mini/a.py",
        "2 * g()",
        "3 * g()",
    ),
    "a method of a base class": (
        {
            STAGE: "from mini.a import Child\nprint(Child().f())",
            "mini/a.py": "from mini.b import Base\nclass Child(Base):\n    pass",
            "mini/b.py": "class Base:\n    def f(self):\n        return 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "a default of a dataclass": (
        {
            STAGE: "from mini.a import Settings\nprint(Settings().n)",
            "mini/a.py": "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    n: int = 1",
        },
        "mini/a.py",
        "= 1",
        "= 2",
    ),
    "what makes a default of a dataclass": (
        {
            STAGE: "from mini.a import Settings\nprint(Settings().n)",
            "mini/a.py": "from dataclasses import dataclass, field\ndef first():\n    return 1\n"
            "@dataclass\nclass Settings:\n    n: int = field(default_factory=first)",
        },
        "mini/a.py",
        "return 1",
        "return 2",
    ),
    "a member of an enum": (
        {
            STAGE: "from mini.a import Kind\nprint([kind.value for kind in Kind])",
            "mini/a.py": "from enum import Enum\nclass Kind(Enum):\n    A = 1",
        },
        "mini/a.py",
        "A = 1",
        "A = 2",
    ),
    "a class attribute": (
        {STAGE: "from mini.a import C\nprint(C().n)", "mini/a.py": "class C:\n    n = 1"},
        "mini/a.py",
        "1",
        "2",
    ),
    "a comprehension at module level": (
        {
            STAGE: "from mini.a import TABLE\nprint(TABLE)",
            "mini/a.py": "def f(n):\n    return n + 1\nTABLE = {n: f(n) for n in range(2)}",
        },
        "mini/a.py",
        "n + 1",
        "n + 2",
    ),
    "a function inside functools.partial": (
        {
            STAGE: "from mini.a import g\nprint(g())",
            "mini/a.py": "from functools import partial\ndef f(n):\n    return n + 1\ng = partial(f, 1)",
        },
        "mini/a.py",
        "n + 1",
        "n + 2",
    ),
    "a name that a function has for itself, too": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "n = 1\ndef f():\n    def g():\n        n = 5\n        return n\n    return g() + n",
        },
        "mini/a.py",
        "n = 1",
        "n = 2",
    ),
    "what getattr takes from a module": (
        {
            STAGE: "from mini import a\nprint(getattr(a, 'f' + '')())",
            "mini/a.py": "def f():\n    return 1",
        },
        "mini/a.py",
        "1",
        "2",
    ),
    "what getattr takes from a module that it imports": (
        {
            STAGE: "from mini import a\nprint(getattr(a, 'f' + '')())",
            "mini/a.py": "from mini.b import f",
            "mini/b.py": "def f():\n    return 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "a module in a table of modules": (
        {
            STAGE: "from mini.a import TABLE\nprint(TABLE['b'].f())",
            "mini/a.py": "from mini import b\nTABLE = {'b': b}",
            "mini/b.py": "def f():\n    return 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "a module whose name is a text": (
        {
            STAGE: "from importlib import import_module\nprint(import_module('mini.a').f())",
            "mini/a.py": "def f():\n    return 1",
        },
        "mini/a.py",
        "1",
        "2",
    ),
    "what globals() finds": (
        {
            STAGE: "from mini.a import g\nprint(g('f'))",
            "mini/a.py": "def f():\n    return 1\ndef g(name):\n    return globals()[name]()",
        },
        "mini/a.py",
        "return 1",
        "return 2",
    ),
    "what eval finds": (
        {
            STAGE: "from mini.a import g\nprint(g())",
            "mini/a.py": "def f():\n    return 1\ndef g():\n    return eval('f()')",
        },
        "mini/a.py",
        "return 1",
        "return 2",
    ),
    "a subclass that is found by its base": (
        {
            STAGE: "import mini.b\nfrom mini.a import Base\nprint([kind.n for kind in Base.__subclasses__()])",
            "mini/a.py": "class Base:\n    pass",
            "mini/b.py": "from mini.a import Base\nclass One(Base):\n    n = 1",
        },
        "mini/b.py",
        "n = 1",
        "n = 2",
    ),
    "a subclass that registers itself by __init_subclass__": (
        {
            STAGE: "import mini.b\nfrom mini.a import KNOWN\nprint([kind.n for kind in KNOWN])",
            "mini/a.py": "KNOWN = []\nclass Base:\n    def __init_subclass__(cls):\n        KNOWN.append(cls)",
            "mini/b.py": "from mini.a import Base\nclass One(Base):\n    n = 1",
        },
        "mini/b.py",
        "n = 1",
        "n = 2",
    ),
    "a class that registers itself by its metaclass": (
        {
            STAGE: "import mini.b\nfrom mini.a import KNOWN\nprint([kind.n for kind in KNOWN])",
            "mini/a.py": "KNOWN = []\nclass Meta(type):\n    def __init__(cls, *given):\n        KNOWN.append(cls)\n"
            "class Base(metaclass=Meta):\n    n = 0",
            "mini/b.py": "from mini.a import Base\nclass One(Base):\n    n = 1",
        },
        "mini/b.py",
        "n = 1",
        "n = 2",
    ),
    "a function that a decorator registers": (
        {
            STAGE: "import mini.b\nfrom mini.a import KNOWN\nprint([f() for f in KNOWN])",
            "mini/a.py": "KNOWN = []\ndef known(f):\n    KNOWN.append(f)\n    return f",
            "mini/b.py": "from mini.a import known\n@known\ndef f():\n    return 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "a function that the decorator that a call returns registers": (
        {
            STAGE: "import mini.b\nfrom mini.a import KNOWN\nprint([f() for f in KNOWN.values()])",
            "mini/a.py": "KNOWN = {}\ndef known(name):\n    def keep(f):\n        KNOWN[name] = f\n        return f\n"
            "    return keep",
            "mini/b.py": "from mini.a import known\n@known('f')\ndef f():\n    return 1",
        },
        "mini/b.py",
        "return 1",
        "return 2",
    ),
    "a default whose value registers something": (
        {
            STAGE: "import mini.b\nfrom mini.a import KNOWN\nprint(KNOWN)",
            "mini/a.py": "KNOWN = []\ndef keep(n):\n    KNOWN.append(n)",
            "mini/b.py": "from mini.a import keep\ndef unused(n=keep(1)):\n    return n",
        },
        "mini/b.py",
        "keep(1)",
        "keep(2)",
    ),
    "a constant whose value registers something": (
        {
            STAGE: "import mini.b\nfrom mini.a import KNOWN\nprint(KNOWN)",
            "mini/a.py": "KNOWN = []\ndef keep(n):\n    KNOWN.append(n)",
            "mini/b.py": "from mini.a import keep\nUNUSED = keep(1)",
        },
        "mini/b.py",
        "keep(1)",
        "keep(2)",
    ),
    "a class attribute that registers something": (
        {
            STAGE: "import mini.b\nfrom mini.a import KNOWN\nprint(KNOWN)",
            "mini/a.py": "KNOWN = []\nclass Field:\n    def __init__(self, n):\n        KNOWN.append(n)",
            "mini/b.py": "from mini.a import Field\nclass Unused:\n    n = Field(1)",
        },
        "mini/b.py",
        "Field(1)",
        "Field(2)",
    ),
    "an attribute that another module sets on a module": (
        {
            STAGE: "import mini.b\nfrom mini import a\nprint(a.f())",
            "mini/a.py": "def f():\n    return 0",
            "mini/b.py": "from mini import a\ndef other():\n    return 1\na.f = other",
        },
        "mini/b.py",
        "return 1",
        "return 2",
    ),
    "a method that another module sets on a class": (
        {
            STAGE: "import mini.b\nfrom mini.a import C\nprint(C().f())",
            "mini/a.py": "class C:\n    pass",
            "mini/b.py": "from mini.a import C\nC.f = lambda self: 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "an entry that another statement adds": (
        {STAGE: "from mini.a import TABLE\nprint(TABLE)", "mini/a.py": "TABLE = {}\nTABLE['n'] = 1"},
        "mini/a.py",
        "1",
        "2",
    ),
    "a value that another function sets": (
        {
            STAGE: "from mini.a import g, set_n\nset_n()\nprint(g())",
            "mini/a.py": "n = 0\ndef set_n():\n    global n\n    n = 1\ndef g():\n    return n",
        },
        "mini/a.py",
        "n = 1",
        "n = 2",
    ),
    "a later definition of the same name": (
        {STAGE: "from mini.a import f\nprint(f())", "mini/a.py": "def f():\n    return 0\ndef f():\n    return 1"},
        "mini/a.py",
        "1",
        "2",
    ),
    "a definition under a condition": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "import sys\nif sys.version_info > (3,):\n    def f():\n        return 1\nelse:\n    f = None",
        },
        "mini/a.py",
        "return 1",
        "return 2",
    ),
    "an import that may fail": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "try:\n    from nowhere import f\nexcept ImportError:\n    from mini.b import f",
            "mini/b.py": "def f():\n    return 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "one of several constants of a statement": (
        {STAGE: "from mini.a import A\nprint(A)", "mini/a.py": "A, B = 1, 0"},
        "mini/a.py",
        "1",
        "2",
    ),
    "what a star imports": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "from mini.b import *\ndef f():\n    return g()",
            "mini/b.py": "def g():\n    return 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "the __getattr__ of a module": (
        {
            STAGE: "from mini import a\nprint(a.anything)",
            "mini/a.py": "def __getattr__(name):\n    return 1",
        },
        "mini/a.py",
        "1",
        "2",
    ),
    "a type that only an annotation names, as a text": (
        {
            STAGE: "from typing import get_type_hints\nfrom mini.a import f\nprint(get_type_hints(f)['n'].n)",
            "mini/a.py": "def f(n: 'Kind'):\n    return n\nclass Kind:\n    n = 1",
        },
        "mini/a.py",
        "n = 1",
        "n = 2",
    ),
    "the __init__ of a package": (
        {
            STAGE: "from mini.sub.a import f\nprint(f())",
            "mini/sub/__init__.py": "import os\nos.environ['MINI'] = '1'",
            "mini/sub/a.py": "import os\ndef f():\n    return os.environ['MINI']",
        },
        "mini/sub/__init__.py",
        "1",
        "2",
    ),
    "an import for what it does": (
        {
            STAGE: "import mini.b\nfrom mini import a\nprint(a.N)",
            "mini/a.py": "N = 0",
            "mini/b.py": "import mini.c",
            "mini/c.py": "from mini import a\na.N = 1",
        },
        "mini/c.py",
        "1",
        "2",
    ),
    "two modules that import names from each other": (
        {
            STAGE: "from mini.a import f\nprint(f())",
            "mini/a.py": "def f():\n    from mini.b import g\n    return g()\ndef h():\n    return 1",
            "mini/b.py": "from mini.a import h\ndef g():\n    return h()",
        },
        "mini/a.py",
        "return 1",
        "return 2",
    ),
    "a lambda": (
        {STAGE: "from mini.a import f\nprint(f(1))", "mini/a.py": "f = lambda n: n + 1"},
        "mini/a.py",
        "n + 1",
        "n + 2",
    ),
    "the result of a property": (
        {
            STAGE: "from mini.a import C\nprint(C().n)",
            "mini/a.py": "class C:\n    @property\n    def n(self):\n        return 1",
        },
        "mini/a.py",
        "1",
        "2",
    ),
    "a function that a key function is": (
        {
            STAGE: "import mini.b\nfrom mini.a import SEEN\nprint(SEEN)",
            "mini/a.py": "SEEN = []\ndef see(n):\n    SEEN.append(n)\n    return n",
            "mini/b.py": "from mini.a import see\nUNUSED = sorted([1], key=see)",
        },
        "mini/b.py",
        "[1]",
        "[2]",
    ),
    "a function whose argument has the name of a harmless one": (
        {
            STAGE: "import mini.b\nfrom mini.a import SEEN\nprint(SEEN)",
            "mini/a.py": "SEEN = []\ndef see(n):\n    SEEN.append(n)\ndef harmless(n):\n    return n\n"
            "def call(harmless, n):\n    return harmless(n)",
            "mini/b.py": "from mini.a import call, see\nUNUSED = call(see, 1)",
        },
        "mini/b.py",
        "see, 1",
        "see, 2",
    ),
}
_A = {STAGE: "from mini.a import f\nprint(f())", "mini/a.py": "def f():\n    return 1\ndef other():\n    return 5\n"}
# {what is edited: (files, file, old text, new text)}; no edit can change what the stage prints.
REACHES_NOTHING = {
    "another function": (_A, "mini/a.py", "5", "6"),
    "a new function": (_A, "mini/a.py", "def other", "def third():\n    return 7\ndef other"),
    "an import of a new function": (_A, "mini/a.py", "def other():\n", "import math\ndef other():\n    math.pi\n"),
    "a comment": (_A, "mini/a.py", "return 1", "return 1  # one"),
    "a docstring": (_A, "mini/a.py", "def f():\n", "def f():\n    '''One.'''\n"),
    "another constant": ({**_A, "mini/a.py": f"N = 3\n{_A['mini/a.py']}"}, "mini/a.py", "N = 3", "N = 4"),
    "a table that nothing names": (
        {**_A, "mini/a.py": f"def cell(n):\n    return n\nTABLE = {{'a': cell(3)}}\n{_A['mini/a.py']}"},
        "mini/a.py",
        "cell(3)",
        "cell(4)",
    ),
    "a dataclass that nothing names": (
        {
            **_A,
            "mini/a.py": "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass C:\n"
            f"    n: int = 3\n    m: dict = field(default_factory=dict)\nD = C(n=7)\n{_A['mini/a.py']}",
        },
        "mini/a.py",
        "n: int = 3",
        "n: int = 4",
    ),
    "what only type checkers import": (
        {
            **_A,
            "mini/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mini.b import g\n"
            f"{_A['mini/a.py']}",
            "mini/b.py": "g = 1",
        },
        "mini/b.py",
        "1",
        "2",
    ),
    "another function of a module that is used by its name": (
        {STAGE: "from mini import a\nprint(a.f())", "mini/a.py": _A["mini/a.py"]},
        "mini/a.py",
        "5",
        "6",
    ),
}


def _written(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "mini"
    for name, text in {"mini/__init__.py": "", "mini/stages/__init__.py": "", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text) + "\n")
        if not (init := path.parent / "__init__.py").exists():
            init.write_text("")
    return package


def _printed(folder: Path) -> str:
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); import {ROOT}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("case", REACHES)
def test_an_edit_that_changes_a_result_changes_the_key(tmp_path, case):
    files, file, old, new = REACHES[case]
    package = _written(tmp_path, files)
    before, printed = CodeIndex(package).digest([ROOT]), _printed(tmp_path)
    _edit(tmp_path / file, old, new)
    assert _printed(tmp_path) != printed
    assert CodeIndex(package).digest([ROOT]) != before


@pytest.mark.parametrize("case", REACHES_NOTHING)
def test_an_edit_of_what_no_stage_names_keeps_the_key(tmp_path, case):
    files, file, old, new = REACHES_NOTHING[case]
    package = _written(tmp_path, files)
    before, printed = CodeIndex(package).digest([ROOT]), _printed(tmp_path)
    _edit(tmp_path / file, old, new)
    assert _printed(tmp_path) == printed
    assert CodeIndex(package).digest([ROOT]) == before


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) >= 1
    path.unlink()  # Python takes the byte code of a file of the same size and second for that of the new one
    path.write_text(new.join(text.rsplit(old, 1)))
    for made in path.parent.glob("__pycache__/*"):
        made.unlink()


def test_the_names_of_a_module_are_its_own_where_a_child_has_the_same(tmp_path):
    """`mini.a` has a function `b` and a module `b`: either may be meant."""
    files = {
        STAGE: "from mini.a import b\nprint(b)",
        "mini/a/__init__.py": "def b():\n    return 1",
        "mini/a/b.py": "N = 1",
    }
    package = _written(tmp_path, files)
    named = {module for module, _ in CodeIndex(package).closure([ROOT])}
    assert {"mini.a", "mini.a.b"} <= named
