"""What a job runs, seen by Python itself, against the definitions that its key counts.

`store.source` reads names from syntax trees. Nothing here does: calls are those that Python reports, names are read
from byte code, and where a function or class is defined is what the object says.
"""

import ast
import dis
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

import torch
from threadpoolctl import threadpool_limits

from dualread import source_snapshot as source_snapshot
from dualread.store.code import IMPORTED, CodeIndex, Node, library
from tests.workflow.recomputed import Job, jobs

# Packages that take seconds. Here they are imported once, and not in each traced process.
_HEAVY = (
    "torch._dynamo",
    "transformers",
    "trl",
    "peft",
    "polars",
    "scipy.optimize",
    "sklearn.linear_model",
    "PIL.Image",
)
_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = f"{source_snapshot.ROOT}{os.sep}"
_MODULE = "<module>"


@dataclass(frozen=True)
class Ran:
    """One piece of code that ran.

    Attributes:
        code: The code.
        caller: The code of another module that called it, perhaps through others of its own.
        importing: The module that was imported meanwhile, if any, ...
        line: ... and the line of that module that ran.
    """

    code: CodeType
    caller: CodeType
    importing: CodeType | None
    line: int


class Trace:
    """The code of the library that runs inside the block."""

    def __init__(self) -> None:
        self.ran: set[Ran] = set()

    def __enter__(self) -> "Trace":
        threading.settrace(self._called)
        sys.settrace(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(_FOLDER):
            importing: FrameType | None = frame
            while importing and not _is_import(importing):
                importing = importing.f_back
            above = frame.f_back
            while above and above.f_code.co_filename == code.co_filename:  # a helper runs for whoever calls its module
                above = above.f_back
            # A generator runs for whoever asks it for more.
            caller = code if above is None or code.co_flags & CO_GENERATOR else above.f_code
            line = importing.f_lineno if importing else 0
            self.ran.add(Ran(code, caller, importing and importing.f_code, 0 if importing is frame else line))


def _is_import(frame: FrameType) -> bool:
    return frame.f_code.co_name == _MODULE and frame.f_code.co_filename.startswith(_FOLDER)


class Places:
    """Where the definitions of modules stand, and which names their code reads."""

    def __init__(self, index: CodeIndex) -> None:
        self._index = index
        self._lines: dict[str, list[range]] = {}
        self._places: dict[str, dict[str, list[int]]] = {}
        self._homes: dict[tuple[str, int], list[str]] = {}

    def missing(self, trace: Trace, closure: set[Node]) -> Iterator[str]:
        """Yield what ran, or was read by what ran, and is not in `closure`."""
        for ran in trace.ran:
            code, importing, line = ran.code, ran.importing, ran.line
            module = _module(code)
            # What only these call, such as the check of a message that is printed, changes no result.
            if self._index.is_outside(module) or self._index.is_outside(_module(ran.caller)):
                continue
            if code.co_name == _MODULE:
                if (module, IMPORTED) not in closure:
                    yield f"{module} was imported"
                for part in self._counted(module, closure):
                    yield from self._unread(module, code, self._lines_of(module)[part], closure)
                continue
            # What an import runs for a definition that nothing names has no effects, or is counted.
            if importing and self._index.is_outside(_module(importing)):
                continue
            if importing and not self._in_closure(_module(importing), line, closure):
                continue
            if not self._in_closure(module, code.co_firstlineno, closure):
                yield f"{module}: {code.co_qualname} ran"
            yield from self._unread(module, code, None, closure)

    def _counted(self, module: str, closure: set[Node]) -> Iterator[int]:
        yield from (part for part in range(len(self._lines_of(module))) if (module, part) in closure)

    def _in_closure(self, module: str, line: int, closure: set[Node]) -> bool:
        parts = [part for part, lines in enumerate(self._lines_of(module)) if line in lines]
        return not parts or any((module, part) in closure for part in parts)

    def _unread(self, module: str, code: CodeType, lines: range | None, closure: set[Node]) -> Iterator[str]:
        """Yield the names that `code` reads, in these lines, and whose definitions are not in `closure`."""
        names = vars(import_module(module))  # of a plugin's settings, the class statement alone may have run
        instructions, line = list(dis.get_instructions(code)), 0
        for number, instruction in enumerate(instructions):
            line = (instruction.positions and instruction.positions.lineno) or line
            if instruction.opname not in ("LOAD_GLOBAL", "LOAD_NAME") or (lines is not None and line not in lines):
                continue
            name = instruction.argval
            if name not in names:
                continue  # of Python, or of a class body
            yield from self._undefined(module, name, closure)
            value = names[name]
            for attribute in instructions[number + 1 :]:
                if not isinstance(value, ModuleType) or attribute.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                    break
                yield from self._undefined(value.__name__, attribute.argval, closure)
                value = getattr(value, attribute.argval, None)
            value = getattr(value, "__wrapped__", value)
            if isinstance(value, type | FunctionType):
                yield from self._undefined(value.__module__, value.__qualname__.partition(".")[0], closure)
            elif not isinstance(value, ModuleType) and name not in self._bound_in(module):
                for home in self._homes_of(name, value):  # of a constant, perhaps through several modules
                    yield from self._undefined(home, name, closure)

    def _undefined(self, module: str, name: str, closure: set[Node]) -> Iterator[str]:
        if not module.startswith("dualread") or self._index.is_outside(module):
            return
        for part in self._bound_in(module).get(name, ()):
            if (module, part) not in closure:
                yield f"{module}: {name} was read"

    def _bound_in(self, module: str) -> dict[str, list[int]]:
        if module not in self._places:
            places = self._places[module] = {}
            for part, node in enumerate(self._statements(module)):
                for bound in _bound(node):
                    places.setdefault(bound, []).append(part)
        return self._places[module]

    def _homes_of(self, name: str, value: object) -> list[str]:
        if (key := (name, id(value))) not in self._homes:
            modules = [(of, it) for of, it in sys.modules.items() if of.startswith("dualread.")]
            self._homes[key] = [of for of, it in modules if vars(it).get(name, it) is value]
        return self._homes[key]

    def _statements(self, module: str) -> list[ast.stmt]:
        path = source_snapshot.module_file(source_snapshot.ROOT, module)
        assert path is not None, module
        tree = ast.parse(source_snapshot.read(path))
        kept = (n for n in tree.body if not isinstance(n, ast.Import | ast.ImportFrom))
        kept = (n for n in kept if "__version__" not in _bound(n))
        statements = [n for n in kept if not (isinstance(n, ast.Expr) and n is tree.body[0])]
        # Without its docstring, a module that holds nothing else holds `pass`.
        return statements or [ast.Pass(lineno=0, end_lineno=0)]

    def _lines_of(self, module: str) -> list[range]:
        if module not in self._lines:
            self._lines[module] = [
                range(min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))]), (n.end_lineno or 0) + 1)
                for n in self._statements(module)
            ]
        return self._lines[module]


def _module(code: CodeType) -> str:
    name = code.co_filename.removeprefix(_FOLDER).removesuffix(".py").replace(os.sep, ".")
    return f"dualread.{name}".removesuffix(".__init__")


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {part.id for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)}


def check(root: Path, study: str, out: Path) -> None:
    """Compute the jobs of a study in `root` again, and check that their keys count all that runs and is read.

    This happens in a new process: each job is computed in a fork of it, and a fork of one in which polars has already
    worked would wait for threads that it does not have.
    """
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-m", "tests.workflow.traced", study, str(out)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said
    missing = {f"{one['stage']}: {line}": one["output"] for one in said for line in one["missing"]}
    assert not missing, "\n".join(f"{line} ({output})" for line, output in missing.items())
    assert [one["output"] for one in said if one["ran"] <= 10] == []
    assert [one["output"] for one in said if not one["same"]] == []  # what was traced is what made the artifacts


def _traced(job: Job, out: Path) -> dict:
    """Compute a job in a process of its own, which begins with nothing of the stages imported."""
    said, child = out.with_suffix(".json"), os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)  # as in a job: sums of several threads have other last bits
            with threadpool_limits(1), Trace() as trace:
                files = job.compute(out)
            index = library()
            lines = sorted(set(Places(index).missing(trace, index.closure(job.roots))))
            said.write_text(json.dumps({"ran": len(trace.ran), "missing": lines, "same": files == job.files()}))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return {"stage": job.stage, "output": str(job.entry.output), **json.loads(said.read_text())}


if __name__ == "__main__":
    for package in _HEAVY:
        import_module(package)
    found = [_traced(job, Path(sys.argv[2], str(number))) for number, job in enumerate(jobs(sys.argv[1]))]
    print(json.dumps(found))
