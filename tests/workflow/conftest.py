import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.once import once
from tests.workflow.checkout import ROOT, Checkout, Run

_KEPT = ROOT / "build/tests/smoke"
_MADE = ("results", "tables", "figures", ".snakemake")


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Checkout:
    """The finished smoke study, computed once; tests that edit it undo their edits.

    It is kept for --kept-study, with which this run computes only what has changed since.
    """
    checkout = Checkout.create(tmp_path_factory.mktemp("smoke"))
    if pytestconfig.getoption("kept_study") and _KEPT.exists():
        _copy(_KEPT, checkout.folder)
    run = checkout.snakemake()
    assert run.returncode == 0, run.text
    if not run.did_nothing():
        shutil.rmtree(_KEPT, ignore_errors=True)
        part = Path(f"{_KEPT}.part")  # so that an interrupted copy is not taken for a study
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _copy(checkout.folder, part)
        part.rename(_KEPT)
    return checkout


def _copy(source: Path, target: Path) -> None:
    """Copy what a study has made; results stay hard links into the store."""
    subprocess.run(["cp", "-a", *(source / name for name in _MADE), target], check=True)


@pytest.fixture(scope="session")
def unedited(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout without results; no test edits it."""
    return Checkout(folder=once(tmp_path_factory, "unedited", Checkout.create))


@pytest.fixture(scope="session")
def dry(unedited: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Make a dry run in the unedited checkout, with the commands of jobs; once, however many tests ask for it."""

    def run(*targets: str, study: str = "workflow/studies/smoke.yaml") -> Run:
        def make(folder: Path) -> None:
            done = unedited.snakemake("-n", "-p", "--quiet=host", *targets, study=study)
            (folder / "run.json").write_text(json.dumps(vars(done)))

        name = "-".join(re.sub(r"\W+", "_", word) for word in (study, *targets))
        return Run(**json.loads((once(tmp_path_factory, f"dry-{name}", make) / "run.json").read_text()))

    return run
