import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.once import once
from tests.workflow.checkout import Checkout, Run


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The finished smoke study, computed once; tests that edit it undo their edits."""
    checkout = Checkout.create(tmp_path_factory.mktemp("smoke"))
    run = checkout.snakemake()
    assert run.returncode == 0, run.text
    return checkout


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
