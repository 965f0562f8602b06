"""A study with readers of the package in plugins/: which jobs it has, and what is said where it is not installed."""

import importlib.metadata
import os
from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.rest

SMOKE = "workflow/studies/smoke.yaml"
STUDY = f"{SMOKE} workflow/studies/estimators.yaml"


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    return Checkout.create(tmp_path)


def test_its_readers_are_fitted_and_score_in_the_jobs_of_all_others(fresh, dry):
    path = os.pathsep.join([str(fresh.folder / "lib"), str(fresh.folder / "plugins/lm_polygraph")])
    words = ["--cores", "1", "-n", "--configfile", *STUDY.split()]
    jobs = fresh.forked(words, {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}).jobs()
    others = dry(study=SMOKE).jobs()
    assert jobs["fit_readers_rlvr"] == jobs["score_answers_rlvr"] > 0
    more = {rule: n - others.get(rule, 0) for rule, n in jobs.items() if n != others.get(rule, 0)}
    assert more.keys() <= {"compute_metrics_rlvr", "build_table", "copy_table"}, more
    assert set(others) <= set(jobs)


def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(fresh):
    if "dualread-lm-polygraph" in {found.metadata["Name"] for found in importlib.metadata.distributions()}:
        pytest.skip("the package is installed here, so its absence cannot be seen")
    done = fresh.snakemake("-n", study=STUDY, environment={})  # a process of its own, without the paths of pytest
    assert done.returncode == 1
    assert "readers: no module 'dualread_lm_polygraph.likelihood' in the packages of" in done.text
    assert f"It is in {fresh.folder / 'plugins/lm_polygraph'}: `make env-estimators` installs it" in done.text
