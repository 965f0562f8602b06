"""The environments that the workflow makes beside its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.workflow.checkout import ROOT


def python_of(overlay: str) -> Path:
    """Return the Python of the environment that a study needs; making it for the first time takes some minutes.

    Args:
        overlay: The study's file, relative to the repository.
    """
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "environments", "--configfile", overlay]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ROOT / Path(done.stdout.split()[-1]).parent / "bin/python"
