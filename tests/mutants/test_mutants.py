"""Each mutant of `mutants.py` is noticed by all tests that it names."""

import os
import subprocess
import sys

import pytest

from tests.mutants.mutants import MUTANTS, Mutant
from tests.workflow.checkout import Checkout

# A property test draws the same examples each time, so that a mutant is noticed today and tomorrow.
PYTEST = (sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--tb=line", "--hypothesis-seed=0")
TESTS_FAILED = 1  # the exit code of pytest; others say that it could not collect or run them
MOST_SECONDS = 600  # with a line that is wrong, a test may wait for something that never comes


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    copy = Checkout.create(tmp_path_factory.mktemp("mutants") / "checkout")
    for command in (("init", "--quiet"), ("add", "--all", "--force")):  # tests of the workflow copy what git knows
        subprocess.run(["git", *command], cwd=copy.folder, check=True)
    return copy


def run(checkout: Checkout, *options: str) -> subprocess.CompletedProcess:
    variables = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib"), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [*PYTEST, *options],
        cwd=checkout.folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=MOST_SECONDS,
    )


def test_without_a_mutant_all_of_these_tests_pass(checkout):
    done = run(checkout, *sorted({f"tests/{test}" for mutant in MUTANTS for test in mutant.noticed_by}))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.what for mutant in MUTANTS])
def test_named_tests_notice(checkout, mutant: Mutant):
    path = checkout.folder / "lib/dualread" / mutant.file
    whole = path.read_text()
    checkout.edit(f"lib/dualread/{mutant.file}", mutant.before, mutant.after)
    try:
        for test in mutant.noticed_by:
            done = run(checkout, "--exitfirst", f"tests/{test}")
            assert done.returncode == TESTS_FAILED, f"{test} does not notice it\n{done.stdout}{done.stderr}"
    finally:
        path.write_text(whole)
