"""What one module of the library defines, and what each of its definitions names.

A definition is a statement at the top level of a module, such as a function, a class or a constant. Its digest is that
of its syntax tree without docstrings, comments and layout, so that editing these runs nothing again. It is the same on
every Python, so that results of one are not said to be of edited code where another one looks at them.
`dualread.store.effects` tells which definitions do something when the module is imported, besides defining a name.
What was found is kept in one JSON file of the store, for the next process. Next: `dualread.store.code`, which follows
the names from the definitions that a stage runs.
"""

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dualread import source_snapshot as source_snapshot
from dualread.errors import ConfigError
from dualread.store import effects
from dualread.store.effects import Effects, Names, base_name, call_effects, dotted, has_hooks, import_effects, walked

# With these functions or attributes, code reaches names of its own module that it does not spell.
_OF_MODULE = {"globals", "eval", "exec", "builtins.globals", "builtins.eval", "builtins.exec"}
_GLOBALS = {"__globals__", "f_globals"}
# With these, it reaches definitions of any module.
_OF_ALL = ("sys.modules", "gc.get_objects")
# With these, it reaches modules whose names it need not spell.
_OF_PACKAGE = (
    *("__import__", "builtins.__import__", "importlib.import_module", "importlib.machinery"),
    *("importlib.util.module_from_spec", "importlib.util.spec_from_file_location", "pkgutil", "runpy", "zipimport"),
)
_SUBCLASSES = "__subclasses__"
_LOCAL_NAMES = {"locals", "vars", "builtins.locals", "builtins.vars"}

Reach = Literal["names", "module", "all", "package"]


@dataclass(frozen=True)
class Definition:
    """One statement at the top level of a module."""

    names: tuple[str, ...]  # the names that it binds
    digest: str  # sha256 of the part of its text that can change a result
    uses: tuple[str, ...]  # the dotted names of the module in it, as long as they are written: `parse.answer_of`
    imports: tuple[str, ...]  # names that may be modules, of imports inside it: `from a import b` gives a and a.b
    texts: tuple[str, ...]  # texts in it that may be the absolute names of modules of the same package
    at_import: Effects  # the effects of its execution, when its module is imported
    if_called: Effects | None  # for a function or a class: the effects of calling it; None for anything else
    bases: tuple[str, ...]  # dotted names of the bases of the classes in it; of `A = B`, what it is another name of
    # Whether it is a class that runs code of its own when another class is derived from it or holds it, or a statement
    # of which it is not known what class it gives
    has_hooks: bool
    registers: bool  # whether it may be there for what it does when it is executed, and not for a value
    # What it can reach: the "names" that it uses; any name of its "module"; "all" of any module that is imported; any
    # module of its "package", because it computes the name of a module
    reach: Reach


@dataclass(frozen=True, kw_only=True)
class Source:
    """What was found in the source text of one module."""

    content: str  # sha256 of the bytes of the text
    definitions: tuple[Definition, ...]  # all statements at its top level but imports, in order
    aliases: dict[str, tuple[str, ...]]  # {name: absolute names that imports anywhere in the module bind it to}
    stars: tuple[str, ...]  # absolute names of the modules of which it imports all names
    imports: tuple[str, ...]  # names that may be modules, of the imports that run when it is imported, in order
    unused: tuple[str, ...]  # imported from other packages and not used: these may be there for what they do
    data_files: tuple[str, ...]  # paths, relative to the package, that the module declares in `DATA_FILES`

    def row(self) -> dict[str, Any]:
        """Return what `of_row` makes a source of, as JSON can express it."""
        return {**vars(self), "definitions": [list(vars(it).values()) for it in self.definitions]}

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Source":
        """Return the source of a row, which may come from JSON."""
        fields = _with_tuples(row)
        return cls(**{**fields, "definitions": tuple(Definition(*values) for values in fields["definitions"])})


def parse(content: bytes, package: str, path: Path) -> Source:
    """Parse the source text of a module; relative imports start from `package`: the one that it is in, or is itself."""
    try:
        with source_snapshot.PARSING:
            tree = ast.parse(content, filename=str(path))
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, in some versions of Python
        raise ConfigError(f"{path}: not valid Python ({error}). Correct the file.") from error
    data_files = _declared_data_files(tree, path)
    _strip(tree)
    statements = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    bound: dict[str, set[str]] = {}
    for name, target in _aliases(tree, package):
        bound.setdefault(name, set()).add(target)
    aliases = {name: tuple(sorted(targets)) for name, targets in sorted(bound.items())}
    top = package.partition(".")[0]
    froms = (part for part in walked(tree) if isinstance(part, ast.ImportFrom))
    stars = tuple(sorted({_absolute(part, package) for part in froms if part.names[0].name == "*"}))
    names = Names(aliases, {name for node in statements for name in _bound_names(node)}, has_more=bool(stars))
    definitions = tuple(_definition(node, names, package) for node in statements)
    used = {use.partition(".")[0] for definition in definitions for use in definition.uses}
    return Source(
        content=hashlib.sha256(content).hexdigest(),
        definitions=definitions,
        aliases=aliases,
        stars=stars,
        imports=tuple(dict.fromkeys(_imported_names(tree.body, package))),
        unused=tuple(
            name
            for name, targets in aliases.items()
            if name not in used
            and not all(target.partition(".")[0] == top or target == "typing.TYPE_CHECKING" for target in targets)
        ),
        data_files=data_files,
    )


def as_names(value: Any, key: str) -> Sequence[str]:
    """Return `value`, which is a name or a list of names, as a list of names."""
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return names
    raise ConfigError(
        f"spec: {key}: {value!r} is not a name. Expected the name of a module or file of dualread, or a list of names."
    )


# Digests are those of Python 3.11, so that they can be compared between Pythons: 3.13 leaves out empty lists unless it
# is told not to, which before 3.13 is no argument.
_DUMP: dict[str, Any] = {"show_empty": True} if sys.version_info >= (3, 13) else {}
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _definition(node: ast.stmt, names: Names, package: str) -> Definition:
    classes = [part for part in walked(node) if isinstance(part, ast.ClassDef)]
    other = node.value if isinstance(node, ast.Assign) and base_name(node.value) else None
    bases = [base for part in classes for base in part.bases] if other is None else [other]
    is_constant = isinstance(node, ast.Assign | ast.AnnAssign) and any(_bound_names(node))
    is_program = isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"
    top = package.partition(".")[0]
    texts = {part.value for part in walked(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    spelled = {text for text in texts if text.startswith(f"{top}.") and all(map(str.isidentifier, text.split(".")))}
    all_uses = set(_uses(node))
    uses = {use for use in all_uses if names.may_have(use.partition(".")[0])}
    return Definition(
        names=tuple(sorted(set(_bound_names(node)))),
        digest=hashlib.sha256(ast.dump(node, **_DUMP).encode()).hexdigest(),
        uses=tuple(sorted(uses)),
        imports=tuple(sorted(set(_imported_names([node], package, inside=True)))),
        texts=tuple(sorted(spelled)),
        at_import=import_effects(node, names),
        if_called=call_effects(node, names),
        bases=tuple(name for base in bases if (name := base_name(base))),
        has_hooks=has_hooks(node, names) if isinstance(node, ast.ClassDef) else other is None,
        registers=not is_constant and not is_program,
        reach=_reach(node, all_uses, names, top),
    )


def _reach(node: ast.stmt, all_uses: set[str], names: Names, top: str) -> Reach:
    uses = {meaning for use in all_uses for meaning in names.meanings(use)}
    parts = {part for use in uses for part in use.split(".")}
    calls = [part for part in walked(node) if isinstance(part, ast.Call)]
    spelled = sum(_spells_module(call, top) for call in calls)
    if sum(any(_is_below(name, _OF_PACKAGE) for name in names.meanings(use)) for use in _uses(node)) > spelled:
        return "package"
    if any(_is_below(use, _OF_ALL) for use in uses) or _SUBCLASSES in parts:
        return "all"
    has_own_names = any(_LOCAL_NAMES & {*names.meanings(dotted(call.func) or "")} for call in calls if not call.args)
    return "module" if uses & _OF_MODULE or parts & _GLOBALS or has_own_names else "names"


def _is_below(use: str, names: Iterable[str]) -> bool:
    return any(use == name or use.startswith(f"{name}.") for name in names)


def _spells_module(call: ast.Call, top: str) -> bool:
    """Return whether a call is `import_module` of what is followed in another way."""
    # That is an absolute name, which the texts of the statement have; the `module` of a spec, as in
    # `import_module(f"{top}.{spec.module}")`, which is a root; and what begins with the name of another package.
    if not (dotted(call.func) or "").endswith("import_module") or not call.args:
        return False
    match call.args[0]:
        case ast.Constant(value=str(text)):
            return not text.startswith(".")
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *named]) if "." in text and text[0] != ".":
            parts = [part.value for part in named if isinstance(part, ast.FormattedValue)]
            return text.partition(".")[0] != top or all(map(_is_of_spec, parts))
    return False


def _is_of_spec(part: ast.expr) -> bool:
    match part:
        case ast.Attribute(attr="module") | ast.Subscript(slice=ast.Constant(value="module")):
            return True
    return False


def _uses(node: ast.AST) -> Iterator[str]:
    """Yield all names in a statement, those in texts that are annotations among them, with their attributes."""
    if isinstance(node, ast.Name | ast.Attribute) and (name := dotted(node)):
        yield name
        return
    if isinstance(node, ast.Attribute):
        yield f".{node.attr}"  # of something without a name, such as `f().__subclasses__`
    for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if isinstance(annotation, ast.AST):
            yield from _uses_in_texts(annotation)
    for child in ast.iter_child_nodes(node):
        yield from _uses(child)


def _uses_in_texts(annotation: ast.AST) -> Iterator[str]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                with source_snapshot.PARSING:
                    tree = ast.parse(node.value, mode="eval")
            except (SyntaxError, ValueError):  # a text that is no annotation, such as a member of a Literal
                continue
            yield from _uses(tree)


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in its module, and perhaps others that are bound inside it."""
    for part in [node] if isinstance(node, _DEFINING) else walked(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, (*_DEFINING, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and part.name:
            yield part.name
        elif isinstance(part, ast.MatchMapping) and part.rest:
            yield part.rest


def _aliases(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield (name, absolute name) of each import at any depth."""
    for part in walked(node):
        if isinstance(part, ast.Import):
            for alias in part.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(part, ast.ImportFrom):
            base = _absolute(part, package)
            yield from ((alias.asname or alias.name, f"{base}.{alias.name}") for alias in part.names)


def _imported_names(body: Iterable[ast.AST], package: str, *, inside: bool = False) -> Iterator[str]:
    """Yield the absolute names that imports name; those in functions only if they are asked for by `inside`."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield base
            # The name may be a module; if it is not, it has no file and is ignored later.
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif inside or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imported_names(ast.iter_child_nodes(node), package, inside=inside)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")
    return ".".join([*parents[: len(parents) - node.level + 1], *([node.module] if node.module else [])])


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
    """Remove what cannot change results: docstrings, what type checkers read, the version, what some Pythons add."""
    # Without the version, a release does not retrain an actor.
    tree.body = [node for node in tree.body if not _assigns(node, "__version__")]
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "attr", getattr(node.test, "id", "")) == "TYPE_CHECKING":
            node.body, node.test = [ast.Pass()], ast.Constant(False)
        if isinstance(node, (ast.Module, *_DEFINING)):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
            if not getattr(node, "type_params", True):  # Python 3.12 and later have it, and 3.11 does not
                delattr(node, "type_params")
        if isinstance(node, ast.JoinedStr):  # some versions of 3.12 end a format with an empty text
            node.values = [part for part in node.values if getattr(part, "value", None) != ""]


def _is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a text alone: a docstring, or what is said below a field."""
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


# Identifies the parser: another one may find other things in the same text.
_TEXTS = b"".join(source_snapshot.read(Path(file)) for file in (effects.__file__, __file__))
PARSER = f"{sys.version} {hashlib.sha256(_TEXTS).hexdigest()}"


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_tuples(member) for name, member in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
