"""Digest of the code that a stage's result depends on: its static import closure inside one package.

A module counts as its syntax tree without docstrings, comments and layout. Roots are the stage's module and what its
`spec` names: every value under a key `module` (a plugin, `readers.psr`) and under a key `file` (a data file,
`prompts/shared.txt`), because a static closure cannot see what is loaded by name. Imports at any depth are followed,
those inside functions too, and the `__init__` of every parent package; imports under `if TYPE_CHECKING` are not.
"""

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError
from dualread.store.digest import digest_of, sha256_file
from dualread.store.packages import public_versions

_FILE = "file:"
# These carry, find and report results without taking part in them, so an edit here must not retrain an actor:
# `plugins` only imports a module that the spec already names (and that counts by itself).
_NOT_RESULTS = ("cli", "plugins", "progress", "run", "store")


@dataclass(frozen=True, kw_only=True)
class _Source:
    """What the closure needs to know about one module."""

    digest: str
    imports: frozenset[str]  # modules of the package
    packages: frozenset[str]  # top-level names from elsewhere, the standard library left out
    data_files: tuple[str, ...]


class CodeIndex:
    """The modules of one package, each read and parsed at most once.

    Args:
        root: The package's own folder; the package is called as the folder is.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._package = root.name
        self._outside = tuple(f"{self._package}.{name}" for name in _NOT_RESULTS)
        self._sources: dict[str, _Source] = {}
        self._file_digests: dict[str, str] = {}
        self._digests: dict[tuple[str, ...], str] = {}

    def digest(self, roots: Iterable[str]) -> str:
        """Return the digest of the closure of `roots` (see `stage_roots`).

        Raises:
            ConfigError: A root or a declared data file does not exist.
        """
        roots = tuple(roots)
        if roots not in self._digests:
            self._digests[roots] = digest_of(self.table(roots))
        return self._digests[roots]

    def table(self, roots: Iterable[str]) -> dict[str, str]:
        """Return {module or "file:<path>": digest} of the closure of `roots`."""
        roots = tuple(roots)
        modules = self._closure(root for root in roots if not root.startswith(_FILE))
        files = {root.removeprefix(_FILE): "the spec" for root in roots if root.startswith(_FILE)}
        for module in modules:
            files.update(dict.fromkeys(self._source(module).data_files, module))
        table = {module: self._source(module).digest for module in modules}
        return table | {_FILE + name: self._file_digest(name, named_by) for name, named_by in sorted(files.items())}

    def packages(self, roots: Iterable[str]) -> dict[str, str]:
        """Return {distribution: public version} of everything third-party that the closure of `roots` imports."""
        modules = self._closure(root for root in roots if not root.startswith(_FILE))
        return public_versions({name for module in modules for name in self._source(module).packages})

    def _closure(self, roots: Iterable[str]) -> list[str]:
        todo = list(roots)
        for root in todo:
            if self._find(root) is None:
                raise ConfigError(f"{root}: no such module under {self._root}. Check the name in the config.")
        # A root brings its parents' __init__ along, as any import does.
        todo = [parent for root in todo for parent in self._with_parents(root)]
        seen: set[str] = set()
        while todo:
            module = todo.pop()
            if module not in seen:
                seen.add(module)
                todo.extend(self._source(module).imports)
        return sorted(seen)

    def _find(self, module: str) -> Path | None:
        base = self._root.joinpath(*module.split(".")[1:])
        candidates = (base / "__init__.py", base.with_suffix(".py")) if base != self._root else (base / "__init__.py",)
        inside = module.split(".")[0] == self._package
        return next((path for path in candidates if inside and path.is_file()), None)

    def _with_parents(self, module: str) -> list[str]:
        parts = module.split(".")
        names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        return [name for name in names if not self._is_outside(name) and self._find(name) is not None]

    def _is_outside(self, module: str) -> bool:
        return module.startswith(tuple(f"{name}." for name in self._outside)) or module in self._outside

    def _source(self, module: str) -> _Source:
        if module not in self._sources:
            path = self._find(module)
            assert path is not None, module
            self._sources[module] = self._parse(module, path)
        return self._sources[module]

    def _parse(self, module: str, path: Path) -> _Source:
        tree = ast.parse(path.read_bytes(), filename=str(path))
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        # Found before the docstrings go, in the tree that still runs.
        imports = set(_imported_names(tree.body, package))
        inside = {name for name in imports if name.split(".")[0] == self._package}
        outside = {name.split(".")[0] for name in imports - inside}
        data_files = _declared_data_files(tree, path)
        _strip(tree)
        return _Source(
            digest=hashlib.sha256(ast.dump(tree).encode()).hexdigest(),
            imports=frozenset(parent for name in inside for parent in self._with_parents(name)),
            packages=frozenset(outside - sys.stdlib_module_names),
            data_files=data_files,
        )

    def _file_digest(self, name: str, named_by: str) -> str:
        if name not in self._file_digests:
            path = self._root / name
            if not path.is_file():
                raise ConfigError(f"{path}: no such data file, but {named_by} names it. Check the name.")
            self._file_digests[name] = sha256_file(path)
        return self._file_digests[name]


def stage_roots(stage: str, spec: Mapping[str, Any], package: str = "dualread") -> tuple[str, ...]:
    """Return the sorted roots of the code closure of `stage` under `spec`: module names and "file:<path>" entries.

    Raises:
        ConfigError: A value under `module` or `file` is not a name or a list of names.
    """
    modules = {f"{package}.{name}" for name in _named(spec, "module")}
    return (
        *sorted({f"{package}.stages.{stage}", *modules}),
        *sorted(_FILE + name for name in set(_named(spec, "file"))),
    )


def code_digest(stage: str, spec: Mapping[str, Any]) -> str:
    """Return the code digest of `stage` under `spec`; package versions are a separate part of the key."""
    return library().digest(stage_roots(stage, spec))


@cache
def library() -> CodeIndex:
    """Return the index of the running library, as its files were when they were first asked for."""
    return CodeIndex(Path(__file__).resolve().parents[1])


def _named(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            if name == key:
                yield from _as_names(member, key)
            else:
                yield from _named(member, key)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _named(member, key)


def _as_names(value: Any, key: str) -> Sequence[str]:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return names
    raise ConfigError(
        f"spec: {key}: {value!r} is not a name. Under {key!r} stands a name inside dualread, or a list of them."
    )


def _imported_names(body: Iterable[ast.AST], package: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield base
            # A name may be a module of its own; one that is not has no file and drops out later.
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _imported_names(node.orelse, package)
        else:
            yield from _imported_names(ast.iter_child_nodes(node), package)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")
    return ".".join([*parents[: len(parents) - node.level + 1], *([node.module] if node.module else [])])


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _declared_data_files(tree: ast.Module, path: Path) -> tuple[str, ...]:
    for node in tree.body:
        if _assigns(node, "DATA_FILES"):
            value = getattr(node, "value", None)
            try:
                return tuple(_as_names(ast.literal_eval(value), "DATA_FILES")) if value else ()
            except (ValueError, ConfigError) as error:
                raise ConfigError(f"{path}:{node.lineno}: DATA_FILES must be a literal tuple of paths.") from error
    return ()


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _strip(tree: ast.Module) -> None:
    """Remove what has no part in results: docstrings, and the version, so that a release does not retrain an actor."""
    tree.body = [node for node in tree.body if not _assigns(node, "__version__")]
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
