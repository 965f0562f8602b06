"""Each mutant of `mutants.py` is noticed by at least two test files, and by every file that it names."""

import os
import subprocess
import sys

import pytest

from tests.mutants.mutants import MUTANTS, Mutant
from tests.workflow.checkout import Checkout

# A property test draws the same examples each time, so that a mutant is noticed today and tomorrow.
PYTEST = (sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--tb=line", "--hypothesis-seed=0")
TESTS_FAILED = 1  # the exit code of pytest; others say that it could not collect or run them


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return Checkout.create(tmp_path_factory.mktemp("mutants") / "checkout")


def run(checkout: Checkout, *options: str) -> subprocess.CompletedProcess:
    variables = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib"), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [*PYTEST, *options], cwd=checkout.folder, env=variables, capture_output=True, text=True, check=False
    )


def test_without_a_mutant_all_of_these_files_pass(checkout):
    done = run(checkout, *sorted({f"tests/{file}" for mutant in MUTANTS for file in mutant.noticed_by}))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.what for mutant in MUTANTS])
def test_each_file_notices(checkout, mutant: Mutant):
    assert len(set(mutant.noticed_by)) >= 2
    path = checkout.folder / "lib/dualread" / mutant.file
    whole = path.read_text()
    checkout.edit(f"lib/dualread/{mutant.file}", mutant.before, mutant.after)
    try:
        for file in mutant.noticed_by:
            done = run(checkout, "--exitfirst", f"tests/{file}")
            assert done.returncode == TESTS_FAILED, f"{file} does not notice it\n{done.stdout}{done.stderr}"
    finally:
        path.write_text(whole)
