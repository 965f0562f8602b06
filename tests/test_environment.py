"""`make env` makes the environment anew in a folder that was moved or copied, and otherwise only once."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = ["plain", "two words", "Größe", "a,b", "it's", '6" of $HOME; `x` #1']

# Stands for Python: makes an environment whose Python names its folder and installs nothing. Each call is a line.
PYTHON = """#!/bin/sh
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
        self._python, self._calls = base / "python", base / "calls"
        self._python.write_text(PYTHON)
        self._python.chmod(0o755)

    def make(self, target: str) -> tuple[str, list[str]]:
        """Run make as from a shell, not as a part of `make test`; return what it printed, and its calls of Python."""
        self._calls.write_text("")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        environment |= {"CALLS": str(self._calls), "LC_ALL": "C"}
        command = ["make", target, f"PYTHON={self._python}"]
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


def test_a_copy_gets_an_environment_of_its_own_and_leaves_that_of_the_original_alone(folder):
    folder.make("env")
    original, copied = folder.path, folder.path.with_name("copy")
    shutil.copytree(original, copied, symlinks=True)
    folder.path = copied
    assert is_made_anew(folder.make("env")[1])
    folder.path = original
    assert folder.make("env") == ("make: Nothing to be done for 'env'.\n", [])


def test_an_edited_lock_is_installed_into_the_same_environment(folder):
    folder.make("env")
    with (folder.path / "envs/base.lock").open("a") as lock:
        lock.write("# edited\n")
    said, calls = folder.make("env")
    assert "installing envs/torch.txt and envs/base.lock" in said
    assert calls
    assert not any("-m venv" in line for line in calls)
