"""Plugins are modules found by name: one file plus one config entry, no registry.

A plugin family (`datasets`, `rewards`, `readers`, ...) is a package of `dualread`, and a plugin has the name of its
file. A module is a plugin if it defines the function that `FAMILIES` gives for its family. What the plugins of a family
share is in `base.py`; that file, and files whose names start with an underscore, are not plugins.

A plugin may also be a module of another package that is installed beside this one. Then its name is that of the module,
`their_package.module`, and keys of results follow its code as they follow ours.

A plugin declares the settings that the config may give it in a class `Settings`; see `schema.base.settings_class`. This
class and the constants that a plugin declares are read without importing it, so that a study is checked before anything
runs. Therefore each constant must be a single assignment of a literal at top level.
"""

import ast
import importlib
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from dualread import source_snapshot as source_snapshot
from dualread.errors import ConfigError, did_you_mean

# {family: (its package below `dualread`, the function that a plugin must define)}
FAMILIES = {
    "architectures": ("models.backbones", "create"),
    "claim_labels": ("grading.claim_labels", "supported"),
    "contracts": ("grading.contracts", "parse"),
    "corpora": ("training.corpora", "open_corpus"),
    "datasets": ("data.datasets", "load_rows"),
    "figures": ("reporting.figures", "draw"),
    "generation": ("models.generation", "open_engine"),
    "graders": ("grading.graders", "verdict"),
    "images": ("models.images", "change"),
    "logs": ("data.logs", "read_log"),
    "measures": ("models.measures", "measure"),
    "readers": ("readers", "score"),
    "rewards": ("training.rewards", "reward"),
    "rollouts": ("training.rollouts", "open_rollouts"),
    "spans": ("grading.spans", "spans"),
    "tables": ("reporting.tables", "build"),
    "training": ("training", "train"),
    "writers": ("training.writers", "official_files"),
}


def load(family: str, name: str) -> ModuleType:
    """Import the plugin `name` of `family`.

    Raises:
        ConfigError: There is no such plugin; the message lists the known ones.
    """
    file_of(family, name)
    return importlib.import_module(absolute(module_of(family, name)))


def load_module(module: str) -> ModuleType:
    """Import the plugin that a spec names as its `module`, such as "readers.psr".

    Raises:
        ConfigError: There is no such plugin.
    """
    package, _, name = module.rpartition(".")
    family = next((family for family, (folder, _) in FAMILIES.items() if folder == package), None)
    if family is None:
        if is_foreign(module) and source_snapshot.package_folder(module.partition(".")[0]):
            return importlib.import_module(module)
        packages = ", ".join(folder for folder, _ in FAMILIES.values())
        raise ConfigError(f"{module}: {package!r} holds no plugins. Expected a module in one of: {packages}.")
    return load(family, name)


def module_of(family: str, name: str) -> str:
    """Return the module of plugin `name`, as a spec names it: "data.datasets.slake", or "their_package.module"."""
    return name if "." in name else f"{package_of(family)}.{name}"


def name_of(family: str, module: str) -> str:
    """Return the name of the plugin that a spec names as its `module`: "psr" for "readers.psr" of the family readers.

    Raises:
        ConfigError: The module is one of another family.
    """
    package, _, name = module.rpartition(".")
    if is_foreign(module):
        return module
    if package != package_of(family):
        raise ConfigError(f"{module!r} is not in the family {family}. Expected {package_of(family)}.<name>.")
    return name


def is_foreign(module: str) -> bool:
    """Return whether a module that a spec names is one of another package, which cannot be called like our rooms."""
    return "." in module and module.partition(".")[0] not in {
        folder.partition(".")[0] for folder, _ in FAMILIES.values()
    }


def absolute(module: str) -> str:
    """Return the name by which Python knows a module that a spec names."""
    return module if is_foreign(module) else f"dualread.{module}"


def package_of(family: str) -> str:
    """Return the family's package below `dualread`."""
    return FAMILIES[family][0]


@cache
def known(family: str) -> tuple[str, ...]:
    """Return the sorted plugin names of `family` without importing any of them."""
    candidates = (path for path in _files(family) if not path.name.startswith("_") and path.name != "base.py")
    return tuple(sorted(path.stem for path in candidates if _defines(path, FAMILIES[family][1])))


def alternatives(family: str, name: str) -> str:
    """Return the end of a message about the unknown plugin `name`: the known plugins of `family`, and the nearest."""
    names = known(family)
    text = f"Known: {', '.join(names) or 'none'}.{did_you_mean(name, names)}"
    for path in _files(family):
        if path.stem == name and not name.startswith("_"):
            text += f" {path} is not a plugin: it defines no function {FAMILIES[family][1]!r} at top level."
    return text


@cache
def declared(family: str, name: str, constant: str) -> Any:
    """Return the literal that plugin `name` assigns to `constant`, or None if it sets none; nothing is imported.

    Raises:
        ConfigError: There is no such plugin, or it sets the constant in another way than by a single assignment of a
            literal at top level, so the value is not known before the plugin runs.
    """
    path = file_of(family, name)
    tree = _parsed(path)
    lines = [line for bound, line in _all_bindings(tree) if bound == constant]
    if not lines:
        return None
    assigned = [value for target, value in _assignments(tree) if target == constant]
    if len(lines) > 1:
        problem = f"is set more than once, in lines {', '.join(map(str, lines))}"
    elif not assigned:
        problem = "is set in another way (under `if`, by an import, by unpacking)"
    else:
        try:
            return ast.literal_eval(assigned[0])
        except (ValueError, TypeError):
            problem = f"is {ast.unparse(assigned[0])}, which is not a literal"
    raise ConfigError(
        f"{path}: line {lines[-1]}: {constant} {problem}. Expected one assignment of a literal (text, numbers, lists,"
        " mappings) at top level, because it is read before the plugin runs. Write out the value."
    )


def defines(family: str, name: str, function: str) -> bool:
    """Return whether plugin `name` defines `function` at top level; the plugin is not imported.

    Raises:
        ConfigError: There is no such plugin.
    """
    return _defines(file_of(family, name), function)


def summary(family: str, name: str) -> str:
    """Return the first paragraph of the plugin's docstring on one line; the plugin is not imported.

    Raises:
        ConfigError: There is no such plugin.
    """
    docstring = ast.get_docstring(_parsed(file_of(family, name))) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def class_statement(family: str, name: str, wanted: str) -> ast.ClassDef | None:
    """Return the statement of the class `wanted` at top level of plugin `name`, or None; the plugin is not imported.

    Raises:
        ConfigError: There is no such plugin.
    """
    body = _parsed(file_of(family, name)).body
    return next((node for node in body if isinstance(node, ast.ClassDef) and node.name == wanted), None)


def imports(family: str, name: str) -> list[ast.ImportFrom]:
    """Return the statements `from ... import ...` at top level of plugin `name`, which is not imported.

    Raises:
        ConfigError: There is no such plugin.
    """
    return [node for node in _parsed(file_of(family, name)).body if isinstance(node, ast.ImportFrom)]


def file_of(family: str, name: str) -> Path:
    """Return the file of plugin `name`.

    Raises:
        ConfigError: There is no such plugin.
    """
    if is_foreign(name):
        return _foreign_file(family, name)
    if name not in known(family):
        raise ConfigError(f"{family}: no plugin named {name!r}. {alternatives(family, name)}")
    return next(path for folder in _folders(family) if (path := folder / f"{name}.py").is_file())


def _foreign_file(family: str, module: str) -> Path:
    package = module.partition(".")[0]
    folder = source_snapshot.package_folder(package)
    path = folder and source_snapshot.module_file(folder, module)
    if path is None:
        advice = (
            "Expected package.module of a package that is installed there, or one of ours."
            f" {alternatives(family, module)}"
        )
        if folder is None:
            advice = _how_to_install(package) or advice
        raise ConfigError(f"{family}: no module {module!r} in the packages of {sys.executable}. {advice}")
    if not _defines(path, FAMILIES[family][1]):
        raise ConfigError(
            f"{path}: not a plugin of {family}: it defines no function {FAMILIES[family][1]!r} at top level. Define it."
        )
    return path


def _how_to_install(package: str) -> str | None:
    """Return how to install a package of the folder plugins/ of this repository; None for all others."""
    repository = source_snapshot.ROOT.parents[1]
    for project in sorted(repository.glob("plugins/*/pyproject.toml")):
        if (project.parent / package).is_dir():
            tools = tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {})
            command = tools.get("dualread", {}).get("install", f"{sys.executable} -m pip install {project.parent}")
            return f"It is in {project.parent}: `{command}` installs it with all that it needs."
    return None


def _folders(family: str) -> list[Path]:
    spec = find_spec(f"dualread.{package_of(family)}")
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def _files(family: str) -> list[Path]:
    return [path for folder in _folders(family) for path in folder.glob("*.py")]


def _defines(path: Path, name: str) -> bool:
    tree = _parsed(path)
    is_function = any(isinstance(n, ast.FunctionDef) and n.name == name for n in tree.body)
    return is_function or any(target == name for target, _ in _assignments(tree))


def _parsed(path: Path) -> ast.Module:
    return _parse(path, source_snapshot.read(path))


@cache
def _parse(path: Path, content: bytes) -> ast.Module:
    try:
        with source_snapshot.PARSING:
            return ast.parse(content, filename=str(path))
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, in some versions of Python
        line = getattr(error, "lineno", None) or 1
        raise ConfigError(f"{path}: line {line}: not valid Python ({error}). Correct the file.") from error


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, value) of each plain assignment at top level, such as `NAME = value`."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from ((target.id, node.value) for target in targets if isinstance(target, ast.Name))


@cache
def _all_bindings(tree: ast.Module) -> tuple[tuple[str, int], ...]:
    return tuple(_bindings(tree))


def _bindings(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (name, line) wherever the module's own code binds or deletes a name, or sets or deletes an item of it."""
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
                continue  # names bound inside are local
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
        yield from _bindings(child)


@cache
def runs_elsewhere(roots: tuple[str, ...]) -> bool:
    """Return whether a module is an engine with an environment of its own, whose packages are not known here."""
    families = {family: f"dualread.{package_of(family)}." for family in ("generation", "rollouts")}
    return any(
        declared(family, root.removeprefix(inside), "ENVIRONMENT")
        for family, inside in families.items()
        for root in roots
        if root.startswith(inside)
    )
