"""The rules run with the oldest Snakemake that they admit, and with the newest one that pip finds."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.long

MICRO = "workflow/studies/micro.yaml"
# Newest last: pip's "highest" is the newest that --upgrade finds.
VERSIONS = {"oldest": "snakemake==9.27.0", "newest": "snakemake>=9.27,<10"}


@pytest.fixture(scope="module", params=VERSIONS)
def python(request, tmp_path_factory) -> Path:
    """The Python of an environment with one Snakemake, and with all other packages of this one."""
    folder = tmp_path_factory.mktemp(request.param)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    install = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-compile", "--upgrade"]
    done = subprocess.run([*install, VERSIONS[request.param]], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install {VERSIONS[request.param]}: {done.stderr.strip().splitlines()[-1]}")
    version = subprocess.run([folder / "bin/python", "-m", "snakemake", "--version"], capture_output=True, text=True)
    assert request.param == "newest" or version.stdout.strip() == "9.27.0"
    return folder / "bin/python"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return Checkout.create(tmp_path_factory.mktemp("checkout"))


def run(python: Path, checkout: Checkout, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib")}
    command = [python, "-m", "snakemake", "--cores", "1", *words, "--configfile", MICRO]
    done = subprocess.run(command, cwd=checkout.folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_table_is_made_once_and_again_after_an_edit(python, checkout):
    first = run(python, checkout, "tables/data.tex")
    assert "(100%) done" in first or "Nothing to be done" in first, first  # of the environment before
    assert "this Snakemake has no" not in first
    assert (checkout.folder / "tables/data.tex").exists()
    assert "Nothing to be done" in run(python, checkout, "tables/data.tex")
    # Neither a time nor Snakemake's own records show this edit: they are deleted.
    subprocess.run(["rm", "-r", checkout.folder / ".snakemake"], check=True)
    checkout.edit(MICRO, "questions_per_image: 6", "questions_per_image: 7")
    again = run(python, checkout, "tables/data.tex", "-n")
    checkout.edit(MICRO, "questions_per_image: 7", "questions_per_image: 6")
    assert "draw_phantom" in again
    assert "Nothing to be done" in run(python, checkout, "tables/data.tex")


def test_a_failed_job_says_why(python, checkout):
    line, broken = "import polars as pl\n", "import polars as pl\n\nprint(1 / 0)\n"
    checkout.edit("lib/dualread/reporting/tables/data.py", line, broken)
    said = run(python, checkout, "tables/data.tex")
    checkout.edit("lib/dualread/reporting/tables/data.py", broken, line)
    reason, theirs = (said.index(words) for words in ("division by zero", "RuleException"))
    assert reason < theirs  # the reason comes first
    assert "tables/data.tex is ready" in run(python, checkout, "tables/data.tex")  # and nothing is taken for made
