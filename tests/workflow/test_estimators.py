"""A study with readers of another environment: which jobs it has, where they run, and that no other study has them."""

from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout
from tests.workflow.test_jobs import shell_commands

pytestmark = pytest.mark.rest

STUDY = "workflow/studies/smoke.yaml workflow/studies/estimators.yaml"


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    return Checkout.create(tmp_path)


def test_readers_of_another_environment_run_there_and_all_others_where_they_did(fresh):
    jobs = fresh.snakemake("-n", "tables/estimators.tex", study=STUDY).jobs()
    assert jobs["make_environment"] == 1
    for stage in ("fit_readers", "score_answers"):
        assert jobs[f"{stage}_rlvr_estimators"] == jobs[f"{stage}_rlvr"] > 0
    assert not {rule for rule in jobs if rule.startswith("fit_readers_") and "rlvr" not in rule}  # no other actor
    commands = shell_commands(fresh.snakemake("-n", "-p", "--quiet=host", "tables/estimators.tex", study=STUDY).text)
    fits = [line.split() for line in commands if " fit_readers " in line]
    elsewhere = [words for words in fits if "dualread.store.run" in words]
    assert len(elsewhere) == jobs["fit_readers_rlvr_estimators"]
    assert all(words[1].startswith("results/environments/estimators-") for words in elsewhere)
    assert len(fits) == 2 * len(elsewhere)


def test_other_studies_need_no_such_environment(fresh):
    jobs = fresh.snakemake("-n").jobs()
    assert "make_environment" not in jobs
    assert not [rule for rule in jobs if "estimators" in rule]
