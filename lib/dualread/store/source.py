"""The digest of one module's source text, and the modules and data files that it needs.

The digest is that of the syntax tree without docstrings, comments and layout, so that editing these runs nothing again.
Next: `dualread.store.code`, which joins the digests of all modules that a stage runs.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Source:
    """What was found in the source text of one module.

    Attributes:
        content: sha256 of the bytes of the text.
        digest: sha256 of the part of the text that can change a result.
        imports: Absolute names that may be modules: `from a import b` gives a and a.b.
        data_files: Paths, relative to the package, that the module declares in `DATA_FILES`.
    """

    content: str
    digest: str
    imports: frozenset[str]
    data_files: tuple[str, ...]


def parse(content: bytes, package: str, path: Path) -> Source:
    """Parse the source text of a module.

    Args:
        content: The bytes of the module's file.
        package: The package that relative imports start from: the one that the module is in, or is itself.
        path: The module's file, for error messages.

    Raises:
        ConfigError: The text is not Python, or `DATA_FILES` is not a literal.
    """
    try:
        tree = ast.parse(content, filename=str(path))
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, in some versions of Python
        raise ConfigError(f"{path}: not valid Python ({error}). Correct the file.") from error
    # Before _strip, which changes the tree.
    imports = frozenset(_imported_names(tree.body, package))
    data_files = _declared_data_files(tree, path)
    _strip(tree)
    return Source(
        content=hashlib.sha256(content).hexdigest(),
        digest=hashlib.sha256(ast.dump(tree).encode()).hexdigest(),
        imports=imports,
        data_files=data_files,
    )


def as_names(value: Any, key: str) -> Sequence[str]:
    """Return `value`, which is a name or a list of names, as a list of names.

    Raises:
        ConfigError: `value` is neither.
    """
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return names
    raise ConfigError(
        f"spec: {key}: {value!r} is not a name. Expected the name of a module or file of dualread, or a list of names."
    )


def _imported_names(body: Iterable[ast.AST], package: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield base
            # The name may be a module; if it is not, it has no file and is ignored later.
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
                return tuple(as_names(ast.literal_eval(value), "DATA_FILES")) if value else ()
            except (ValueError, ConfigError) as error:
                raise ConfigError(f"{path}:{node.lineno}: DATA_FILES must be a literal tuple of paths.") from error
    return ()


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _strip(tree: ast.Module) -> None:
    """Remove what cannot change results: docstrings, and the version, so that a release does not retrain an actor."""
    tree.body = [node for node in tree.body if not _assigns(node, "__version__")]
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
