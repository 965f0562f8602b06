"""Small changes of a Python file that a test should notice: each replaces one expression or statement."""

import ast
import copy
import re
from collections.abc import Iterator
from typing import NamedTuple

_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_COMPARISONS |= {ast.In: ast.NotIn, ast.NotIn: ast.In}
_OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div}
_PAIRS = {
    **{"ne": "ne_missing", "eq": "eq_missing", "min": "max", "any": "all", "argmin": "argmax", "floor": "ceil"},
    **{"any_horizontal": "all_horizontal", "first": "last", "startswith": "endswith", "minimum": "maximum"},
    **{"nanmin": "nanmax", "min_horizontal": "max_horizontal", "mean": "median"},
}
_NAMES = _PAIRS | {b: a for a, b in _PAIRS.items()} | {"sorted": "list", "reversed": "list", "lower": "strip"}
_WORDS = {
    "left": "inner",
    "inner": "left",
    "semi": "anti",
    "anti": "semi",
    "full": "left",
    "both": "none",
    "right": "left",
}
_RETURNED = {"bool": "not ({})", "int": "({}) + 1", "float": "({}) * 1.01", "str": "({}) + ' '"}
# What only tells people something, and what this machine may be unable to run.
_TELLS = {"print", "say", "note", "warn", "getLogger", "setLevel", "add_argument", "work_on"}
_ELSEWHERE = re.compile(r"cuda|vllm|slurm|nvidia|nccl|fsdp|torch\.distributed", re.IGNORECASE)


class Change(NamedTuple):
    """The text between two offsets in bytes, and what takes its place."""

    kind: str
    line: int
    function: str
    start: int
    end: int
    before: str
    after: str


def changes(source: str) -> list[Change]:
    """Return all changes of `source`; some do not parse."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, function in _nodes(ast.parse(source), None):
        for kind, after in _variants(node, function):
            start = starts[node.lineno - 1] + node.col_offset
            end, name = starts[node.end_lineno - 1] + node.end_col_offset, function.name if function else ""
            found.append(Change(kind, node.lineno, name, start, end, ast.unparse(node), after))
    return [change for change in found if not _ELSEWHERE.search(change.before)]


def changed(source: str, change: Change) -> str:
    """Return the source with one change."""
    text = source.encode()
    return (text[: change.start] + change.after.encode() + text[change.end :]).decode()


def _nodes(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[tuple[ast.AST, ast.FunctionDef | None]]:
    told = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _TELLS
    if (
        told
        or isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert))
        or getattr(node, "arg", "") in ("frozen", "kw_only")
    ):
        return
    if isinstance(node, ast.FunctionDef):
        function = node
        if _ELSEWHERE.search(ast.unparse(node)):
            return
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and {*_nodes(node.value, None)} == set()):
        yield node, function
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child, function)


def _but(node: ast.AST, **fields: object) -> str:
    node = copy.copy(node)
    for name, value in fields.items():
        setattr(node, name, value)
    return ast.unparse(node)


def _variants(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Constant(value=bool()):
            yield "boolean", str(not node.value)
        case ast.Constant(value=int()):
            yield from (("number", str(node.value + 1)), ("number", str(node.value - 1)))
        case ast.Constant(value=float()):
            yield from (("fraction", repr(node.value * 2 if node.value else 0.1)), ("fraction", repr(node.value / 10)))
        case ast.Constant(value=str()) if node.value in _WORDS:
            yield "word", repr(_WORDS[node.value])
        case ast.Compare():
            for n, operator in enumerate(node.ops):
                if other := _COMPARISONS.get(type(operator)):
                    yield "comparison", _but(node, ops=[*node.ops[:n], other(), *node.ops[n + 1 :]])
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and ast.unparse(node.comparators[0]) == "None":
                yield "none", f"({'not ' * isinstance(node.ops[0], ast.Is)}{ast.unparse(node.left)})"
        case ast.BoolOp():
            yield "and or", f"({_but(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())})"
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str()) | ast.JoinedStr()):  # a path
            return
        case ast.BinOp() if type(node.op) in _OPERATORS:
            yield "operator", f"({_but(node, op=_OPERATORS[type(node.op)]())})"
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            yield "sign", f"({ast.unparse(node.operand)})"
        case ast.Attribute() if node.attr in _NAMES:
            yield "name", _but(node, attr=_NAMES[node.attr])
        case ast.Name(ctx=ast.Load()) if node.id in _NAMES:
            yield "name", _NAMES[node.id]
        case ast.IfExp():
            yield from (("branch", f"({ast.unparse(branch)})") for branch in (node.body, node.orelse))
        case ast.If() if isinstance(node.body[0], (ast.Raise, ast.Return, ast.Continue)) and not node.orelse:
            yield "guard", "pass"
        case ast.Return(value=ast.expr()) if function and not isinstance(node.value, ast.Constant):
            template = _RETURNED.get(ast.unparse(function.returns) if function.returns else "", "None")
            yield "return", f"return {template.format(ast.unparse(node.value))}"
        case ast.Expr(value=ast.Call()):
            yield "statement", "pass"
        case ast.Call():
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = ast.unparse(node.func).rpartition(".")[2]
    for n, keyword in enumerate(node.keywords):
        if keyword.arg == "strict":
            yield "strict", _but(node, keywords=[*node.keywords[:n], *node.keywords[n + 1 :]])
        elif keyword.arg and name != "dataclass" and name.strip("_")[:1].islower():  # a class needs its fields
            yield "keyword", _but(node, keywords=[*node.keywords[:n], *node.keywords[n + 1 :]])
    match node.args:
        case [ast.Name() as a, ast.Name() as b, *others] if a.id != b.id and name != "isinstance":
            yield "swap", _but(node, args=[b, a, *others])
