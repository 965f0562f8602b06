"""Which edits reach a key, by hand: each case is a small package whose stage prints something, and an edit of it.

Where the edit changes what the stage prints, the digest has to change. Both are looked at: the package runs before and
after the edit.
"""

import contextlib
import importlib
import os
import sys
import textwrap
from pathlib import Path

import pytest

from dualread.store.code import CodeIndex

STAGE = "mini/stages/work.py"
ROOT = "mini.stages.work"

F, G = "def f():\n    return 1", "def g():\n    return 1"
A = f"{F}\ndef other():\n    return 5\n"
Case = tuple[dict[str, str], str, str, str]


def case(old: str = "1", new: str = "2", stage: str = "from mini.a import f\nprint(f())", **modules: str) -> Case:
    """A package of these modules; the last one is edited."""
    files = {f"mini/{name}.py": text for name, text in modules.items()}
    return {STAGE: stage, **files}, [*files][-1], old, new


# By what is edited; each edit changes what the stage prints.
# fmt: off
REACHES = {
    "a function": case(a=F),
    "a function through a module": case(stage="from mini import a\nprint(a.f())", a=F),
    "a function of a module with a long name": case(stage="import mini.a\nprint(mini.a.f())", a=F),
    "a function that is imported inside a function": case(a="def f():\n    from mini.b import g\n    return g()", b=G),
    "a constant through two modules": case("LIMIT = 1", "LIMIT = 2",
        a="from mini.b import LIMIT\ndef f():\n    return LIMIT", b="from mini.c import LIMIT",
        c="OTHER = 0\nLIMIT = 1"),
    "where a name comes from, if both places count anyway": case("f as h", "g as h",
        stage="from mini import b\nfrom mini.c import f, g\nprint(b.h(), f(), g())",
        c="def f():\n    return 1\ndef g():\n    return 2", b="from mini.c import f as h"),
    "what an import of another package names": case("floor", "ceil",
        a="from math import floor as whole\ndef f():\n    return whole(1.5)"),
    "a default": case("n=1", "n=2", a="def f(n=1):\n    return n"),
    "a constant that a default names": case("N = 1", "N = 2", a="N = 1\ndef f(n=N):\n    return n"),
    "a decorator": case("2 * g()", "3 * g()",
        a="def twice(g):\n    return lambda: 2 * g()\n@twice\ndef f():\n    return 1"),
    "a method of a base class": case(stage="from mini.a import Child\nprint(Child().f())",
        a="from mini.b import Base\nclass Child(Base):\n    pass", b="class Base:\n    def f(self):\n        return 1"),
    "a default of a dataclass": case("= 1", "= 2", stage="from mini.a import Settings\nprint(Settings().n)",
        a="from dataclasses import dataclass\n@dataclass\nclass Settings:\n    n: int = 1"),
    "what makes a default of a dataclass": case("return 1", "return 2",
        stage="from mini.a import Settings\nprint(Settings().n)",
        a="from dataclasses import dataclass, field\ndef first():\n    return 1\n@dataclass\nclass Settings:\n"
        "    n: int = field(default_factory=first)"),
    "a member of an enum": case("A = 1", "A = 2", stage="from mini.a import Kind\nprint([kind.value for kind in Kind])",
        a="from enum import Enum\nclass Kind(Enum):\n    A = 1"),
    "a class attribute": case(stage="from mini.a import C\nprint(C().n)", a="class C:\n    n = 1"),
    "a comprehension at module level": case("n + 1", "n + 2", stage="from mini.a import TABLE\nprint(TABLE)",
        a="def f(n):\n    return n + 1\nTABLE = {n: f(n) for n in range(2)}"),
    "a function inside functools.partial": case("n + 1", "n + 2", stage="from mini.a import g\nprint(g())",
        a="from functools import partial\ndef f(n):\n    return n + 1\ng = partial(f, 1)"),
    "a name that a function has for itself, too": case("n = 1", "n = 2",
        a="n = 1\ndef f():\n    def g():\n        n = 5\n        return n\n    return g() + n"),
    "what getattr takes from a module": case(stage="from mini import a\nprint(getattr(a, 'f' + '')())", a=F),
    "what getattr takes from a module that it imports": case(stage="from mini import a\nprint(getattr(a, 'f' + '')())",
        a="from mini.b import f", b=F),
    "a module in a table of modules": case(stage="from mini.a import TABLE\nprint(TABLE['b'].f())",
        a="from mini import b\nTABLE = {'b': b}", b=F),
    "a module whose name is a text": case(
        stage="from importlib import import_module\nprint(import_module('mini.a').f())", a=F),
    "what globals() finds": case("return 1", "return 2", stage="from mini.a import g\nprint(g('f'))",
        a="def f():\n    return 1\ndef g(name):\n    return globals()[name]()"),
    "what eval finds": case("return 1", "return 2", stage="from mini.a import g\nprint(g())",
        a="def f():\n    return 1\ndef g():\n    return eval('f()')"),
    "a subclass that is found by its base": case("n = 1", "n = 2",
        stage="import mini.b\nfrom mini.a import Base\nprint([kind.n for kind in Base.__subclasses__()])",
        a="class Base:\n    pass", b="from mini.a import Base\nclass One(Base):\n    n = 1"),
    "a subclass that registers itself by __init_subclass__": case("n = 1", "n = 2",
        stage="import mini.b\nfrom mini.a import KNOWN\nprint([kind.n for kind in KNOWN])",
        a="KNOWN = []\nclass Base:\n    def __init_subclass__(cls):\n        KNOWN.append(cls)",
        b="from mini.a import Base\nclass One(Base):\n    n = 1"),
    "a class that registers itself by its metaclass": case("n = 1", "n = 2",
        stage="import mini.b\nfrom mini.a import KNOWN\nprint([kind.n for kind in KNOWN])",
        a="KNOWN = []\nclass Meta(type):\n    def __init__(cls, *given):\n        KNOWN.append(cls)\n"
        "class Base(metaclass=Meta):\n    n = 0", b="from mini.a import Base\nclass One(Base):\n    n = 1"),
    "a function that a decorator registers": case(
        stage="import mini.b\nfrom mini.a import KNOWN\nprint([f() for f in KNOWN])",
        a="KNOWN = []\ndef known(f):\n    KNOWN.append(f)\n    return f",
        b="from mini.a import known\n@known\ndef f():\n    return 1"),
    "a function that the decorator that a call returns registers": case("return 1", "return 2",
        stage="import mini.b\nfrom mini.a import KNOWN\nprint([f() for f in KNOWN.values()])",
        a="KNOWN = {}\ndef known(name):\n    def keep(f):\n        KNOWN[name] = f\n        return f\n    return keep",
        b="from mini.a import known\n@known('f')\ndef f():\n    return 1"),
    "a default whose value registers something": case("keep(1)", "keep(2)",
        stage="import mini.b\nfrom mini.a import KNOWN\nprint(KNOWN)",
        a="KNOWN = []\ndef keep(n):\n    KNOWN.append(n)",
        b="from mini.a import keep\ndef unused(n=keep(1)):\n    return n"),
    "a constant whose value registers something": case("keep(1)", "keep(2)",
        stage="import mini.b\nfrom mini.a import KNOWN\nprint(KNOWN)",
        a="KNOWN = []\ndef keep(n):\n    KNOWN.append(n)", b="from mini.a import keep\nUNUSED = keep(1)"),
    "a class attribute that registers something": case("Field(1)", "Field(2)",
        stage="import mini.b\nfrom mini.a import KNOWN\nprint(KNOWN)",
        a="KNOWN = []\nclass Field:\n    def __init__(self, n):\n        KNOWN.append(n)",
        b="from mini.a import Field\nclass Unused:\n    n = Field(1)"),
    "an attribute that another module sets on a module": case("return 1", "return 2",
        stage="import mini.b\nfrom mini import a\nprint(a.f())", a="def f():\n    return 0",
        b="from mini import a\ndef other():\n    return 1\na.f = other"),
    "a method that another module sets on a class": case(stage="import mini.b\nfrom mini.a import C\nprint(C().f())",
        a="class C:\n    pass", b="from mini.a import C\nC.f = lambda self: 1"),
    "an entry that another statement adds": case(stage="from mini.a import TABLE\nprint(TABLE)",
        a="TABLE = {}\nTABLE['n'] = 1"),
    "a value that another function sets": case("n = 1", "n = 2",
        stage="from mini.a import g, set_n\nset_n()\nprint(g())",
        a="n = 0\ndef set_n():\n    global n\n    n = 1\ndef g():\n    return n"),
    "a later definition of the same name": case(a="def f():\n    return 0\ndef f():\n    return 1"),
    "a definition under a condition": case("return 1", "return 2",
        a="import sys\nif sys.version_info > (3,):\n    def f():\n        return 1\nelse:\n    f = None"),
    "an import that may fail": case(a="try:\n    from nowhere import f\nexcept ImportError:\n    from mini.b import f",
        b=F),
    "one of several constants of a statement": case(stage="from mini.a import A\nprint(A)", a="A, B = 1, 0"),
    "what a star imports": case(a="from mini.b import *\ndef f():\n    return g()", b=G),
    "the __getattr__ of a module": case(stage="from mini import a\nprint(a.anything)",
        a="def __getattr__(name):\n    return 1"),
    "a type that only an annotation names, as a text": case("n = 1", "n = 2",
        stage="from typing import get_type_hints\nfrom mini.a import f\nprint(get_type_hints(f)['n'].n)",
        a="def f(n: 'Kind'):\n    return n\nclass Kind:\n    n = 1"),
    "the __init__ of a package": case(
        stage="from mini.sub.a import f\nprint(f())",
        **{
            "sub/a": "import os\ndef f():\n    return os.environ['MINI']",
            "sub/__init__": "import os\nos.environ['MINI'] = '1'",
        },
    ),
    "an import for what it does": case(stage="import mini.b\nfrom mini import a\nprint(a.N)", a="N = 0",
        b="import mini.c", c="from mini import a\na.N = 1"),
    "two modules that import names from each other": case("return 1", "return 2",
        b="from mini.a import h\ndef g():\n    return h()",
        a="def f():\n    from mini.b import g\n    return g()\ndef h():\n    return 1"),
    "a lambda": case("n + 1", "n + 2", stage="from mini.a import f\nprint(f(1))", a="f = lambda n: n + 1"),
    "the result of a property": case(stage="from mini.a import C\nprint(C().n)",
        a="class C:\n    @property\n    def n(self):\n        return 1"),
    "a function that a key function is": case("[1]", "[2]", stage="import mini.b\nfrom mini.a import SEEN\nprint(SEEN)",
        a="SEEN = []\ndef see(n):\n    SEEN.append(n)\n    return n",
        b="from mini.a import see\nUNUSED = sorted([1], key=see)"),
    **{
        f"a class that registers itself, derived from {how}": case(
            "n = 1",
            "n = 2",
            stage="import mini.b\nfrom mini.a import KNOWN\nprint([kind.n for kind in KNOWN])",
            a="from typing import Generic, TypeVar\nT = TypeVar('T')\nKNOWN = []\nclass Base(Generic[T]):\n"
            "    def __init_subclass__(cls):\n        KNOWN.append(cls)\nclass Meta(type):\n"
            "    def __init__(cls, *given):\n        KNOWN.append(cls)\nAlias = Base\nNarrow = Base[int]\n"
            "def make():\n    return Base\nMade = make()",
            b=f"from mini.a import Alias, Base, Made, Meta, Narrow, make\n{text}n = 1",
        )
        for how, text in {
            "a base with a parameter": "class One(Base[int]):\n    ",
            "another name of a base": "class One(Alias):\n    ",
            "another name of a base with a parameter": "class One(Narrow):\n    ",
            "what a call returns": "class One(make()):\n    ",
            "what a call returned": "class One(Made):\n    ",
            "a metaclass of its own": "class One(metaclass=Meta):\n    ",
            "a base, under a condition": "if make:\n    class One(Base):\n        ",
        }.items()
    },
    "a function that a partial of a function registers": case("return 1", "return 2",
        stage="import mini.b\nfrom mini.a import KNOWN\nprint([f() for f in KNOWN.values()])",
        a="KNOWN = {}\ndef keep(name, f):\n    KNOWN[name] = f\n    return f",
        b="from functools import partial\nfrom mini.a import keep\n@partial(keep, 'f')\ndef f():\n    return 1"),
    "what another name of sys.modules has": case("return 1", "return 2",
        stage="import mini.b\nfrom sys import modules\nprint(modules['mini.b'].g())", b="def g():\n    return 1"),
    "what sys.modules has by a method": case("return 1", "return 2",
        stage="import mini.b\nimport sys\nprint(sys.modules.get('mini.b').g())", b="def g():\n    return 1"),
    "what another name of globals finds": case("return 1", "return 2", stage="from mini.a import g\nprint(g('f'))",
        a="from builtins import globals as names\ndef f():\n    return 1\ndef g(name):\n    return names()[name]()"),
    "the order of two imports that register something": case("from mini import c\nfrom mini import d",
        "from mini import d\nfrom mini import c", stage="from mini import b\nfrom mini.a import KNOWN\nprint(KNOWN)",
        a="KNOWN = []", c="from mini.a import KNOWN\nKNOWN.append('c')",
        d="from mini.a import KNOWN\nKNOWN.append('d')", b="from mini import c\nfrom mini import d"),
    "a module of a table of names, which the __getattr__ of a package imports": case(
        "return 1",
        "return 2",
        stage="from mini.lazy import f\nprint(f())",
        **{
            "lazy/__init__": "from importlib import import_module\nTABLE = {'f': 'inner'}\ndef __getattr__(name):\n"
            "    return getattr(import_module(f'{__name__}.{TABLE[name]}'), name)",
            "lazy/inner": "def f():\n    return 1",
        },
    ),
    "the __getattr__ that a module imports": case("return 1", "return 2", stage="from mini import a\nprint(a.anything)",
        a="from mini.b import __getattr__", b="def __getattr__(name):\n    return 1"),
    "a module of a relative name": case("return 1", "return 2",
        stage="from importlib import import_module\nprint(import_module('.a', 'mini').f())", a=F),
    "a function whose argument has the name of a harmless one": case("see, 1", "see, 2",
        stage="import mini.b\nfrom mini.a import SEEN\nprint(SEEN)",
        a="SEEN = []\ndef see(n):\n    SEEN.append(n)\ndef harmless(n):\n    return n\ndef call(harmless, n):\n"
        "    return harmless(n)", b="from mini.a import call, see\nUNUSED = call(see, 1)"),
}
# fmt: on
# No edit can change what the stage prints.
# fmt: off
REACHES_NOTHING = {
    "another function": case("5", "6", a=A),
    "a new function": case("def other", "def third():\n    return 7\ndef other", a=A),
    "an import of a new function": case("def other():\n", "import math\ndef other():\n    math.pi\n", a=A),
    "a comment": case("return 1", "return 1  # one", a=A),
    "a docstring": case("def f():\n", "def f():\n    '''One.'''\n", a=A),
    "another constant": case("N = 3", "N = 4", a="N = 3\ndef f():\n    return 1\ndef other():\n    return 5\n"),
    "a table that nothing names": case("cell(3)", "cell(4)",
        a="def cell(n):\n    return n\nTABLE = {'a': cell(3)}\ndef f():\n    return 1\ndef other():\n    return 5\n"),
    "a dataclass that nothing names": case("n: int = 3", "n: int = 4",
        a="from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass C:\n    n: int = 3\n"
        "    m: dict = field(default_factory=dict)\nD = C(n=7)\n" + A),
    "what only type checkers import": case(
        a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mini.b import g\n" + A, b="g = 1"),
    "another function of a module that is used by its name": case("5", "6", stage="from mini import a\nprint(a.f())",
        a=A),
}
# fmt: on


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
    """What the stage prints in a new process, which has imported nothing of the package; a fork of this one."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.dup2(write, 1)
            sys.stdout = os.fdopen(1, "w")
            sys.dont_write_bytecode = True
            sys.path.insert(0, str(folder))
            importlib.import_module(ROOT)
            sys.stdout.flush()
            code = 0
        os._exit(code)
    os.close(write)
    with os.fdopen(read) as said:
        printed = said.read()
    assert os.waitpid(child, 0)[1] == 0
    return printed


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
    path.write_text(new.join(text.rsplit(old, 1)))


@pytest.mark.parametrize(
    "stage",
    [
        "from mini.readers.helpers.shifts import f\nprint(f())",
        "from mini.readers.helpers import shifts\nprint(shifts.f())",
        "import mini.readers.helpers.shifts\nfrom mini.readers import helpers\nprint(getattr(helpers, 'shifts').f())",
    ],
)
def test_a_folder_without_an_init_is_followed(tmp_path, stage):
    """Python imports what is in it all the same: by a function, by a module, and by the folder."""
    package = _written(tmp_path, {STAGE: stage, "mini/readers/helpers/shifts.py": F})
    (package / "readers/helpers/__init__.py").unlink()
    before, printed = CodeIndex(package).digest([ROOT]), _printed(tmp_path)
    _edit(package / "readers/helpers/shifts.py", "return 1", "return 2")
    assert _printed(tmp_path) != printed
    assert CodeIndex(package).digest([ROOT]) != before


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
