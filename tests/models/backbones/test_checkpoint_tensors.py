"""Checkpoints with other tensors than their config describes are refused, and the tensors are named."""

import json
import re

import pytest
import torch

from dualread.errors import ArtifactError
from dualread.models.backbones.checkpoint import load
from dualread.models.generation import vllm_engine
from tests.models.backbones.damage import (
    EMBEDDINGS,
    OF_THE_MODEL,
    assert_refused,
    copied,
    edit_json,
    edit_weights,
    without,
)
from tests.tiny import MODEL


def test_a_checkpoint_without_23_of_its_tensors_is_refused(tiny, folder):
    edit_weights(folder, lambda tensors: without(tensors, *sorted(tensors)[:23]))
    assert_refused(tiny, folder, "23 tensors are missing: ", "and 18 more.", "save_pretrained")


def test_a_missing_tensor_is_named(tiny, folder):
    edit_weights(folder, lambda tensors: without(tensors, EMBEDDINGS[tiny.family]))
    assert_refused(tiny, folder, f"1 tensors are missing: {OF_THE_MODEL}.")


def test_an_unknown_tensor_is_named(tiny, folder):
    edit_weights(folder, lambda tensors: {**tensors, "score.weight": torch.zeros(1, 32)})
    assert_refused(tiny, folder, "1 tensors are unknown to this model: score.weight.")


def test_a_tensor_of_another_shape_is_named_with_both_shapes(tiny, folder):
    edit_weights(folder, lambda tensors: {**tensors, EMBEDDINGS[tiny.family]: torch.zeros(7, 3)})
    n_tokens = json.loads((folder / "config.json").read_text())["text_config"]["vocab_size"]
    assert_refused(tiny, folder, f"{OF_THE_MODEL} (shape [7, 3], expected [{n_tokens}, 32])")


@pytest.mark.parametrize(
    ("part", "key", "value", "expected"),
    [
        ("text_config", "num_hidden_layers", 5, "layers.4."),
        ("text_config", "num_hidden_layers", 3, "layers.3."),
        ("text_config", "intermediate_size", 64, "mlp.down_proj.weight (shape [32, 48], expected [32, 64])"),
        ("vision_config", "hidden_size", 33, "config.json"),
        ("text_config", "hidden_size", "abc", "config.json: "),
    ],
)
def test_a_config_of_other_sizes_than_the_weights_is_refused(tiny, folder, part, key, value, expected):
    def edit(config):
        config[part][key] = value
        config["text_config"].pop("layer_types", None)

    edit_json(folder / "config.json", edit)
    assert_refused(tiny, folder, expected)


def test_a_missing_head_that_is_not_tied_is_refused(tiny, folder):
    def untie(config):
        config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"] = False

    edit_json(folder / "config.json", untie)
    assert_refused(tiny, folder, "1 tensors are missing: lm_head.weight.")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_weight_that_is_not_finite_is_refused_where_weights_are_read(tiny, folder, value):
    def spoil(tensors):
        tensors[EMBEDDINGS[tiny.family]][3, 4] = value
        return tensors

    edit_weights(folder, spoil)
    with pytest.raises(ArtifactError, match=re.escape(f"1 tensors hold NaN or infinite values: {OF_THE_MODEL}.")):
        load(folder, MODEL)
    with pytest.raises(ArtifactError, match=re.escape(f"{EMBEDDINGS[tiny.family]}. Expected finite weights")):
        copied(tiny, folder, folder.parent / "out")


def test_the_vllm_engine_refuses_an_incomplete_checkpoint_before_it_starts(tiny, folder, monkeypatch):
    monkeypatch.setattr(vllm_engine, "prepare", lambda: None)
    monkeypatch.setattr(vllm_engine, "VllmEngine", lambda *_: "opened")
    monkeypatch.setattr(vllm_engine, "visible_gpus", list)
    assert vllm_engine.open_engine(folder, MODEL, {}) == "opened"
    edit_weights(folder, lambda tensors: {**tensors, "score.weight": torch.zeros(1, 32)})
    with pytest.raises(ArtifactError, match=r"unknown to this model: score\.weight"):
        vllm_engine.open_engine(folder, MODEL, {})
