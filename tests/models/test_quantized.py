"""Weights in 8 or 4 bits: what is rounded, and what float32 means for them."""

import sys

import numpy as np
import pytest
import torch
from bitsandbytes.functional import dequantize_4bit, int8_vectorwise_dequant

from dualread.errors import ConfigError
from dualread.models import own_pass
from dualread.models.backbones.checkpoint import load, open_checkpoint
from dualread.schema.backbones import Opening
from tests.architectures import both
from tests.tiny import MODEL, image


def settings(bits, dtype="float32"):
    return {**MODEL, "dtype": dtype, "quantization": {"module": "models.quantized", "bits": bits}}


def stands_for(layer):
    """The weights that a quantized layer stands for, by bitsandbytes' own functions."""
    if layer.weight.dtype == torch.int8:
        return int8_vectorwise_dequant(layer.weight.data, layer.weight.SCB)
    return dequantize_4bit(layer.weight.data, layer.weight.quant_state).float()


@both
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_in_float32_it_is_the_plain_model_with_the_rounded_weights(tiny, bits, dtype):
    opened = open_checkpoint(tiny.checkpoint, settings(bits, dtype))
    plain = load(tiny.checkpoint, {**MODEL, "dtype": dtype}).float()
    rounded = {n: m for n, m in opened.model.named_modules() if isinstance(m, torch.nn.Linear) and n != "lm_head"}
    assert all(not layer.weight.is_floating_point() for layer in rounded.values())
    assert opened.model.lm_head.weight.is_floating_point()
    for name, layer in rounded.items():
        found = stands_for(layer)
        assert 0 < (found - plain.get_submodule(name).weight).abs().max() < 0.1
        plain.get_submodule(name).weight.data = found
    inputs = opened.encoder.inputs("Is this a CT scan?", [image(0)])
    ids = opened.encoder.tokenizer("yes, upper left")["input_ids"]
    with torch.inference_mode():
        before = own_pass.log_probs(opened.model, inputs, ids, 0)
        with own_pass.in_float32(opened.model):
            exact = own_pass.log_probs(opened.model, inputs, ids, 0)
        after = own_pass.log_probs(opened.model, inputs, ids, 0)
        expected = own_pass.log_probs(plain, inputs, ids, 0)
    np.testing.assert_allclose(exact, expected, atol=2e-5)
    np.testing.assert_array_equal(before, after)


def test_only_answers_are_given_by_a_quantized_model():
    opening = Opening(dtype="float32", attention="sdpa", max_prompt_tokens=9, quantization={"bits": 4})
    assert opening.given() == {"dtype": "float32", "attention": "sdpa", "max_prompt_tokens": 9}
    assert opening.answering() == {**opening.given(), "quantization": {"module": "models.quantized", "bits": 4}}
    whole = Opening(dtype="float32", attention="sdpa", max_prompt_tokens=9)
    assert whole.answering() == whole.given()


def test_without_bitsandbytes_the_error_says_what_to_install(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes.nn.modules", None)
    with pytest.raises(ConfigError, match=r"bitsandbytes is not installed\. .*dualread\[quantization\]"):
        open_checkpoint(tiny.checkpoint, settings(4))
