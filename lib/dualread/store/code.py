"""Digest of the code that a stage's result depends on: all definitions of one package that it can reach by names.

`dualread.store.source` defines what one module holds. The closure starts from all definitions of the stage's module and
of the modules that its `spec` names, because names cannot be followed into what is loaded by a computed name. The spec
names them under the keys `module` (a plugin, such as `readers.psr`, or a module of another package) and `file`
(`models/prompts/shared.txt`, a file of data). The package of such a module is followed like the library. From there,
each name in a definition leads to what it stands for, through imports at any depth. A module that is imported also
counts with what it does then (`dualread.store.effects`). Imports under `if TYPE_CHECKING` do not count. Of third-party
packages, the public versions are part of a key.

`job_digests` is what a job is planned with. Next: `dualread.study.stale`, which compares results with the code before a
run; and `dualread.store.runner`, where the digest becomes a part of the key.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dualread import source_snapshot as source_snapshot
from dualread.digests import digest_of
from dualread.errors import ConfigError
from dualread.plugins import is_foreign
from dualread.store.effects import Effects
from dualread.store.key import public_versions
from dualread.store.modules import Modules
from dualread.store.source import Definition, as_names

SOURCES_NAME = "sources.json"  # a file of the store: the parsed modules, for the next process
_FILE = "file:"
_PACKAGES_OF_NO_RESULT = {"pydantic"}  # it checks the types of what is declared, and converts nothing

# A part of a module: the number of a definition, a name that it imports, or one of these.
IMPORTED = "(imported)"  # what runs when it is imported
ALL = "(all)"  # all that it defines
HELD = "(held)"  # all that it defines, and all that it imports: who has a module can take any name from it
Node = tuple[str, int | str]

_Method = TypeVar("_Method", bound=Callable)


def _of_roots(method: _Method) -> _Method:
    """Return a method that answers once for equal roots, in the index that follows the packages of these roots."""

    @functools.wraps(method)
    def answer(self: "CodeIndex", roots: Iterable[str], *more: Any) -> Any:
        question = (method.__name__, roots := tuple(roots), *more)
        if question not in self._answers:
            self._answers[question] = method(self._index_of(roots), roots, *more)
        return self._answers[question]

    return answer  # type: ignore[return-value]


class CodeIndex(Modules):
    """The definitions of one package; installed packages with plugins, `others`, are followed as well."""

    def __init__(self, root: Path, cache: Path | None = None, others: frozenset[str] = frozenset()) -> None:
        self._with_others: dict[frozenset[str], CodeIndex] = {}
        super().__init__(root, cache, others)
        self._cache_file = cache
        self._effects: dict[tuple[str, tuple[str, ...]], bool] = {}
        self._hooks: dict[tuple[str, str], bool] = {}
        self._answers: dict[tuple, Any] = {}
        for name in ("_bound", "_next", "_registering"):
            setattr(self, name, functools.cache(getattr(self, name)))

    @_of_roots
    def digest(self, roots: Iterable[str]) -> str:
        """Return the digest of the closure of `roots` (see `stage_roots`)."""
        return digest_of(self.table(roots))

    @_of_roots
    def table(self, roots: Iterable[str]) -> dict[str, str]:
        """Return {module or "file:<path>": digest of what the closure of `roots` has of it}."""
        files = {root.removeprefix(_FILE): "the spec" for root in roots if root.startswith(_FILE)}
        parts: dict[str, list[tuple[int, str]]] = {}
        for module, part in self.closure(roots):
            source = self._source(module)
            if isinstance(part, str) and part not in (ALL, HELD, IMPORTED):
                parts.setdefault(module, []).append((-1, f"{part}={source.aliases[part]}"))
            elif isinstance(part, int):  # who imports a module, and uses nothing of it, has nothing of its files
                files.update(dict.fromkeys(source.data_files, module))
                parts.setdefault(module, []).append((part, source.definitions[part].digest))
            if part == IMPORTED and len(order := self._registering(module)) > 1:
                parts.setdefault(module, []).append((-2, f"order={order}"))
        table = {module: digest_of([d for _, d in sorted(digests)]) for module, digests in sorted(parts.items())}
        return table | {_FILE + name: self._file_digest(name, named_by) for name, named_by in sorted(files.items())}

    @_of_roots
    def packages(self, roots: Iterable[str]) -> dict[str, str]:
        """Return {distribution: public version} of all third-party packages that the closure of `roots` imports."""
        imported = {name.split(".")[0] for name in self.outside(roots)}
        return public_versions(imported - sys.stdlib_module_names - _PACKAGES_OF_NO_RESULT)

    def files(self, roots: Iterable[str]) -> list[Path]:
        """Return the files of all modules that the closure of `roots` reaches, sorted."""
        return sorted({path for module, _ in self.closure(roots) if (path := self._find(module)) is not None})

    @_of_roots
    def outside(self, roots: Iterable[str]) -> set[str]:
        """Return the modules of other packages, and the names in them, that the closure of `roots` imports."""
        imported: set[str] = set()
        for module, part in self.closure(roots):
            source = self._source(module)
            imported.update(source.imports if part == IMPORTED else ())
            imported.update(source.definitions[part].imports if isinstance(part, int) else ())
        return {name for name in imported if name.split(".")[0] not in (*self._folders, "")}

    @_of_roots
    def closure(self, roots: Iterable[str]) -> set[Node]:
        """Return everything that code of `roots` can reach."""
        modules = [root for root in roots if not root.startswith(_FILE)]
        for root in modules:
            if self._find(root) is None:
                raise ConfigError(f"{root}: no such module under {self._root}. Check the name in the config.")
        seen = self._all_reached([(root, ALL) for root in modules if not self.is_outside(root)])
        if any(it.reach == "all" for _, it in self._definitions(seen)):
            seen = self._all_reached([(owner, HELD) for owner, part in seen if part == IMPORTED])
        # These compute the name of a module that they import; a module's `__getattr__` does so only if something takes
        # a name from it that it does not spell.
        if packages := {
            owner.partition(".")[0]
            for owner, it in self._definitions(seen)
            if it.reach == "package" and (it.names != ("__getattr__",) or (owner, HELD) in seen)
        }:
            below = [(owner, HELD) for top in packages for owner in self._modules_below(top)]
            seen = self._all_reached([*seen, *below])
        self._parsed.save()
        return seen

    def _definitions(self, nodes: Iterable[Node]) -> list[tuple[str, Definition]]:
        """Return those of `nodes` that are definitions, with their modules."""
        return [(owner, self._source(owner).definitions[part]) for owner, part in nodes if isinstance(part, int)]

    @_of_roots
    def way_to(self, roots: Iterable[str], file: str) -> list[str]:
        """Return the modules by which code of `roots` reaches a data file, on the shortest way; none if it does not."""
        before: dict[Node, Node | None] = {(root, ALL): None for root in roots if not root.startswith(_FILE)}
        for node in (todo := list(before)):  # grows
            if file in self._source(node[0]).data_files:
                way = [node[0]]
                while (earlier := before[node]) is not None:
                    way, node = [earlier[0], *way], earlier
                return list(dict.fromkeys(way))
            new = [reached for reached in self._next(node) if reached not in before]
            before.update(dict.fromkeys(new, node))
            todo += new
        return []

    def _registering(self, module: str) -> list[str]:
        """Return the modules that register something when `module` is imported, in this order."""
        order, todo = [], [module]
        seen = {module, self._package}  # the package itself is imported before all others
        while todo:
            name = todo.pop()
            source = self._source(name)
            if any(it.registers and self._is_executed_for_effects(name, it) for it in source.definitions):
                order.append(name)
            new = [below for below in source.imports if below not in seen and self._is_inside(below)]
            seen.update(new)
            todo += reversed(new)
        return order

    def _is_executed_for_effects(self, module: str, it: Definition) -> bool:
        hooks = it.registers and any(self._has_hooks(module, base) for base in it.bases)
        return hooks or self._has_effects(module, it.at_import)

    def _index_of(self, roots: tuple[str, ...]) -> "CodeIndex":
        """Return the index that follows the packages of `roots`, and no others: keys do not depend on other jobs."""
        packages = {root.partition(".")[0] for root in roots if not root.startswith(_FILE)}
        if not (others := frozenset(packages - {self._package})) or others <= self._folders.keys():
            return self
        if others not in self._with_others:
            self._with_others[others] = CodeIndex(self._root, self._cache_file, others)
        return self._with_others[others]

    def _all_reached(self, todo: list[Node]) -> set[Node]:
        seen = set(todo)
        while todo:
            new = [reached for reached in self._next(todo.pop()) if reached not in seen]
            seen.update(new)
            todo += new
        return seen

    def _next(self, node: Node) -> tuple[Node, ...]:
        """Return what a part of a module leads to."""
        return tuple(dict.fromkeys(self._found(*node)))

    def _found(self, module: str, part: int | str) -> Iterator[Node]:
        source = self._source(module)
        if isinstance(part, int):
            definition = source.definitions[part]
            yield module, HELD if definition.reach == "module" else IMPORTED
            yield from self._imported(definition.imports)
            for use in definition.uses:
                yield from self._named(module, use.split("."))
            yield from ((text, HELD) for text in definition.texts if self._is_inside(text))
        elif part == IMPORTED:
            yield from self._imported([module])  # the `__init__` of the packages that it is in runs, too
            yield from self._imported(source.imports)
            yield from ((module, name) for name in source.unused)
            yield from ((star, HELD) for star in source.stars if self._is_inside(star))
            # Python asks it for each submodule that is imported by `from package import submodule`.
            yield from self._named(module, ["__getattr__"])
            for number, it in enumerate(source.definitions):
                if self._is_executed_for_effects(module, it):
                    yield module, number
        elif part == ALL:
            yield from ((module, any_part) for any_part in (IMPORTED, *range(len(source.definitions)), *source.aliases))
        elif part == HELD:
            yield module, ALL
            for targets in source.aliases.values():
                for target in targets:
                    yield from (node for node, _ in self._absolute(target.split(".")))
        else:
            yield module, IMPORTED

    def _named(self, module: str, name: list[str]) -> Iterator[Node]:
        """Yield what a dotted name may stand for where it stands in `module`: nothing for names of Python."""
        yield from (node for node, _ in self._named_with_rest(module, name))

    def _named_with_rest(
        self, module: str, name: list[str], followed: frozenset[str] = frozenset()
    ) -> Iterator[tuple[Node, list[str]]]:
        """Yield what a dotted name in a module may stand for, and the end of the name: what is taken from that."""
        # `followed` are the imports, as `module.name`, by which this name was reached. Imports in a circle end here.
        first, *rest = name
        source, this = self._source(module), f"{module}.{first}"
        for number in self._bound(module).get(first, ()):
            yield (module, number), rest
        if this in followed:
            return
        for target in source.aliases.get(first, ()):
            yield (module, first), rest
            yield from self._absolute([*target.split("."), *rest], followed | {this})
        for star in source.stars:
            if self._is_inside(star):
                yield from self._named_with_rest(star, name, followed | {this})

    def _absolute(self, name: list[str], followed: frozenset[str] = frozenset()) -> Iterator[tuple[Node, list[str]]]:
        """Yield what an absolute dotted name stands for, with its end: a definition, or a module as a whole."""
        # Whoever holds a module may take any name from it, and so may whoever takes one that cannot be found.
        module = name[0]
        if module not in self._folders:
            return
        for number, part in enumerate(name[1:], start=1):
            is_inside = self._is_inside(module)
            nodes = list(self._named_with_rest(module, name[number:], followed)) if is_inside else []
            yield from nodes
            below = f"{module}.{part}"
            if self._find(below) is None and not self._is_bare(below):
                if not nodes and is_inside and not part.startswith("__"):
                    yield (module, HELD), name[number:]
                return
            module = below
        for held in self._modules_below(module) if self._is_bare(module) else [module]:
            if self._is_inside(held):
                yield (held, HELD), []

    def _has_effects(self, module: str, effects: Effects) -> bool:
        """Return whether the calls that are known of an effect have effects, or others that are not known."""
        if effects is None:
            return True
        if (module, effects) not in self._effects:
            self._effects[module, effects] = True  # of functions that call each other
            self._effects[module, effects] = any(self._call_has_effects(module, name) for name in effects)
        return self._effects[module, effects]

    def _call_has_effects(self, module: str, name: str) -> bool:
        called = self._definitions(n for n, rest in self._named_with_rest(module, name.split(".")) if not rest)
        return not called or any(
            self._has_effects(owner, it.if_called) or any(self._call_has_effects(owner, base) for base in it.bases)
            for owner, it in called
        )

    def _has_hooks(self, module: str, base: str) -> bool:
        if (module, base) not in self._hooks:
            self._hooks[module, base] = False  # of names that stand for each other
            nodes = list(self._named(module, base.split(".")))
            self._hooks[module, base] = any(part == HELD for _, part in nodes) or any(
                it.has_hooks or any(self._has_hooks(owner, name) for name in it.bases)
                for owner, it in self._definitions(nodes)
            )
        return self._hooks[module, base]

    def _bound(self, module: str) -> dict[str, list[int]]:
        """Return {name: numbers of the definitions of `module` that bind it}."""
        places: dict[str, list[int]] = {}
        for number, definition in enumerate(self._source(module).definitions):
            for name in definition.names:
                places.setdefault(name, []).append(number)
        return places

    def _imported(self, names: Iterable[str]) -> list[Node]:
        """Return the modules that are followed among `names`, and the packages that they are in."""
        inside = [name for name in names if name.split(".")[0] in self._folders]
        return [(reached, IMPORTED) for name in inside for reached in self._with_parents(name)]


def stage_roots(stage: str, spec: Mapping[str, Any], package: str = "dualread") -> tuple[str, ...]:
    """Return the roots of the code closure of `stage` with `spec`: sorted module names, then sorted "file:<path>"."""
    modules = {name if is_foreign(name) else f"{package}.{name}" for name in _named(spec, "module")}
    files = {_FILE + name for name in _named(spec, "file")}
    return (*sorted({f"{package}.stages.{stage}", *modules}), *sorted(files))


def job_digests(stage: str, specs: Iterable[Mapping[str, Any]], cache: Path | None = None) -> tuple[str, str]:
    """Return the digest of the library's code, and that of the versions of packages, with which `stage` runs `specs`.

    The rules plan a job with them. The job compares them with what it finds, and does not run if they differ.
    """
    index, roots = library(cache), sorted({stage_roots(stage, spec) for spec in specs})
    return digest_of([index.digest(root) for root in roots]), digest_of([index.packages(root) for root in roots])


@functools.cache
def library(cache: Path | None = None) -> CodeIndex:
    """Return the index of the running library."""
    return CodeIndex(source_snapshot.ROOT, cache)


def _named(value: Any, key: str) -> Iterator[str]:
    """Yield each name that stands under `key` anywhere in a spec."""
    members: Iterable[Any] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, dict):
        yield from as_names(value[key], key) if key in value else ()
        members = (member for other, member in value.items() if other not in ("module", "file"))
    for member in members:
        yield from _named(member, key)
