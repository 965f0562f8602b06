"""Digest of the code that a stage's result depends on: its static import closure inside one package.

`dualread.store.source` defines the digest of one module. The closure starts from the stage's module and from the
modules and data files that its `spec` names, because an import closure cannot see what is loaded by name. The spec
names them under the keys `module` (a plugin, such as `readers.psr`) and `file` (`models/prompts/shared.txt`). All
imports are followed, including those inside functions and the `__init__` of every parent package, except imports under
`if TYPE_CHECKING`.

`job_digests` is what a job is planned with. Next: `dualread.study.stale`, which compares results with the code before a
run; and `dualread.store.runner`, where the digest becomes a part of the key.
"""

import functools
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dualread import read_once
from dualread.errors import ConfigError
from dualread.store.digest import digest_of
from dualread.store.packages import public_versions
from dualread.store.source import Source, as_names, parse
from dualread.store.source_cache import SourceCache

SOURCES_NAME = "sources.json"  # a file of the store: the parsed modules, for the next process
_FILE = "file:"
# These modules store, find and report results but do not change them, so an edit to them must not retrain an actor.
# `plugins` only imports modules that the spec names, and each of those is in the closure.
_NOT_RESULTS = ("commands", "plugins", "progress", "read_once", "store")


class CodeIndex:
    """The modules of one package. Each is read at most once, and parsed only if no earlier process has parsed it.

    Args:
        root: The package's folder, which has the package's name.
        cache: A file in which the parsed modules are kept for the next process.
    """

    def __init__(self, root: Path, cache: Path | None = None) -> None:
        self._root = root
        self._package = root.name
        self._outside = tuple(f"{self._package}.{name}" for name in _NOT_RESULTS)
        self._cache = SourceCache(cache, root)
        self._paths: dict[str, Path | None] = {}
        self._sources: dict[str, Source] = {}
        self._imports: dict[str, list[str]] = {}
        self._file_digests: dict[str, str] = {}
        self._digests: dict[tuple[str, ...], str] = {}
        self._packages: dict[tuple[str, ...], dict[str, str]] = {}

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
        """Return {distribution: public version} of all third-party packages that the closure of `roots` imports."""
        roots = tuple(roots)
        if roots not in self._packages:
            imported = {name.split(".")[0] for name in self.outside(roots)}
            self._packages[roots] = public_versions(imported - sys.stdlib_module_names)
        return dict(self._packages[roots])

    def outside(self, roots: Iterable[str]) -> set[str]:
        """Return the modules of other packages, and the names in them, that the closure of `roots` imports."""
        modules = self._closure(root for root in roots if not root.startswith(_FILE))
        imported = {name for module in modules for name in self._source(module).imports}
        return {name for name in imported if name.split(".")[0] not in (self._package, "")}

    def _closure(self, roots: Iterable[str]) -> list[str]:
        todo = list(roots)
        for root in todo:
            if self._find(root) is None:
                raise ConfigError(f"{root}: no such module under {self._root}. Check the name in the config.")
        # Importing a root also runs the __init__ of its parent packages.
        todo = [parent for root in todo for parent in self._with_parents(root)]
        seen: set[str] = set()
        while todo:
            module = todo.pop()
            if module not in seen:
                seen.add(module)
                todo.extend(self._imported(module))
        self._cache.save()
        return sorted(seen)

    def _find(self, module: str) -> Path | None:
        if module not in self._paths:
            inside = module.split(".")[0] == self._package
            self._paths[module] = read_once.module_file(self._root, module) if inside else None
        return self._paths[module]

    def _with_parents(self, module: str) -> list[str]:
        parts = module.split(".")
        names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        return [name for name in names if not self._is_outside(name) and self._find(name) is not None]

    def _is_outside(self, module: str) -> bool:
        return module.startswith(tuple(f"{name}." for name in self._outside)) or module in self._outside

    def _source(self, module: str) -> Source:
        if module not in self._sources:
            path = self._find(module)
            assert path is not None, module
            content = read_once.read(path)
            if (found := self._cache.find(path, content)) is None:
                found = parse(content, _package_of(module, path), path)
                self._cache.keep(path, found)
            self._sources[module] = found
        return self._sources[module]

    def _imported(self, module: str) -> list[str]:
        """Return the modules of this package that `module` imports, with their parent packages."""
        if module not in self._imports:
            inside = [name for name in self._source(module).imports if name.split(".")[0] == self._package]
            self._imports[module] = sorted({found for name in inside for found in self._with_parents(name)})
        return self._imports[module]

    def _file_digest(self, name: str, named_by: str) -> str:
        if name not in self._file_digests:
            path = self._root / name
            try:
                self._file_digests[name] = hashlib.sha256(read_once.read(path)).hexdigest()
            except FileNotFoundError as error:
                raise ConfigError(
                    f"{path}: no such data file, although {named_by} names it. Check the name."
                ) from error
        return self._file_digests[name]


def stage_roots(stage: str, spec: Mapping[str, Any], package: str = "dualread") -> tuple[str, ...]:
    """Return the roots of the code closure of `stage` with `spec`: sorted module names, then sorted "file:<path>".

    Raises:
        ConfigError: A value under `module` or `file` is not a name or a list of names.
    """
    named = set(_named(spec))
    modules = {f"{package}.{name}" for key, name in named if key == "module"}
    files = {_FILE + name for key, name in named if key == "file"}
    return (*sorted({f"{package}.stages.{stage}", *modules}), *sorted(files))


def job_digests(stage: str, specs: Iterable[Mapping[str, Any]], cache: Path | None = None) -> tuple[str, str]:
    """Return the digest of the library's code, and that of the versions of packages, with which `stage` runs `specs`.

    The rules plan a job with them. The job compares them with what it finds, and does not run if they differ.
    """
    index, roots = library(cache), sorted({stage_roots(stage, spec) for spec in specs})
    return digest_of([index.digest(one) for one in roots]), digest_of([index.packages(one) for one in roots])


@functools.cache
def library(cache: Path | None = None) -> CodeIndex:
    """Return the index of the running library."""
    return CodeIndex(read_once.ROOT, cache)


def _named(value: Any) -> Iterator[tuple[str, str]]:
    """Yield each name under `module` or `file`, with this key."""
    if isinstance(value, dict):
        for key, member in value.items():
            if key in ("module", "file"):
                yield from ((key, name) for name in as_names(member, key))
            elif isinstance(member, dict | list | tuple):
                yield from _named(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _named(member)


def _package_of(module: str, path: Path) -> str:
    return module if path.name == "__init__.py" else module.rpartition(".")[0]
