"""Nothing that was downloaded is ever executed: the library loads no pickle and trusts no remote code."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "lib" / "dualread"
EXECUTING_FORMATS = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
EXECUTING_ARGUMENTS = {"trust_remote_code": False, "allow_pickle": False, "weights_only": True}


def dangers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in EXECUTING_FORMATS)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in EXECUTING_FORMATS:
            yield str(node.module)
        if isinstance(node, ast.Call):
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[str]:
    name = ast.unparse(node.func)
    given = {argument.arg: argument.value for argument in node.keywords}
    if name in ("eval", "exec"):
        yield name
    if name.endswith(("torch.load", "pandas.read_pickle")) and "weights_only" not in given:
        yield f"{name} without weights_only"
    for argument, safe in EXECUTING_ARGUMENTS.items():
        if argument in given and not (isinstance(given[argument], ast.Constant) and given[argument].value is safe):
            yield f"{argument}={ast.unparse(given[argument])}"


def test_no_file_executes_what_was_downloaded():
    found = {str(path.relative_to(LIBRARY)): [*dangers(ast.parse(path.read_bytes()))] for path in LIBRARY.rglob("*.py")}
    assert found
    # It runs the class statement of a plugin, whose module the same study imports a moment later.
    assert {name: of_file for name, of_file in found.items() if of_file} == {"declared/plugin_settings.py": ["exec"]}


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(f)",
        "f(trust_remote_code=True)",
        "np.load(f, allow_pickle=x)",
    ],
)
def test_the_search_finds_what_it_looks_for(code):
    assert list(dangers(ast.parse(code)))
