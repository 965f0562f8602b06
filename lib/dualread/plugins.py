"""Plugins are modules found by name: one file plus one config entry, no registry.

A plugin family is a subpackage of `dualread` (`datasets`, `backbones`, `readers`, ...); a plugin's name is the name
of its file. Files whose names start with an underscore are shared code of the family, not plugins. A module is a
plugin of its family when it defines the family's entry point (`ENTRY_POINTS`), so shared files need no special name
either.

A plugin says what the config may set in a literal `SETTINGS`: a JSON schema for each name, and `"optional": True` where
a name may be left out. `SETTINGS_OF = "grpo"` adds those of another plugin of the family. Both are read without an
import, so that a study is checked before anything runs.
"""

import ast
import importlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from dualread.errors import ConfigError

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
    if name not in known(family):
        raise ConfigError(f"{family}: no plugin named {name!r}. Known: {', '.join(known(family))}.")
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


@cache
def declared(family: str, name: str, constant: str) -> Any:
    """Return the literal that plugin `name` assigns to `constant` at top level, or None; the plugin is not imported.

    Raises:
        ConfigError: There is no such plugin.
    """
    for node in ast.parse(_path(family, name).read_bytes()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id == constant:
                return ast.literal_eval(node.value)
    return None


def summary(family: str, name: str) -> str:
    """Return the first paragraph of the plugin's docstring on one line; the plugin is not imported.

    Raises:
        ConfigError: There is no such plugin.
    """
    docstring = ast.get_docstring(ast.parse(_path(family, name).read_bytes())) or ""
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
        raise ConfigError(f"{family}: no plugin named {name!r}. Known: {', '.join(known(family))}.")
    return next(path for path in _files(family) if path.stem == name)


def _files(family: str) -> list[Path]:
    spec = find_spec(f"dualread.{family}")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return [path for folder in folders for path in Path(folder).glob("*.py")]


def _defines(path: Path, function: str) -> bool:
    if path.name.startswith("_"):
        return False
    return any(isinstance(n, ast.FunctionDef) and n.name == function for n in ast.parse(path.read_bytes()).body)
