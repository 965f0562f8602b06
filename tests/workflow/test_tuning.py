"""The search for a reader's settings (benchmarks/tune_reader.py) on a finished study."""

import subprocess
import sys

import polars as pl
import pytest
import yaml

pytestmark = pytest.mark.rest
STUDY = "workflow/studies/smoke.yaml"


def test_the_best_trial_becomes_a_file_to_lay_over_the_study(study):
    words = ["bicr", "--configfile", STUDY, "--seed", "17", "--trials", "2"]
    command = [sys.executable, str(study.folder / "benchmarks/tune_reader.py"), *words]
    environment = {"PYTHONPATH": str(study.folder / "lib"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=study.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = yaml.safe_load((study.folder / "tuned/bicr.yaml").read_text())["methods"].values()
    trials = pl.read_csv(study.folder / "tuned/bicr.csv")
    best = trials.sort("validation_auroc", descending=True, maintain_order=True).row(0, named=True)
    assert found["settings"]["dropout"] == float(best["dropout"])
    assert {name: found["tuned_on"][name] for name in ("study", "data", "seed", "trials")} == {
        **{"study": "smoke", "data": "phantoms", "seed": 17, "trials": 2},
    }
    planned = study.snakemake("-n", "tables/hparams.tex", study=f"{STUDY} tuned/bicr.yaml")
    assert planned.returncode == 0, planned.text
