"""Checkpoints of another model, adapters and quantized weights are refused with what to do."""

import pytest
import torch
from safetensors.torch import save_file

from tests.models.backbones.damage import assert_refused, edit_json


@pytest.mark.parametrize("model_type", ["gemma3_text", "resnet", "my_model", None])
def test_a_model_type_that_does_not_read_images_and_text_is_refused(tiny, folder, model_type):
    edit_json(folder / "config.json", lambda config: config.update(model_type=model_type))
    assert_refused(tiny, folder, f"model_type is {model_type!r}. Expected a model that transformers opens with")


@pytest.mark.parametrize("model_type", ["qwen2_5_vl", "llava"])
def test_another_model_type_over_the_same_weights_is_refused(tiny, folder, model_type):
    edit_json(folder / "config.json", lambda config: config.update(model_type=model_type))
    assert_refused(tiny, folder)


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_a_part_of_another_model_is_refused(tiny, folder, part):
    edit_json(folder / "config.json", lambda config: config[part].update(model_type="clip_vision_model"))
    assert_refused(tiny, folder)


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_a_part_of_an_unknown_model_is_refused(tiny, folder, part):
    edit_json(folder / "config.json", lambda config: config[part].update(model_type="my_model"))
    assert_refused(tiny, folder, "config.json: ", "my_model")


def test_a_lora_folder_is_no_whole_model_and_the_refusal_says_how_to_name_it(tiny, tmp_path):
    (adapter := tmp_path / "mine").mkdir()
    (adapter / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    save_file({"base_model.model.lm_head.lora_A.weight": torch.zeros(2, 2)}, adapter / "adapter_model.safetensors")
    assert_refused(tiny, adapter, "adapter", "`adapter: {folder: ...}` with its `base`", "--base")


def test_an_adapter_beside_its_base_model_is_refused_too(tiny, folder):
    (folder / "adapter_config.json").write_text("{}")
    assert_refused(tiny, folder, "adapter_config.json", "--base")


def test_quantized_weights_are_refused(tiny, folder):
    edit_json(folder / "config.json", lambda config: config.update(quantization_config={"quant_method": "awq"}))
    assert_refused(tiny, folder, "quantization_config", "dequantize")
