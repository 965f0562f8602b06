"""`make env` makes the environment anew in a folder that was moved or copied and for another Python, else only once."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = ["plain", "Größe, it's", '6" of $HOME; `x` #1']

# Stands for Python: makes an environment whose Python names its folder and installs nothing. Each call is a line,
# but for those that ask for its version.
PYTHON = """#!/bin/sh
if test "$1" = -c; then echo VERSION; exit; fi
echo "$*" >> "$CALLS"
test "$2" = venv || exit 0
rm -rf "$4" && mkdir -p "$4/bin" && cp "$0" "$4/bin/python"
"""


class Folder:
    """A folder with a Makefile, in which environments are made by a stand-in."""

    def __init__(self, base: Path) -> None:
        self.path = base / "first"
        shutil.copytree(ROOT / "envs", self.path / "envs")
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, self.path)
        clients = Path("tests/with_clients/requirements.lock")  # whose digest the Makefile takes
        (self.path / clients).parent.mkdir(parents=True)
        shutil.copy(ROOT / clients, self.path / clients)
        self._calls = base / "calls"
        for version in ("3.11", "3.13"):
            python = base / f"python{version}"
            python.write_text(PYTHON.replace("VERSION", version))
            python.chmod(0o755)

    def make(self, target: str, python: str = "3.11", named: bool = True) -> tuple[str, list[str]]:
        """Run make as from a shell, not as a part of `make test`; return what it printed, and its calls of Python.

        The Python is named on the command line, or else in the environment.
        """
        self._calls.write_text("")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        environment |= {"CALLS": str(self._calls), "LC_ALL": "C"}
        python = str(self._calls.with_name(f"python{python}"))
        environment |= {} if named else {"PYTHON": python}
        command = ["make", target, *([f"PYTHON={python}"] if named else [])]
        done = subprocess.run(command, cwd=self.path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout, self._calls.read_text().splitlines()


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def is_made_anew(calls: list[str]) -> bool:
    installs = any(line.endswith("install --no-compile --no-deps --no-build-isolation -e .") for line in calls)
    return any("-m venv --clear .venv" in line for line in calls) and installs


@pytest.mark.parametrize("name", NAMES)
def test_a_moved_folder_gets_an_environment_of_its_own_and_says_so_once(folder, name):
    said, calls = folder.make("env-dev")
    assert is_made_anew(calls)
    assert "anew" not in said
    folder.path = folder.path.rename(folder.path.with_name(name))
    said, calls = folder.make("env-dev")
    assert is_made_anew(calls)
    assert "making .venv anew: it is of another folder" in said
    assert folder.make("env-dev") == ("make: Nothing to be done for 'env-dev'.\n", [])


def test_an_edited_lock_is_installed_into_the_same_environment(folder):
    folder.make("env")
    with (folder.path / "envs/base.lock").open("a") as lock:
        lock.write("# edited\n")
    said, calls = folder.make("env")
    assert "installing envs/torch.txt and envs/base.lock" in said
    assert calls
    assert not any("-m venv" in line for line in calls)


def test_another_python_gets_an_environment_of_its_own_where_the_command_line_names_it(folder):
    folder.make("env-dev")
    assert folder.make("env-dev", "3.13", named=False) == ("make: Nothing to be done for 'env-dev'.\n", [])
    said, calls = folder.make("env-dev", "3.13")
    assert is_made_anew(calls)
    assert "making .venv anew: Python is named as" in said
    assert folder.make("env-dev", "3.13") == ("make: Nothing to be done for 'env-dev'.\n", [])
    assert folder.make("env-dev", "3.11", named=False) == ("make: Nothing to be done for 'env-dev'.\n", [])
