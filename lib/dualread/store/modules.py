"""The modules of the library and of packages with plugins that keys follow: their files, and what is found in them."""

import functools
import hashlib
import sys
from pathlib import Path

from dualread import source_snapshot as source_snapshot
from dualread.errors import ConfigError
from dualread.store.digest import KeptTable
from dualread.store.source import PARSER, Source, parse

# These modules store, find and report results but do not change them, so an edit to them must not retrain an actor.
# `plugins` only imports modules that the spec names, and each of those is in the closure.
_NOT_RESULTS = ("apps", "plugins", "progress", "source_snapshot", "store")


class Modules:
    """Each module is read at most once, and parsed only if no earlier process did, which `cache` tells."""

    def __init__(self, root: Path, cache: Path | None, others: frozenset[str]) -> None:
        self._root = root
        self._package = root.name
        self._folders = {root.name: root}
        for name in others:
            if (folder := source_snapshot.package_folder(name)) is None:
                where = f"no such package is installed in {sys.executable}"
                raise ConfigError(f"{name}: {where}. Install it beside dualread.")
            self._folders[name] = folder
        self._outside = tuple(f"{self._package}.{name}" for name in _NOT_RESULTS)
        self._parsed = KeptTable(cache, PARSER)  # by path, with the digest of the bytes
        for name in ("_find", "_is_inside", "_is_bare", "_source", "_file_digest"):
            setattr(self, name, functools.cache(getattr(self, name)))

    def _modules_below(self, package: str) -> list[str]:
        """Return the modules that are followed in a package, or in a folder without `__init__.py` in it."""
        top, *_ = package.split(".")
        folder = self._folders[top].joinpath(*package.split(".")[1:])
        paths = sorted(path.relative_to(self._folders[top]).with_suffix("") for path in folder.rglob("*.py"))
        names = [".".join((top, *path.parts)).removesuffix(".__init__") for path in paths]
        return [name for name in names if self._is_inside(name)]

    def _is_bare(self, module: str) -> bool:
        """Return whether a module is a folder without `__init__.py`, which Python imports as a package, too."""
        top, *parts = module.split(".")
        is_folder = bool(parts) and self._folders[top].joinpath(*parts).is_dir()
        return is_folder and self._find(module) is None and not self.is_outside(module)

    def _with_parents(self, module: str) -> list[str]:
        parts = module.split(".")
        names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        return [name for name in names if self._is_inside(name)]

    def _is_inside(self, module: str) -> bool:
        """Return whether `module` is one that is followed, whose code can change results."""
        return not self.is_outside(module) and self._find(module) is not None

    def is_outside(self, module: str) -> bool:
        """Return whether the code of `module` cannot change a result."""
        return module.startswith(tuple(f"{name}." for name in self._outside)) or module in self._outside

    def _find(self, module: str) -> Path | None:
        folder = self._folders.get(module.split(".")[0])
        return folder and source_snapshot.module_file(folder, module)

    def _source(self, module: str) -> Source:
        path = self._find(module)
        assert path is not None, module
        name = path.relative_to(self._root if path.is_relative_to(self._root) else "/").as_posix()
        content, known = source_snapshot.read(path), self._parsed.get(name)
        if known is not None and known["content"] == hashlib.sha256(content).hexdigest():
            return Source.of_row(known)
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        source = parse(content, package, path)
        self._parsed.keep(name, source.row())
        return source

    def _file_digest(self, name: str, named_by: str) -> str:
        package, _, inside = name.rpartition(":")  # a prompt of another package
        folder = source_snapshot.package_folder(package) if package else None
        path = (folder or self._folders.get(named_by.partition(".")[0], self._root)) / inside
        try:
            return hashlib.sha256(source_snapshot.read(path)).hexdigest()
        except FileNotFoundError as error:
            raise ConfigError(f"{path}: no such data file, although {named_by} names it. Check the name.") from error
