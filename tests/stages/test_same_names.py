"""Images of one name and other pixels that meet in one job: each question is asked about its own image."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from dualread.artifacts.tables import read_table
from dualread.artifacts.tensors import read_tensors
from dualread.schema.columns import FEATURES, GENERATIONS
from dualread.stages import generate, replay
from tests import same_names, specs


@pytest.fixture
def lab(study, tmp_path, monkeypatch):
    """Make generations and features of some manifests, in one job or in a job each."""
    monkeypatch.setattr(replay, "artifact_digest", lambda path: "digest of the actor")
    shutil.copytree(study.tiny.checkpoint, tmp_path / "actor" / "checkpoint")

    def of_shard(name, shard, manifest, **changes) -> tuple[Path, Path]:
        dataset, split = shard
        asked = specs.shard(dataset=dataset, split=split, **changes)
        folders = tuple(tmp_path / name / dataset / split / stage for stage in ("generations", "features"))
        for folder in folders:
            folder.mkdir(parents=True)
        inputs = {"actor": tmp_path / "actor", "facts": specs.facts(), "manifest": manifest}
        generate.compute(specs.generate(asked), inputs, folders[0])
        replay.compute(specs.replay(asked), inputs | {"generations": folders[0]}, folders[1])
        return folders

    def new_job():
        generate.loaded_engine.cache_clear()
        replay.loaded_actor.cache_clear()

    def make(manifests, *, together):
        made = {}
        new_job()
        for shard, manifest in manifests.items():
            made[shard] = of_shard("together" if together else "apart", shard, manifest)
            if not together:
                new_job()
        return made

    make.of_shard, make.new_job = of_shard, new_job
    return make


def answers(folders):
    """Return the generation's log-probabilities, [tokens of all answers], and the replay's states, [answers, D]."""
    generations, features = folders
    log_probs = read_table(generations / "generations.parquet", GENERATIONS)["token_log_probs"].explode().to_numpy()
    return log_probs, read_tensors(features / "features.safetensors")["h_global"]


@pytest.mark.parametrize("manifests_of", [same_names.two_data_sets, same_names.two_splits])
def test_a_shard_is_asked_about_its_own_images_whatever_the_job_was_asked_before(lab, tmp_path, manifests_of):
    manifests = manifests_of(tmp_path)
    together, apart = lab(manifests, together=True), lab(manifests, together=False)
    for shard in manifests:
        for ours, theirs in zip(answers(together[shard]), answers(apart[shard]), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        index = read_table(together[shard][1] / "features.parquet", FEATURES)
        assert index["log_prob_max_difference"].max() < 1e-4
    states = [answers(folders)[1] for folders in together.values()]
    assert np.abs(states[0] - states[1]).max(axis=1).min() > 1e-3  # the pixels count


def test_a_black_view_is_black_where_an_image_is_called_so(lab, tmp_path):
    same_names.table(tmp_path / "mine", split="test", pictures={"0.png": 0}, image_ids={"0.png": "black 32x32"})
    manifest = same_names.manifest(tmp_path / "mine", tmp_path / "manifest", dataset="mine", split="test")
    shard = ("mine", "test")
    lab.new_job()
    original = lab.of_shard("job", shard, manifest)
    black = lab.of_shard("black", shard, manifest, image="black", condition="black")
    lab.new_job()
    alone = lab.of_shard("alone", shard, manifest, image="black", condition="black")
    for ours, theirs in zip(answers(black), answers(alone), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert np.abs(answers(black)[1] - answers(original)[1]).max(axis=1).min() > 1e-3
