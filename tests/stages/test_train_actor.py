"""An actor through the runner: what is published, and what a failure leaves for the next run."""

import polars as pl
import pytest

from dualread import progress
from dualread.stages import build_manifest, draw_phantom
from dualread.store.job import Entry
from dualread.store.manifest import read_manifest
from dualread.store.runner import Runner
from dualread.store.store import Store
from dualread.training.rewards import rlvr
from tests import specs, tiny


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """An untrained base and a few phantoms."""
    folder = tmp_path_factory.mktemp("inputs")
    tiny.build("qwen3_vl", folder / "base" / "checkpoint")
    images = {"train": 3, "validation": 1, "test": 1}
    phantom = specs.phantom(seed=1, images=images, questions_per_image=4)
    for name in ("phantom", "manifest"):
        (folder / name).mkdir()
    draw_phantom.compute(phantom, {}, folder / "phantom")
    spec = specs.manifest(split="train", roles="fit")
    build_manifest.compute(spec, {"source": folder / "phantom"}, folder / "manifest")
    return {"facts": specs.facts(), **{name: folder / name for name in ("base", "manifest")}}


@pytest.fixture
def train(inputs, tmp_path):
    """Train an actor of four steps with a store of its own; return its output."""

    def train(store):
        spec = specs.training(steps=4, save_every=1).to_spec()
        output = tmp_path / f"{store}-output"
        Runner("train_actor", Store(tmp_path / store)).run([Entry(spec=spec, inputs=inputs, output=output)])
        return output

    return train


@pytest.mark.rest
def test_a_failed_training_goes_on_in_the_next_run_and_publishes_the_same_bytes(train, tmp_path, monkeypatch, capsys):
    straight = train("straight")
    reward, calls = rlvr.reward, iter(range(2))

    def fail_in_the_third_step(*arguments, **columns):
        if next(calls, None) is None:
            raise RuntimeError("out of memory")
        return reward(*arguments)

    monkeypatch.setattr(rlvr, "reward", fail_in_the_third_step)
    with pytest.raises(RuntimeError, match="out of memory"):
        train("failed")
    monkeypatch.undo()
    partial = tmp_path / "failed" / "partial"
    assert sorted(path.name for path in partial.glob("*/*-*")) == ["checkpoint-1", "checkpoint-2"]

    resumed = train("failed")
    assert f"resuming from {partial}" in capsys.readouterr().err
    assert read_manifest(straight / "MANIFEST.json").files == read_manifest(resumed / "MANIFEST.json").files
    assert list(partial.iterdir()) == []


def test_seconds_are_recorded_and_not_published_and_steps_are_beside_the_log_of_the_job(train, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_VOICE", progress._Voice())
    progress.keep_log(tmp_path / "logs/17.log")
    output = train("store")
    log = pl.read_parquet(output / "train_log.parquet")
    assert log.filter(pl.col("name") == "reward")["step"].to_list() == [1, 2, 3, 4]
    assert "seconds" not in log["name"].to_list()
    record = Store(tmp_path / "store").record(read_manifest(output / "MANIFEST.json").key)
    assert record["summary"].startswith("took 4 steps of ")
    # An untrained model answers nothing.
    assert record["summary"].endswith("; 8 of 8 groups had rewards without spread, 4 of 4 steps moved nothing")
    assert record["seconds"] > 0
    steps = progress.read_steps(tmp_path / "logs/17.steps")
    assert [(one.step, one.of) for one in steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert sum(one.values["seconds"] for one in steps) > 0
    noted = [(one.step, name, value) for one in steps for name, value in one.values.items() if name != "seconds"]
    assert noted == list(log.iter_rows())
    progress._VOICE.log.close()
