from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dualread.errors import ArtifactError, ReaderError
from dualread.readers import psr
from dualread.schema.answers import Shard
from dualread.schema.readers import ScoreAnswersSpec
from dualread.stages import score_answers
from tests.stages import shards
from tests.stages.test_fit_readers import METHODS, RUN, fit_all, training_inputs

SHARDS = tuple(Shard(dataset="slake", split="test", condition=c) for c in ("original", "donor"))


def scored_inputs(folder, *, labels_seed: int = 1, **header) -> dict:
    rows = shards.manifest_rows(30, split="test", roles=("test",))
    inputs = {"manifest/slake/test": shards.write(folder / "m", "manifest", rows)}
    for condition in ("original", "donor"):
        states = np.random.default_rng(0 if condition == "original" else 1).random(30) < 0.6
        labels = np.random.default_rng(labels_seed).random(30) < 0.5
        graded = shards.graded_rows(rows, labels, condition=condition)
        name = f"slake/test/{condition}"
        inputs[f"graded/{name}"] = shards.write(folder / f"g {condition}", "graded", graded[::-1])
        inputs[f"features/{name}"] = shards.write_features(
            folder / f"f {condition}", graded, states, seed=len(condition), **header
        )
    return inputs


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    return fit_all(folder / "readers", training_inputs(folder))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return scored_inputs(tmp_path_factory.mktemp("test"))


def run(method: str, fitted: dict, inputs: dict, out, **changes) -> pl.DataFrame:
    out.mkdir()
    spec = ScoreAnswersSpec(**{**RUN, "reader": METHODS[method][0], "shards": SHARDS} | changes)
    score_answers.compute(spec, {**inputs, "reader": fitted[method]}, out)
    return shards.read(out, "predictions")


@pytest.mark.parametrize("method", METHODS)
def test_one_row_an_answer_sorted_and_without_a_label(method, tmp_path, fitted, inputs):
    predictions = run(method, fitted, inputs, tmp_path / "out")
    assert len(predictions) == 60
    assert predictions.equals(predictions.sort("sample_id", "condition"))
    assert "correct" not in predictions.columns
    assert predictions.select("backbone", "actor", "seed", "method").unique().row(0) == ("tiny", "rlvr", 17, method)
    assert predictions["imputed"].sum() == (2 * 5 if method == "rlvr" else 0)  # 0, 7, 14, 21, 28 of 30


@pytest.mark.parametrize("method", METHODS)
def test_labels_of_the_scored_answers_and_the_order_of_shards_change_no_byte(method, tmp_path, fitted, inputs):
    run(method, fitted, inputs, tmp_path / "one")
    other = scored_inputs(tmp_path / "other", labels_seed=2)
    run(method, fitted, other, tmp_path / "two", shards=SHARDS[::-1])
    one, two = ((tmp_path / name / "predictions.parquet").read_bytes() for name in ("one", "two"))
    assert one == two


def test_the_question_prior_does_not_move_when_the_image_does(tmp_path, fitted, inputs):
    for method, moves in (("question_prior", False), ("psr", True)):
        predictions = run(method, fitted, inputs, tmp_path / method)
        wide = predictions.pivot("condition", index="sample_id", values="confidence")
        assert (wide["original"] != wide["donor"]).any() == moves


def test_a_replay_read_in_another_way_is_refused(tmp_path, fitted):
    with pytest.raises(ArtifactError, match=r"slake/test/original: the replay's kappa is 0\.2"):
        run("per", fitted, scored_inputs(tmp_path / "in", kappa=0.2), tmp_path / "out")
    other = scored_inputs(tmp_path / "prompt", prompt={"name": "option_visible", "sha256": "0" * 64})
    assert len(run("per", fitted, other, tmp_path / "out prompt")) == 60


def test_a_reader_without_states_needs_no_replay(tmp_path, fitted, inputs):
    few = {name: path for name, path in inputs.items() if not name.startswith("features/")}
    assert len(run("question_answer_prior", fitted, few, tmp_path / "b")) == 60


def test_a_score_that_is_not_finite_is_named_with_its_shard_and_not_with_the_range_of_confidences(
    tmp_path, fitted, inputs, monkeypatch
):
    score = psr.score
    broken = {"score": np.full(30, np.inf)}
    monkeypatch.setattr(psr, "score", lambda reader, answers: replace(score(reader, answers), **broken))
    with pytest.raises(ReaderError, match=r"slake/test/original: readers\.psr: score of slake/test/0000 is") as error:
        run("psr", fitted, inputs, tmp_path / "out")
    assert "[0, 1]" not in str(error.value)
