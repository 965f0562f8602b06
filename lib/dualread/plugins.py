"""Plugins are modules found by name: one file plus one config entry, no registry.

A plugin family is a subpackage of `dualread` (`datasets`, `backbones`, `readers`, ...); a plugin's name is the name
of its file. Files whose names start with an underscore are shared code of the family, not plugins. A module is a
plugin of its family when it defines the family's entry point (`ENTRY_POINTS`), so shared files need no special name
either.

A plugin says what the config may set in a literal `SETTINGS`: a JSON schema for each name, and `"optional": True` where
a name may be left out. `SETTINGS_OF = "grpo"` adds those of another plugin of the family. These and all other constants
that a family declares are read without an import, so that a study is checked before anything runs. Each is therefore
one assignment of a literal at top level; anything else is an error.
"""

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from dualread.errors import ConfigError, did_you_mean

# What a module must define at top level to count as a plugin of its family.
ENTRY_POINTS = {
    "backbones": "load_model",
    "datasets": "load_rows",
    "figures": "draw",
    "generation": "open_engine",
    "hospitals": "official_files",
    "pools": "open_pool",
    "readers": "score",
    "rewards": "reward",
    "tables": "build",
    "training": "train",
}


def load(family: str, name: str) -> ModuleType:
    """Import the plugin `name` of `family`.

    Raises:
        ConfigError: There is no such plugin; the message lists the known ones.
    """
    _path(family, name)
    return importlib.import_module(f"dualread.{family}.{name}")


def load_module(module: str) -> ModuleType:
    """Import the plugin that a spec names under `module`, such as "readers.psr".

    Raises:
        ConfigError: There is no such plugin.
    """
    family, _, name = module.partition(".")
    return load(family, name)


@cache
def known(family: str) -> tuple[str, ...]:
    """Return the sorted plugin names of `family`, found without importing any of them."""
    return tuple(sorted(path.stem for path in _files(family) if _defines(path, ENTRY_POINTS[family])))


def alternatives(family: str, name: str) -> str:
    """Return the end of a message about `name`, which is no plugin of `family`: which ones there are."""
    names = known(family)
    text = f"Known: {', '.join(names) or 'none'}.{did_you_mean(name, names)}"
    for path in _files(family):
        if path.stem == name and not name.startswith("_"):
            text += f" {path} is no plugin, because it defines no function {ENTRY_POINTS[family]!r} at top level."
    return text


@cache
def declared(family: str, name: str, constant: str) -> Any:
    """Return the literal that plugin `name` assigns to `constant`, or None if it does not set it; nothing is imported.

    Raises:
        ConfigError: There is no such plugin, or it sets the constant otherwise than by one assignment of a literal at
            top level, so that its value is not known before the plugin runs.
    """
    path = _path(family, name)
    tree = _parsed(path)
    lines = [line for bound, line in _bindings(tree) if bound == constant]
    if not lines:
        return None
    assigned = [value for target, value in _assignments(tree) if target == constant]
    if len(lines) > 1:
        found = f"is set in lines {', '.join(map(str, lines))}"
    elif not assigned:
        found = "is set in another way (under `if`, by an import, by unpacking)"
    else:
        try:
            return ast.literal_eval(assigned[0])
        except (ValueError, TypeError):
            found = f"is {ast.unparse(assigned[0])}, which is no literal"
    raise ConfigError(
        f"{path}: line {lines[-1]}: {constant} {found}. Expected one assignment of a literal (text, numbers, lists,"
        " mappings) at top level, because it is read before the plugin runs. Write its value out."
    )


def summary(family: str, name: str) -> str:
    """Return the first paragraph of the plugin's docstring on one line; the plugin is not imported.

    Raises:
        ConfigError: There is no such plugin.
    """
    docstring = ast.get_docstring(_parsed(_path(family, name))) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def settings(family: str, name: str) -> dict[str, Any]:
    """Return what the config may set for plugin `name`, those of its `SETTINGS_OF` included: a JSON schema for each.

    Raises:
        ConfigError: There is no such plugin.
    """
    other = declared(family, name, "SETTINGS_OF")
    return {**(settings(family, other) if other else {}), **(declared(family, name, "SETTINGS") or {})}


def _path(family: str, name: str) -> Path:
    if name not in known(family):
        raise ConfigError(f"{family}: no plugin named {name!r}. {alternatives(family, name)}")
    return next(path for path in _files(family) if path.stem == name)


def _files(family: str) -> list[Path]:
    spec = find_spec(f"dualread.{family}")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return [path for folder in folders for path in Path(folder).glob("*.py")]


def _defines(path: Path, function: str) -> bool:
    if path.name.startswith("_"):
        return False
    return any(isinstance(n, ast.FunctionDef) and n.name == function for n in _parsed(path).body)


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, in some versions of Python
        line = getattr(error, "lineno", None) or 1
        raise ConfigError(f"{path}: line {line}: not valid Python ({error}). Correct the file.") from error


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, value) of every plain assignment at top level, such as `NAME = value`."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from ((target.id, node.value) for target in targets if isinstance(target, ast.Name))


def _bindings(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (name, line) wherever running the module sets, changes by item, or deletes one of its names."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.AnnAssign(value=None):
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name, child.lineno
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name, child.lineno
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name, child.lineno) for alias in names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, child.lineno
                continue  # what is set inside is no name of the module
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
        yield from _bindings(child)
