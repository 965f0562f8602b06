"""LM-Polygraph called directly on what a study has stored, beside the study's own confidences, row by row."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.grading.contracts import parse
from tests.readers import test_contract
from tests.workflow.checkout import Checkout, Run

from dualread.grading.canonical import canonical

pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(
        importlib.util.find_spec("lm_polygraph") is None,
        reason="LM-Polygraph is not installed (make test-estimators)",
    ),
]
# The micro study with every estimator and the methods of ours with which the table compares them.
STUDY = "workflow/studies/micro.yaml workflow/studies/estimators.yaml only.yaml"
# The estimators of states compute in float32, where a batch and a single row differ; scores have 12 significant digits.
TOLERANCE = dict.fromkeys(("lmp_mahalanobis", "lmp_relative_mahalanobis", "lmp_rde"), 2e-4)


def made(checkout: Checkout) -> Run:
    """Make the table `estimators` with the package as it is in the checkout."""
    path = os.pathsep.join([str(checkout.folder / "lib"), str(checkout.folder / "plugins/lm_polygraph")])
    return checkout.snakemake("tables/estimators.tex", study=STUDY, environment={"PYTHONPATH": path})


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Checkout:
    """A checkout in which the table `estimators` of a small study has been made."""
    checkout = Checkout.create(tmp_path_factory.mktemp("study"))
    (checkout.folder / "only.yaml").write_text(
        "only: {methods: null}\n"
        # RDE takes 100 components of at least as many training answers.
        "phantoms: {slake: {images: {train: 60, validation: 16, test: 12}, questions_per_image: 6}}\n"
    )
    run = made(checkout)
    assert run.returncode == 0, run.text
    return checkout


@pytest.fixture(scope="module")
def results(study) -> Path:
    return study.folder / "results/estimators"


@pytest.fixture(scope="module")
def compared(results, tmp_path_factory):
    """What `direct.py` found, one row per method and shard."""
    texts = {
        text
        for path in results.glob("views/**/samples/generations*.parquet")
        for text in pl.read_parquet(path)["text"].to_list()
    }
    answers = {text: parse(text).answer for text in texts}
    known = tmp_path_factory.mktemp("known") / "canonical.json"
    known.write_text(json.dumps({t: None if a is None else canonical(a) or None for t, a in answers.items()}))
    command = [sys.executable, str(Path(__file__).with_name("direct.py")), str(results), str(known)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pl.DataFrame([json.loads(line) for line in done.stdout.splitlines()])


def scores(results, method):
    paths = results.glob(f"predictions/*/*/*/{method}/predictions.parquet")
    return pl.concat(map(pl.read_parquet, sorted(paths))).sort("backbone", "seed", "sample_id", "condition")


def test_scores_are_lm_polygraphs_uncertainties_with_the_other_sign(compared):
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


def test_the_contract_of_all_readers_is_tested_here():
    assert not test_contract.ELSEWHERE


def test_readers_of_the_package_and_ours_share_a_job_and_only_theirs_are_keyed_by_lm_polygraph(study, results):
    manifests = {
        path.parent.name: json.loads(path.read_text()) for path in results.glob("readers/*/*/*/*/MANIFEST.json")
    }
    packages = {name: manifest["packages"] for name, manifest in manifests.items()}
    assert packages["lmp_perplexity"]["lm-polygraph"] == "0.7.0"
    assert [name for name, of in packages.items() if "lm-polygraph" in of and not name.startswith("lmp_")] == []
    logs = [path.relative_to(results / "logs") for path in results.glob("logs/fit_readers/**/rlvr/*.log")]
    assert len(logs) == len(list(results.glob("readers/*/rlvr/*")))  # one per backbone and seed
    assert made(study).did_nothing()
