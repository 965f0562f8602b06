"""Plugins are modules found by name: one file plus one config entry, no registry.

A plugin family (`datasets`, `backbones`, `readers`, ...) is a package of `dualread`; a plugin's name is the name of its
file. A module is a plugin of its family when it defines the function that `FAMILIES` names for the family. What the
plugins of a family share is in its `base.py`; neither that file nor one whose name starts with an underscore is a
plugin.

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

# Each family's package below `dualread`, and the function that makes a module of it a plugin.
FAMILIES = {
    "backbones": ("models.backbones", "load_model"),
    "corpora": ("models.corpora", "open_corpus"),
    "datasets": ("data.datasets", "load_rows"),
    "figures": ("reporting.figures", "draw"),
    "generation": ("models.generation", "open_engine"),
    "readers": ("readers", "score"),
    "rewards": ("models.rewards", "reward"),
    "tables": ("reporting.tables", "build"),
    "training": ("models.training", "train"),
    "writers": ("data.writers", "official_files"),
}


def load(family: str, name: str) -> ModuleType:
    """Import the plugin `name` of `family`.

    Raises:
        ConfigError: There is no such plugin; the message lists the known ones.
    """
    _path(family, name)
    return importlib.import_module(f"dualread.{module_of(family, name)}")


def load_module(module: str) -> ModuleType:
    """Import the plugin that a spec names under `module`, such as "readers.psr".

    Raises:
        ConfigError: There is no such plugin.
    """
    package, _, name = module.rpartition(".")
    family = next((family for family, (folder, _) in FAMILIES.items() if folder == package), None)
    if family is None:
        packages = ", ".join(folder for folder, _ in FAMILIES.values())
        raise ConfigError(f"{module}: no plugins are in {package!r}. Expected a module of one of: {packages}.")
    return load(family, name)


def module_of(family: str, name: str) -> str:
    """Return the module of plugin `name`, as a spec names it: "data.datasets.slake"."""
    return f"{package_of(family)}.{name}"


def package_of(family: str) -> str:
    """Return the family's package below `dualread`."""
    return FAMILIES[family][0]


@cache
def known(family: str) -> tuple[str, ...]:
    """Return the sorted plugin names of `family`, found without importing any of them."""
    candidates = (path for path in _files(family) if not path.name.startswith("_") and path.name != "base.py")
    return tuple(sorted(path.stem for path in candidates if _defines(path, FAMILIES[family][1])))


def alternatives(family: str, name: str) -> str:
    """Return the end of a message about `name`, which is no plugin of `family`: which ones there are."""
    names = known(family)
    text = f"Known: {', '.join(names) or 'none'}.{did_you_mean(name, names)}"
    for path in _files(family):
        if path.stem == name and not name.startswith("_"):
            text += f" {path} is no plugin, because it defines no function {FAMILIES[family][1]!r} at top level."
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


def defines(family: str, name: str, function: str) -> bool:
    """Return whether plugin `name` defines `function` at top level; the plugin is not imported.

    Raises:
        ConfigError: There is no such plugin.
    """
    return _defines(_path(family, name), function)


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
    spec = find_spec(f"dualread.{package_of(family)}")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return [path for folder in folders for path in Path(folder).glob("*.py")]


def _defines(path: Path, function: str) -> bool:
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
