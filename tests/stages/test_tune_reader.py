import csv
import json

import numpy as np
import pytest
import yaml

from dualread.declared.readers import DatasetSplit, FitReadersSpec, TuneReaderSpec
from dualread.errors import ArtifactError, ConfigError, DualReadError
from dualread.evaluation.metrics.discrimination import auroc
from dualread.readers import bicr
from dualread.readers.artifact import load_reader
from dualread.readers.base import score
from dualread.stages import fit_readers, tune_reader
from dualread.stages._examples import read_examples
from dualread.store.digest import digest_of
from tests import specs
from tests.specs import changed
from tests.stages import shards

SPEC = TuneReaderSpec(
    study="mine",
    data="slake",
    backbone="tiny",
    actor="rlvr",
    seed=17,
    reader=specs.method("bicr"),
    settings={"batch_size": 32, "max_epochs": 3, "patience": 2, "clip_norm": 1.0},
    trials=12,
    dataset="slake",
    views=("black",),
)
ROLES = ("fit",) * 7 + ("stop",) + ("calibration",) * 2


def shard(folder, n: int, split: str, roles: tuple[str, ...], seed: int = 0) -> dict:
    rows = shards.manifest_rows(n, split=split, roles=roles)
    correct = np.random.default_rng(seed).random(n) < 0.6
    graded = shards.graded_rows(rows, correct)
    black = [{**row, "condition": "original/black"} for row in graded]
    return {
        "manifest": shards.write(folder / "m", "manifest", rows),
        "graded": shards.write(folder / "g", "graded", graded),
        "features": shards.write_features(folder / "f", graded, correct, seed=seed),
        "view/black": shards.write_features(folder / "b", black, np.zeros(n), seed=seed + 1),
    }


def study_inputs(folder) -> dict:
    validation = shard(folder / "validation", 80, "validation", ("validation",), seed=5)
    validation.pop("view/black")
    return {**shard(folder / "train", 200, "train", ROLES), **{f"validation/{n}": p for n, p in validation.items()}}


def tuned(folder, inputs, **changes) -> tuple[list[dict], dict]:
    folder.mkdir(parents=True)
    tune_reader.compute(changed(SPEC, **changes), inputs, folder)
    rows = list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))
    return [{name: json.loads(value) for name, value in row.items()} for row in rows], yaml.safe_load(
        (folder / "best.yaml").read_text()
    )


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return study_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def done(inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned") / "study"
    return folder, *tuned(folder, inputs)


def test_every_trial_lies_in_the_space_and_is_written_in_full(done):
    _, rows, _ = done
    assert [row["trial"] for row in rows] == list(range(12))
    assert set(rows[0]) == {"trial", "validation_auroc", *bicr.SPACE}
    for name, rule in bicr.SPACE.items():
        values = [row[name] for row in rows]
        if "choices" in rule:
            assert all(value in rule["choices"] for value in values)
        else:
            assert all(rule["low"] <= value <= rule["high"] for value in values)
            assert len(set(values)) == 12


def test_the_best_trial_is_a_study_fragment(done):
    folder, rows, best = done
    top = max(row["validation_auroc"] for row in rows)
    row = next(row for row in rows if row["validation_auroc"] == top)
    expected = {**SPEC.settings, **{name: row[name] for name in bicr.SPACE}}
    tuned_on = {"study": "mine", "data": "slake", "backbone": "tiny", "actor": "rlvr", "seed": 17, "trials": 12}
    digest = {"settings": digest_of(expected)[:16]}
    assert best == {"methods": {"bicr": {"settings": expected, "tuned_on": {**tuned_on, **digest}}}}
    assert set(expected) == set(tune_reader.load("readers.bicr").SPACE) | set(SPEC.settings)
    head = (folder / "best.yaml").read_text().splitlines()[0]
    assert head == f"# tiny/rlvr/17/bicr: trial {row['trial']} of 12, AUROC {top:.4f} on validation."


def test_the_best_reader_is_the_one_that_fit_readers_fits(done, inputs, tmp_path):
    _, rows, best = done
    run = {name: getattr(SPEC, name) for name in ("backbone", "actor", "seed", "reader", "views")}
    settings = best["methods"]["bicr"]["settings"]
    examples = DatasetSplit(dataset="slake", split="train")
    spec = FitReadersSpec(**run, settings=settings, examples=examples, scoring=shards.SCORING)
    of_actor = {"actor": shards.write_actor(tmp_path / "actor"), "facts": specs.facts()}
    fit_readers.compute(spec, {**inputs, **of_actor}, tmp_path)
    reader = load_reader(tmp_path / "reader.safetensors")
    held_out = {name: inputs[f"validation/{name}"] for name in ("manifest", "graded", "features")}
    validation = read_examples(DatasetSplit(dataset="slake", split="validation"), (), held_out, "here")
    value = auroc(score(reader, validation.answers).confidence, validation.correct)
    assert value == max(row["validation_auroc"] for row in rows)


def test_the_same_bytes_again_and_others_for_another_actor(done, inputs, tmp_path):
    folder, rows, _ = done
    tuned(tmp_path / "again", inputs)
    for name in ("trials.csv", "best.yaml"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    other, _ = tuned(tmp_path / "other", inputs, reader=specs.method("mine", "bicr"), trials=1)
    assert other == rows[:1]  # a method's name is no part of any seed
    assert yaml.safe_load((tmp_path / "other" / "best.yaml").read_text())["methods"].keys() == {"mine"}


def test_validation_labels_choose_settings_but_reach_no_fit(done, inputs, tmp_path):
    rows = shards.read(inputs["validation/graded"], "graded").to_dicts()
    correct = np.random.default_rng(1).permutation([row["correct"] for row in rows])
    permuted = [{**row, "correct": bool(c)} for row, c in zip(rows, correct, strict=True)]
    graded = shards.write(tmp_path / "g", "graded", permuted)
    other, _ = tuned(tmp_path / "t", {**inputs, "validation/graded": graded})
    assert [row["validation_auroc"] for row in other] != [row["validation_auroc"] for row in done[1]]
    # The first ten trials are drawn before the sampler learns anything.
    assert [row["learning_rate"] for row in other[:10]] == [row["learning_rate"] for row in done[1][:10]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reader": specs.method("bicr", "psr")}, r"tiny/rlvr/17/bicr: readers.psr has no SPACE to search"),
        ({"settings": {**SPEC.settings, "margin": 0.1}}, r"settings margin are tuned. Leave them out"),
        ({"settings": {"batch_size": 32}}, r"readers.bicr: settings lack clip_norm, max_epochs, patience"),
    ],
)
def test_specs_that_make_no_study_are_named(tmp_path, inputs, changes, message):
    with pytest.raises(ConfigError, match=message):
        tune_reader.compute(changed(SPEC, **changes), inputs, tmp_path)


def test_other_answers_than_validation_are_refused(tmp_path, inputs):
    test = shard(tmp_path, 20, "test", ("test",))
    with pytest.raises(ArtifactError, match=r"answers of .*test.*Expected only .*validation"):
        tune_reader.compute(SPEC, {**inputs, **{f"validation/{name}": path for name, path in test.items()}}, tmp_path)


def test_validation_answers_of_one_class_are_named(tmp_path, inputs):
    rows = [{**row, "correct": True} for row in shards.read(inputs["validation/graded"], "graded").to_dicts()]
    graded = shards.write(tmp_path / "g", "graded", rows)
    with pytest.raises(DualReadError, match=r"partition 'validation': 80 correct of 80 answers"):
        tune_reader.compute(SPEC, {**inputs, "validation/graded": graded}, tmp_path)
