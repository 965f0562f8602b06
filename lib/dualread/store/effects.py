"""Which statements do something when they run, besides binding the names that they spell.

The import of a module runs all of its top-level statements. What a stage computes can depend on a definition that it
does not name if that definition registers itself, changes another module, or derives a class from one that counts its
subclasses. So `dualread.store.code` counts each definition with effects, and of the others only those that are named.
A statement has no effects if it is made of names, literals, operators, and calls of functions that are known to have
none: those in `_PURE`, and functions and plain classes that are so made. Whatever is not known has effects.
"""

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

Effects = tuple[str, ...] | None
"""None: it has effects. Otherwise the dotted names of what it calls; it has none if none of these calls has any."""

_PURE = frozenset(
    f"{package}.{name}"
    for package, names in {
        "abc": "abstractmethod",
        "builtins": "abs bool bytes classmethod complex dict dict.fromkeys enumerate float frozenset int isinstance len"
        " list object property range reversed round set slice staticmethod str str.maketrans sum super tuple zip",
        "collections": "Counter OrderedDict defaultdict deque namedtuple",
        "contextlib": "asynccontextmanager contextmanager",
        "dataclasses": "dataclass field",
        "enum": "auto",
        "fractions": "Fraction",
        "functools": "cache cached_property lru_cache partial total_ordering wraps",
        "html": "escape",
        "math": "exp isqrt log log2 log10 prod sqrt",
        "numpy": "arange array asarray exp float32 float64 linspace log log1p sqrt",
        "pathlib": "Path PurePosixPath",
        "polars": "Array Categorical Datetime Decimal Enum Field List Struct",
        "pydantic": "AfterValidator BeforeValidator ConfigDict Discriminator Field PrivateAttr Tag field_validator"
        " model_serializer model_validator",
        "re": "compile escape",
        "scipy.special": "ndtri",
        "statistics": "NormalDist",
        "torch": "inference_mode no_grad",
        "types": "MappingProxyType",
        "typing": "NamedTuple NewType TypeVar cast final overload override runtime_checkable",
    }.items()
    for name in names.split()
)
_HOOKS = {"__init_subclass__", "__set_name__", "__mro_entries__", "__prepare__", "__class_getitem__"}
_MADE_BY = {"__init__", "__new__", "__post_init__"}


class _Decorated(ast.Call):
    """The call of a decorator, which may itself be what a call returns."""


class Names:
    """What the names of one module stand for: imports bind `aliases`, statements `defined`, `import *` perhaps more."""

    def __init__(self, aliases: Mapping[str, tuple[str, ...]], defined: Iterable[str], *, has_more: bool) -> None:
        self._aliases, self._defined, self._has_more = aliases, frozenset(defined), has_more

    def may_have(self, name: str) -> bool:
        """Return whether `name` may be one of the module."""
        return self._has_more or name in self._aliases or name in self._defined

    def meanings(self, use: str) -> list[str]:
        """Return a dotted name and, if its first part is imported, the absolute names that it may stand for."""
        first, dot, rest = use.partition(".")
        return [use, *(f"{target}{dot}{rest}" for target in self._aliases.get(first, ()))]

    def target(self, expression: ast.expr) -> str | None:
        """Return the absolute name of what stands for one thing of another module, or of Python; None for the rest."""
        first, dot, rest = (dotted(expression) or "").partition(".")
        if first in self._defined or not first:
            return None
        if first in self._aliases:
            targets = self._aliases[first]
            return f"{targets[0]}{dot}{rest}" if len(targets) == 1 else None
        return f"builtins.{first}{dot}{rest}" if hasattr(builtins, first) and not self._has_more else None


@lru_cache(maxsize=1)  # what is found in a statement is found by several walks
def walked(node: ast.AST) -> Sequence[ast.AST]:
    """Return the nodes that `ast.walk` yields, in its order."""
    return tuple(ast.walk(node))


def dotted(node: ast.AST) -> str | None:
    """Return the dotted name that an expression is, such as `a.b`; None if it is anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def import_effects(node: ast.stmt, names: Names) -> Effects:
    """Return the effects of a top-level statement when its module is imported."""
    return _effects(_executed(node), names)


def call_effects(node: ast.stmt, names: Names) -> Effects:
    """Return the effects of a call of the function or class that a statement defines; None for anything else."""
    if isinstance(node, ast.FunctionDef) and not node.decorator_list:
        local = {part.arg for part in walked(node) if isinstance(part, ast.arg)} | _stored(node)
        return _effects((part for statement in node.body for part in _executed(statement)), names, local)
    if isinstance(node, ast.ClassDef) and not has_hooks(node, names):
        decorators = [part.func if isinstance(part, ast.Call) else part for part in node.decorator_list]
        is_data = any(names.target(decorator) == "dataclasses.dataclass" for decorator in decorators)
        return () if is_data and not _methods(node) & _MADE_BY else None
    return None


def has_hooks(node: ast.ClassDef, names: Names) -> bool:
    """Return whether a class runs code of its own when another is derived from it, or has one as an attribute."""
    return _has_metaclass(node, names) or bool(_HOOKS & (_methods(node) | _stored(node)))


def _has_metaclass(node: ast.ClassDef, names: Names) -> bool:
    return any(key.arg == "metaclass" and names.target(key.value) != "abc.ABCMeta" for key in node.keywords)


def base_name(base: ast.expr) -> str | None:
    """Return the dotted name of a base class, such as `Base` of `Base[int]`; None if it is what a call returns."""
    return dotted(base.value if isinstance(base, ast.Subscript) else base)


def _methods(node: ast.ClassDef) -> set[str]:
    return {part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}


def _stored(node: ast.AST) -> set[str]:
    return {part.id for part in walked(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _effects(executed: Iterable[ast.AST | None], names: Names, local: Collection[str] = ()) -> Effects:
    """Return the effects of what is executed; `local` are the names of its own variables."""
    called: set[str] = set()
    for part in executed:
        if part is None:
            return None
        if isinstance(part, ast.ClassDef):
            if _has_metaclass(part, names) or not all(map(base_name, part.bases)):
                return None
        elif isinstance(part, _Decorated) and isinstance(part.func, ast.Call):
            # Who knows what the function that it returns does; that of `partial` does what is bound.
            if names.target(part.func.func) not in _PURE - {"functools.partial"}:
                return None
        elif isinstance(part, ast.Call):
            if isinstance(part.func, ast.Attribute) and isinstance(getattr(part.func.value, "value", None), str):
                continue  # a method of a text
            name = dotted(part.func)
            if name is None or name.partition(".")[0] in local:
                return None
            # A key is a function that is called.
            if names.target(part.func) not in _PURE or any(key.arg == "key" for key in part.keywords):
                called.add(name)
    return tuple(sorted(called))


def _executed(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the expressions that run when a statement runs; None for what may have effects besides those of calls."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _decorating(node)
            annotations = [part.annotation for part in ast.walk(node.args) if isinstance(part, ast.arg)]
            yield from _executed_of(*node.args.defaults, *node.args.kw_defaults, *annotations, node.returns)
        case ast.Lambda():
            yield from _executed_of(*node.args.defaults, *node.args.kw_defaults)
        case ast.ClassDef():
            yield node
            yield from _decorating(node)
            yield from _executed_of(*node.bases, *node.keywords, *node.body)
        case ast.Assign(targets=targets) if all(map(_is_plain, targets)):
            yield from _executed(node.value)
        case ast.AnnAssign(target=ast.Name()):
            yield from _executed_of(node.annotation, node.value)
        case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom():
            yield None
        case ast.Pass() | ast.Raise() | ast.Return() | ast.If() | ast.Expr() | ast.expr():
            yield node
            yield from _executed_of(*ast.iter_child_nodes(node))
        case ast.comprehension() | ast.keyword():
            yield from _executed_of(*ast.iter_child_nodes(node))
        case ast.expr_context() | ast.operator() | ast.unaryop() | ast.boolop() | ast.cmpop():
            pass
        case _:
            yield None


def _executed_of(*nodes: ast.AST | None) -> Iterator[ast.AST | None]:
    for node in nodes:
        if node is not None:
            yield from _executed(node)


def _decorating(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[ast.AST | None]:
    for decorator in node.decorator_list:
        yield _Decorated(decorator, [], [])
        yield from _executed(decorator)


def _is_plain(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) or (isinstance(target, ast.Tuple) and all(map(_is_plain, target.elts)))
