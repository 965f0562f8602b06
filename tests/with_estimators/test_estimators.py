"""LM-Polygraph called directly on what a study has stored, beside the study's own confidences, row by row."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dualread.grading.canonical import canonical
from tests.grading.contracts import parse
from tests.with_estimators.conftest import STUDY
from tests.workflow.checkout import ROOT

# The estimators of states compute in float32, where a batch and a single row differ; scores have 12 significant digits.
TOLERANCE = dict.fromkeys(("lmp_mahalanobis", "lmp_relative_mahalanobis", "lmp_rde"), 2e-4)


@pytest.fixture(scope="module")
def results(study) -> Path:
    return study.folder / "results/estimators"


@pytest.fixture(scope="module")
def compared(results, estimators_python, tmp_path_factory):
    """What `direct.py` found, one row per method and shard."""
    texts = {
        text
        for path in results.glob("views/**/samples/generations*.parquet")
        for text in pl.read_parquet(path)["text"].to_list()
    }
    answers = {text: parse(text).answer for text in texts}
    known = tmp_path_factory.mktemp("known") / "canonical.json"
    known.write_text(json.dumps({t: None if a is None else canonical(a) or None for t, a in answers.items()}))
    command = [str(estimators_python), str(Path(__file__).with_name("direct.py")), str(results), str(known)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pl.DataFrame([json.loads(line) for line in done.stdout.splitlines()])


def scores(results, method):
    paths = results.glob(f"predictions/*/*/*/{method}/predictions.parquet")
    return pl.concat(map(pl.read_parquet, sorted(paths))).sort("backbone", "seed", "sample_id", "condition")


def test_scores_are_lm_polygraphs_uncertainties_with_the_other_sign(compared, study):
    methods = set(compared["method"])
    assert len(methods) == 12
    for method, difference in compared.group_by("method").agg(pl.col("score").max()).iter_rows():
        assert difference <= TOLERANCE.get(method, 1e-11), method


def test_confidences_are_platt_maps_that_keep_the_direction(compared):
    assert compared["confidence"].max() < 1e-5
    assert (compared["slope"] > 0).all()


def test_perplexity_of_the_answers_tokens_is_our_sequence_likelihood(results):
    """exp(score) of the one is the probability whose log-odds are the score of the other."""
    theirs, ours = (
        scores(results, name)["score"].to_numpy() for name in ("lmp_perplexity_answer", "sequence_likelihood")
    )
    below = np.log1p(-(2.0**-24))  # where ours are limited
    limited = np.minimum(theirs, below)
    np.testing.assert_allclose(limited - np.log(-np.expm1(limited)), ours, rtol=1e-5, atol=1e-5)


def test_the_frequency_entropy_is_our_semantic_uncertainty_times_ln_k(results):
    theirs, ours = (
        scores(results, name)["score"].to_numpy() for name in ("lmp_semantic_frequency", "semantic_uncertainty")
    )
    np.testing.assert_allclose(theirs, ours * np.log(8), atol=1e-11)


def test_the_readers_keep_the_contract_of_all_readers(estimators_python):
    """The tests of every reader, in this environment, with pytest from the other one."""
    packages = subprocess.run(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    path = ":".join([str(ROOT / "lib"), str(ROOT), packages])  # the same versions: the lock is compiled with base.lock
    files = ["tests/readers/test_contract.py", "tests/readers/test_artifact.py"]
    # Packages of other people warn when they are imported.
    command = [estimators_python, "-m", "pytest", *files, "-k", "lm_polygraph", "-n", "0", "-W", "ignore"]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*map(str, command), "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout


def test_other_methods_of_the_study_run_in_the_workflows_environment(study, results):
    manifests = {
        path.parent.name: json.loads(path.read_text()) for path in results.glob("readers/*/*/*/*/MANIFEST.json")
    }
    packages = {name: manifest["packages"] for name, manifest in manifests.items()}
    assert packages["lmp_perplexity"]["lm-polygraph"] == "0.7.0"
    assert "lm-polygraph" not in packages["dualread"]
    assert study.snakemake("tables/estimators.tex", study=STUDY).did_nothing()
