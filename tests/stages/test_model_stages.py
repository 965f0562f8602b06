"""The stages that load a model, end to end on a handful of phantoms and untrained checkpoints."""

import shutil

import numpy as np
import polars as pl
import pytest

from dualread.artifacts.tables import read_table, write_table
from dualread.artifacts.tensors import read_header, read_tensors
from dualread.errors import ReplayDisagreementError
from dualread.schema.backbones import PretrainBaseSpec, Pretraining, PretrainingReport
from dualread.schema.base import ConfiguredPlugin
from dualread.schema.columns import FEATURES, GENERATIONS, MANIFEST, PAIRS
from dualread.stages import generate, pretrain_base, replay, train_actor
from tests import specs
from tests.specs import changed
from tests.tiny import ARCHITECTURE


@pytest.fixture
def actor(tiny, tmp_path):
    """The checkpoint in the form of an actor artifact."""
    shutil.copytree(tiny.checkpoint, tmp_path / "actor" / "checkpoint")
    return tmp_path / "actor"


def answer(tiny, actor, hospital, folder, condition):
    inputs = {"actor": actor, "facts": specs.facts(), "manifest": hospital["manifest"]}
    inputs |= {"pairs": hospital["pairs"]} if condition == "donor" else {}
    (folder / "generations").mkdir()
    generate.compute(specs.generate(specs.shard(condition)), inputs, folder / "generations")
    return inputs | {"generations": folder / "generations"}


@pytest.mark.parametrize("condition", ["original", "donor"])
def test_generate_and_replay_agree(tiny, actor, hospital, tmp_path, condition, monkeypatch):
    monkeypatch.setattr(replay, "artifact_digest", lambda path: "digest of the actor")
    inputs = answer(tiny, actor, hospital, tmp_path, condition)
    generations = read_table(tmp_path / "generations" / "generations.parquet", GENERATIONS)
    manifest = read_table(hospital["manifest"] / "manifest.parquet", MANIFEST)
    pairs = read_table(hospital["pairs"] / "pairs.parquet", PAIRS)
    expected = manifest["sample_id"] if condition == "original" else pairs["sample_id"]
    assert generations["sample_id"].to_list() == sorted(expected)
    own = dict(manifest.select("sample_id", "image_id").iter_rows())
    shown = dict(generations.select("sample_id", "image_id").iter_rows())
    assert all((shown[i] == own[i]) == (condition == "original") for i in shown)

    (tmp_path / "features").mkdir()
    spec = specs.replay(specs.shard(condition))
    exact = spec.replay.agreement.model_copy(update={"argmax_tolerance": 0.0})  # the most probable token is no mismatch
    spec = changed(spec, replay=spec.replay.model_copy(update={"agreement": exact}))
    replay.compute(spec, inputs, tmp_path / "features")
    index = read_table(tmp_path / "features" / "features.parquet", FEATURES)
    assert index["log_prob_mean_difference"].max() < 1e-4
    assert index["argmax_mismatches"].sum() == 0
    vectors = read_tensors(tmp_path / "features" / "features.safetensors")
    assert set(vectors) == {"h_pre", "h_close", "h_ans", "h_global", "h_evid", "h_mid", "answer_log_prob"}
    answers = vectors.pop("answer_log_prob")
    means = [np.mean([p[t] for t in at]) for p, at in index.select("token_log_probs", "answer_positions").iter_rows()]
    np.testing.assert_allclose(answers[:, 0], means, atol=1e-6)
    assert {v.shape for v in vectors.values()} == {(generations.height, 32)}
    assert {v.dtype for v in vectors.values()} == {np.dtype(np.float32)}
    header = read_header(tmp_path / "features" / "features.safetensors")
    assert (header["kappa"], header["final_layer"], header["middle_layer"]) == (0.1, 4, 3)
    assert header["actor_digest"] == "digest of the actor"


def test_what_only_a_reader_asks_for_is_stored_and_changes_nothing_else(tiny, actor, hospital, tmp_path, monkeypatch):
    monkeypatch.setattr(replay, "artifact_digest", lambda path: "digest of the actor")
    inputs = answer(tiny, actor, hospital, tmp_path, "original")
    spec = specs.replay(specs.shard("original"))
    assert "optional_tensors" not in spec.to_spec()  # the key of a study that asks for nothing stays
    for name, of in (
        ("plain", spec),
        ("more", changed(spec, optional_tensors=("token_entropies", "h_image_1", "h_image_2"))),
    ):
        (tmp_path / name).mkdir()
        replay.compute(of, inputs, tmp_path / name)
    plain, more = (read_tensors(tmp_path / name / "features.safetensors") for name in ("plain", "more"))
    entropies, first, second = (more.pop(name) for name in ("token_entropies", "h_image_1", "h_image_2"))
    np.testing.assert_allclose(first, plain["h_global"], atol=1e-6)  # each prompt has one image
    assert np.isnan(second).all()
    assert {name: tensor.tobytes() for name, tensor in more.items()} == {n: t.tobytes() for n, t in plain.items()}
    assert (tmp_path / "plain/features.parquet").read_bytes() == (tmp_path / "more/features.parquet").read_bytes()
    lengths = read_table(tmp_path / "more/features.parquet", FEATURES)["token_log_probs"].list.len().to_numpy()
    assert (np.isfinite(entropies).sum(axis=1) == lengths).all()
    vocabulary = tiny.load()[0].get_input_embeddings().num_embeddings
    assert 0 <= np.nanmin(entropies) <= np.nanmax(entropies) <= np.log(vocabulary)


def test_an_answer_given_to_another_image_is_refused_with_its_name(tiny, actor, hospital, tmp_path):
    """Completions of the original images, replayed on the donors': same prompts, other pixels."""
    inputs = answer(tiny, actor, hospital, tmp_path, "original")
    pairs = read_table(hospital["pairs"] / "pairs.parquet", PAIRS)
    path = tmp_path / "generations" / "generations.parquet"
    generations = read_table(path, GENERATIONS).join(pairs.select("sample_id"), on="sample_id", how="semi")
    write_table(path, generations.with_columns(condition=pl.lit("donor")), GENERATIONS)
    (tmp_path / "features").mkdir()
    inputs = inputs | {"pairs": hospital["pairs"]}
    with pytest.raises(ReplayDisagreementError, match=r"slake/test/donor: .* Worst: slake/test/"):
        replay.compute(specs.replay(specs.shard("donor")), inputs, tmp_path / "features")


def test_a_generation_whose_log_probs_are_wrong_is_refused(tiny, actor, hospital, tmp_path):
    inputs = answer(tiny, actor, hospital, tmp_path, "original")
    path = tmp_path / "generations" / "generations.parquet"
    generations = read_table(path, GENERATIONS)
    shifted = pl.col("token_log_probs").list.eval(pl.element() - 0.01)
    write_table(path, generations.with_columns(shifted.cast(pl.List(pl.Float32))), GENERATIONS)
    (tmp_path / "features").mkdir()
    with pytest.raises(ReplayDisagreementError, match=r"1\.00e-02 on average"):
        replay.compute(specs.replay(specs.shard()), inputs, tmp_path / "features")


def test_a_prompt_that_changed_since_the_generation_is_refused(tiny, actor, hospital, tmp_path):
    inputs = answer(tiny, actor, hospital, tmp_path, "original")
    (tmp_path / "features").mkdir()
    changed = specs.replay(specs.shard(prompt=specs.prompt("p_true")))
    with pytest.raises((ReplayDisagreementError, ValueError), match=r"prompt|ANSWER"):
        replay.compute(changed, inputs, tmp_path / "features")


def test_a_base_is_pretrained_and_an_actor_is_trained_from_it(tiny, hospital, tmp_path):
    training = Pretraining(
        steps=2,
        images_per_step=2,
        questions_per_image=2,
        learning_rate=1e-3,
        warmup_steps=1,
        weight_decay=0.05,
        clip_norm=1.0,
        mixture={"shared": 1.0},
    )
    pool = ConfiguredPlugin(module="training.corpora.phantom", settings={"n_images": 4, "held_out": 2, "size": 32})
    recipe = PretrainBaseSpec(
        **specs.backbone(),
        seed=0,
        pool=pool,
        architecture=ConfiguredPlugin(module=f"models.backbones.{tiny.family}", settings=ARCHITECTURE),
        training=training,
        reported=PretrainingReport(questions=2, max_completion_tokens=4),
    )
    for name in ("base", "again"):
        (tmp_path / name).mkdir()
        pretrain_base.compute(recipe, {}, tmp_path / name)
    first, again = ((tmp_path / n / "checkpoint" / "model.safetensors").read_bytes() for n in ("base", "again"))
    assert first == again
    log = pl.read_parquet(tmp_path / "base" / "train_log.parquet")
    assert log.filter(pl.col("name") == "loss").height == 2
    assert log.filter(pl.col("name").str.starts_with("valid/")).height == 8

    spec = specs.training(steps=1, max_completion_tokens=4)
    (tmp_path / "actor").mkdir()
    inputs = {"base": tmp_path / "base", "facts": specs.facts(), "manifest": hospital["manifest"]}
    train_actor.compute(spec, inputs, tmp_path / "actor")
    assert (tmp_path / "actor" / "checkpoint" / "model.safetensors").exists()
    names = pl.read_parquet(tmp_path / "actor" / "train_log.parquet")["name"].unique()
    assert {"reward", "terms/correct/mean", "terms/valid/mean"} <= set(names)
