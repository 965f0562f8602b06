"""Checkpoints that are damaged, incomplete, or another model's are refused, and what is wrong is named.

By what is wrong: how it is done to the folder of a checkpoint, and words of the refusal.
"""

import re

import pytest
import torch
from safetensors.torch import save_file

from dualread.errors import ArtifactError
from dualread.models.backbones.checkpoint import load
from dualread.models.generation import vllm_engine
from tests.architectures import both
from tests.models.backbones.damage import (
    EMBEDDINGS,
    OF_THE_MODEL,
    assert_refused,
    copied,
    edit_json,
    edit_weights,
    shard,
    without,
)
from tests.tiny import MODEL

EMBEDDED = EMBEDDINGS["qwen3_vl"]
INDEX = "model.safetensors.index.json"


def written(name, content):
    return lambda folder: (folder / name).write_text(content)


def config(edit):
    return lambda folder: edit_json(folder / "config.json", edit)


def of_part(part, **entries):
    def edit(found):
        found[part].update(entries)
        found["text_config"].pop("layer_types", None)

    return config(edit)


def weights(edit):
    return lambda folder: edit_weights(folder, edit)


def cut(kept):
    def damage(folder):
        file = folder / "model.safetensors"
        file.write_bytes(file.read_bytes()[:kept])

    return damage


def lose_a_shard(folder):
    shard(folder, n_files=3)
    (folder / "model-00002-of-00003.safetensors").unlink()


def indexed(content):
    def damage(folder):
        (folder / "model.safetensors").unlink()
        (folder / INDEX).write_text(content)

    return damage


def untied(found):
    found["tie_word_embeddings"] = found["text_config"]["tie_word_embeddings"] = False


def an_adapter_alone(folder):
    for file in folder.iterdir():
        file.unlink()
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    save_file({"base_model.model.lm_head.lora_A.weight": torch.zeros(2, 2)}, folder / "adapter_model.safetensors")


# fmt: off
WRONG = {
    "a shard is missing": (lose_a_shard, "1 of its 3 files are not there: model-00002-of-00003.safetensors"),
    "a download that was cut off": (cut(2000), "model.safetensors: damaged or cut off at 2000 bytes"),
    "a download without its last bytes": (cut(-4), "model.safetensors: damaged or cut off at "),
    "an index of numbers": (indexed('{"weight_map": {"lm_head.weight": 1}}'), f"{INDEX}: "),
    "8 bits without a word in the config": (
        weights(lambda tensors: {**tensors, OF_THE_MODEL: torch.ones(4, 4).to(torch.float8_e4m3fn)}),
        f"model.safetensors: 1 tensors are quantized: {OF_THE_MODEL} ("),
    "a model of texts": (config(lambda found: found.update(model_type="gemma3_text")), "model_type is 'gemma3_text'."),
    "no model type": (config(lambda found: found.update(model_type=None)), "model_type is None."),
    "another model type over the same weights": (config(lambda found: found.update(model_type="llava")),),
    "a part of another model": (of_part("text_config", model_type="clip_vision_model"),),
    "a vision part of another model": (of_part("vision_config", model_type="clip_vision_model"),),
    "a part of an unknown model": (of_part("vision_config", model_type="my_model"), "config.json: ", "my_model"),
    "an adapter alone": (an_adapter_alone, "adapter", "`adapter: {folder: ...}` with its `base`", "--base"),
    "23 tensors are missing": (weights(lambda tensors: without(tensors, *sorted(tensors)[:23])),
        *("23 tensors are missing: ", "and 18 more.", "save_pretrained")),
    "an unknown tensor": (weights(lambda tensors: {**tensors, "score.weight": torch.zeros(1, 32)}),
        "1 tensors are unknown to this model: score.weight."),
    "a tensor of another shape": (weights(lambda tensors: {**tensors, EMBEDDED: torch.zeros(7, 3)}),
        f"{OF_THE_MODEL} (shape [7, 3], expected [", ", 32])"),
    "a layer more": (of_part("text_config", num_hidden_layers=5), "layers.4."),
    "a layer less": (of_part("text_config", num_hidden_layers=3), "layers.3."),
    "another width": (of_part("text_config", intermediate_size=64),
        "mlp.down_proj.weight (shape [32, 48], expected [32, 64])"),
    "a width that no head divides": (of_part("vision_config", hidden_size=33), "config.json"),
    "a width that is a word": (of_part("text_config", hidden_size="abc"), "config.json: "),
    "no head, and none that is tied": (config(untied), "1 tensors are missing: lm_head.weight."),
}
# fmt: on


@pytest.mark.parametrize("wrong", WRONG)
def test_it_is_refused_however_it_is_opened(tiny, folder, wrong):
    damage, *words = WRONG[wrong]
    damage(folder)
    assert_refused(tiny, folder, *words)


@both
def test_a_missing_tensor_is_named_as_the_model_names_it(tiny, folder):
    edit_weights(folder, lambda tensors: without(tensors, EMBEDDINGS[tiny.family]))
    assert_refused(tiny, folder, f"1 tensors are missing: {OF_THE_MODEL}.")


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_weight_that_is_not_finite_is_refused_where_weights_are_read(tiny, folder, value):
    def spoil(tensors):
        tensors[EMBEDDED][3, 4] = value
        return tensors

    edit_weights(folder, spoil)
    with pytest.raises(ArtifactError, match=re.escape(f"1 tensors hold NaN or infinite values: {OF_THE_MODEL}.")):
        load(folder, MODEL)
    with pytest.raises(ArtifactError, match=re.escape(f"{EMBEDDED}. Expected finite weights")):
        copied(tiny, folder, folder.parent / "out")


def test_the_vllm_engine_refuses_an_incomplete_checkpoint_before_it_starts(tiny, folder, monkeypatch):
    monkeypatch.setattr(vllm_engine, "prepare", lambda: None)
    monkeypatch.setattr(vllm_engine, "VllmEngine", lambda *_: "opened")
    monkeypatch.setattr(vllm_engine, "visible_gpus", list)
    assert vllm_engine.open_engine(folder, MODEL, {}) == "opened"
    edit_weights(folder, lambda tensors: {**tensors, "score.weight": torch.zeros(1, 32)})
    with pytest.raises(ArtifactError, match=r"unknown to this model: score\.weight"):
        vllm_engine.open_engine(folder, MODEL, {})
