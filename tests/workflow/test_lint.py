"""`snakemake --lint` finds nothing but what is done on purpose; each exception is named here with its reason."""

import os
import re
import subprocess
import sys

import pytest

from tests.workflow.checkout import ROOT

pytestmark = pytest.mark.rest

EXCEPTIONS = {
    "Specify a conda environment or container for each rule": "packages come from hashed locks (envs/README.md)",
    "Mixed rules and functions in same snakefile": "a file of rules/ describes its artifacts by functions",
    "No log directive defined": "rules that copy files, and the page and environments that print where they go",
    "Absolute path": "the linter takes '/'.join for a path that begins with /; results are below the working folder",
    "is a prefix of input or output file but hardcoded": "a folder of several files, of which Snakemake tracks one",
    "Do not access input and output files individually by index": "the two files of a copied table",
}


def test_every_lint_is_an_exception_with_a_reason():
    command = [sys.executable, "-m", "snakemake", "--lint"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    titles = set(re.findall(r"^    \* (.+):$", done.stdout + done.stderr, re.MULTILINE))
    assert titles, done.stderr
    assert {title for title in titles if not any(known in title for known in EXCEPTIONS)} == set()
    assert {known for known in EXCEPTIONS if not any(known in title for title in titles)} == set()
