"""Fixtures: LM-Polygraph in the environment that the workflow's rule makes, and a small study with its estimators."""

from pathlib import Path

import pytest

from tests.environments import python_of
from tests.workflow.checkout import Checkout

OVERLAY = "workflow/studies/estimators.yaml"
# The micro study with every estimator and the methods of ours with which the table compares them.
STUDY = "workflow/studies/micro.yaml workflow/studies/estimators.yaml only.yaml"


@pytest.fixture(scope="session")
def estimators_python() -> Path:
    """The Python of LM-Polygraph's environment; making it for the first time takes a minute or two."""
    return python_of(OVERLAY)


@pytest.fixture(scope="session")
def study(estimators_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which the table `estimators` of a small study has been made."""
    checkout = Checkout.create(tmp_path_factory.mktemp("study"))
    (checkout.folder / "results").mkdir()
    (checkout.folder / "results/environments").symlink_to(estimators_python.parents[2])
    (checkout.folder / "only.yaml").write_text(
        "only: {methods: null}\n"
        # RDE takes 100 components of at least as many training answers.
        "phantoms: {slake: {images: {train: 60, validation: 16, test: 12}, questions_per_image: 6}}\n"
    )
    run = checkout.snakemake("tables/estimators.tex", study=STUDY)
    assert run.returncode == 0, run.text
    return checkout
