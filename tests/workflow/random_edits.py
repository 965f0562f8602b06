"""Random edits of one line of the library, and what they change in a finished study.

After an edit, a job runs again if its key changed. So the study that is made again equals one from nothing if every job
whose key did not change would write the same bytes again. That is computed here, job by job: what is compared is the
study from nothing, without the jobs that both have to run.
"""

import ast
import copy
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PARSED = Path("results/store/sources.json")  # of the study's store
_HEAVY = ("polars", "scipy.optimize", "sklearn", "transformers", "trl", "torch._dynamo")

_COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
_CALCULATED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Add}


@dataclass(frozen=True)
class Edit:
    """One place of a file with another text."""

    file: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}"


def edits(package: Path, files: list[str], seed: int) -> Iterator[Edit]:
    """Yield random edits, without end; each file and each kind in it is as likely as the others."""
    choose = random.Random(seed)
    while True:
        file = choose.choice(files)
        text = (package / file).read_text()
        by_kind: dict[str, list[tuple[ast.AST, ast.AST]]] = {}
        for kind, node, edited in _candidates(ast.parse(text)):
            by_kind.setdefault(kind, []).append((node, edited))
        if by_kind:
            kind = choose.choice(sorted(by_kind))
            node, edited = choose.choice(by_kind[kind])
            yield Edit(file, node.lineno, kind, _replaced(text, node, edited))


def _candidates(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Yield (kind, node, what it becomes)."""
    skipped = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    skipped |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if node in skipped:
            continue
        match node:
            case ast.Constant(value=bool(value)):
                yield "a truth value", node, ast.Constant(not value)
            case ast.Constant(value=int(value)) | ast.Constant(value=float(value)):
                yield "a number", node, ast.Constant(value + 1)
            case ast.Compare(ops=[operator]) if type(operator) in _COMPARED:
                yield "a comparison", node, _with(node, ops=[_COMPARED[type(operator)]()])
            case ast.BinOp(op=operator) if type(operator) in _CALCULATED:
                yield "an operator", node, _with(node, op=_CALCULATED[type(operator)]())
            case ast.Return(value=ast.expr()):
                yield "what is returned", node, ast.Return(ast.Constant(None))
            case ast.If():
                yield "a condition", node.test, ast.UnaryOp(ast.Not(), node.test)
            case ast.Expr(value=ast.Call()):
                yield "a call that is left out", node, ast.Pass()
            case ast.FunctionDef(decorator_list=[decorator, *_]):
                yield "a decorator", decorator, ast.parse("(lambda it: it)", mode="eval").body
            case ast.ClassDef(bases=[base, *_]):
                yield "a base class", base, ast.Name("object")
            case ast.ClassDef():
                for part in node.body:
                    if isinstance(part, ast.AnnAssign) and isinstance(part.value, ast.Constant):
                        yield "a class attribute", part.value, ast.Constant(None)
            case ast.arguments():
                for default in (*node.defaults, *filter(None, node.kw_defaults)):
                    yield "a default", default, ast.Constant(None)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    edited = copy.copy(node)
    for name, value in fields.items():
        setattr(edited, name, value)
    return edited


def _replaced(text: str, node: ast.AST, edited: ast.AST) -> str:
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    new = ast.unparse(ast.fix_missing_locations(edited))
    new = f"({new})" if isinstance(edited, ast.expr) else new
    return (text.encode()[:start] + new.encode() + text.encode()[end:]).decode()


@contextmanager
def outcomes(folder: Path, study: str) -> Iterator[Callable[[Edit], dict]]:
    """Give a function that returns what one edit does to the finished study in `folder`, a checkout.

    The function takes the edit back. It returns `error` if the edited module cannot be imported; otherwise `keyed`, the
    number of artifacts whose keys changed; `stages`, the names of the stages that made these; `computed`, the number of
    those that were computed again although their keys did not change; `wrong`, those among them that have other bytes,
    or none.
    """
    said = folder / "outcome.json"
    # As in a job: the library of the checkout, and one thread, because sums of several have other last bits.
    variables = {"PYTHONPATH": f"{folder / 'lib'}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tests.workflow.random_edits", study, str(said)]
    environment = {**os.environ, **variables, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def outcome(edit: Edit) -> dict:
            path = folder / "lib/dualread" / edit.file
            before = path.read_bytes()
            path.write_text(edit.text)
            try:
                said.unlink(missing_ok=True)
                print(edit.file, file=process.stdin, flush=True)
                assert process.stdout.readline() == "0\n", edit
                return json.loads(said.read_text())
            finally:
                path.write_bytes(before)

        yield outcome
        process.stdin.close()  # ends it


def _compared(study: str, module: str) -> dict:
    module = module.removesuffix(".__init__")
    try:
        importlib.import_module(module)
    except BaseException as error:
        return {"error": repr(error)}
    from dualread.store.code import IMPORTED, library
    from tests.workflow.recomputed import jobs

    found, stages = {"keyed": 0, "computed": 0, "wrong": []}, set()
    index = library(_PARSED)
    for number, job in enumerate(jobs(study)):
        if not job.is_keyed_as_before(index):
            found["keyed"] += 1
            stages.add(job.stage)
        elif (module, IMPORTED) in index.closure(job.roots):
            found["computed"] += 1
            out = Path("recomputed", str(number))
            try:
                if job.compute(out) != job.files():
                    found["wrong"].append(f"{job.entry.output}: other bytes")
            except BaseException:
                found["wrong"].append(f"{job.entry.output}: {traceback.format_exc(limit=-3)}")
            shutil.rmtree(out.parent, ignore_errors=True)
    return {**found, "stages": sorted(stages)}


def check(folder: Path, study: str, n_edits: int, seed: int) -> dict[str, int]:
    """Make `n_edits` random edits, one by one; check and print each. Return sums of their outcomes.

    Only files that some job of the study imports are edited.

    Raises:
        AssertionError: After an edit, a job would write other bytes although its key is the old one.
    """
    from dualread.store.code import IMPORTED, CodeIndex
    from tests.workflow.recomputed import inside, jobs

    package = folder / "lib/dualread"
    with inside(folder):
        index = CodeIndex(package, _PARSED)
        nodes = {node for job in jobs(study) for node in index.closure(job.roots)}
        assert all(job.is_keyed_as_before(index) for job in jobs(study))
    modules = sorted(module for module, part in nodes if part == IMPORTED)
    paths = [package.parent.joinpath(*module.split(".")) for module in modules]
    files = [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in paths]
    total = {"edits": 0, "not importable": 0, "keyed": 0, "stages": 0, "computed": 0, "reached nothing": 0}
    with outcomes(folder, study) as outcome:
        for edit in edits(package, [str(path.relative_to(package)) for path in files], seed):
            found = outcome(edit)
            if "error" in found:
                total["not importable"] += 1
                continue
            assert not found["wrong"], f"{edit}: {found['wrong']}"
            print(f"{edit}: {found['keyed']} artifacts of {', '.join(found['stages']) or 'no stage'}", flush=True)
            total["edits"] += 1
            total["keyed"] += found["keyed"]
            total["stages"] += len(found["stages"])
            total["computed"] += found["computed"]
            total["reached nothing"] += not found["keyed"]
            if total["edits"] == n_edits:
                break
    return total


def _answer(study: str, said: Path) -> None:
    """Fork a child for each edited file that standard input names. It inherits what jobs import of other packages."""
    for package in _HEAVY:
        importlib.import_module(package)
    assert "dualread" not in sys.modules
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            os.dup2(2, 1)
            module = ".".join(["dualread", *Path(line.strip()).with_suffix("").parts])
            said.write_text(json.dumps(_compared(study, module)))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":  # in a process that has imported nothing of the library
    _answer(sys.argv[1], Path(sys.argv[2]))
