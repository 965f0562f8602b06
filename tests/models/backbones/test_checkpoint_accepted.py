"""Complete checkpoints are accepted in every layout that the hub and transformers have used."""

import re
import shutil

import pytest
import torch

from dualread.models.backbones.checkpoint import load, open_checkpoint
from tests.architectures import both
from tests.models.backbones.damage import EMBEDDINGS, assert_accepted, copied, edit_json, edit_weights, shard, without
from tests.tiny import MODEL


def weights(edit):
    return lambda folder: edit_weights(folder, edit)


def cast(dtype):
    return weights(lambda tensors: {name: tensor.to(dtype) for name, tensor in tensors.items()})


def with_head(family, *left_out):
    """A head that is tied to the embeddings, stored beside them, or in their place where they are left out."""
    stored = EMBEDDINGS[family]
    return weights(lambda tensors: {**without(tensors, *left_out), "lm_head.weight": tensors[stored].clone()})


def renamed(**parts):
    """Other names of the same weights, as checkpoints of the hub and other versions of transformers have them."""

    def rename(tensors):
        found = dict(tensors)
        for old, new in parts.items():
            found = {re.sub(f"^{old}[.]", f"{new}.", name): tensor for name, tensor in found.items()}
        assert found.keys() != tensors.keys()
        return found

    return weights(rename)


def with_buffer(name):
    return weights(lambda tensors: {**tensors, name: torch.arange(4)})


VISION = "vision_tower.vision_model"
# By family: what is done to the folder of a whole checkpoint.
LAYOUTS = {
    "qwen3_vl": {
        "whole": lambda folder: None,
        "sharded": shard,
        "nothing is quantized": lambda folder: edit_json(
            folder / "config.json", lambda entries: entries.update(quantization_config=None)
        ),
        "bfloat16": cast(torch.bfloat16),
        "float16": cast(torch.float16),
        "a tied head beside the embeddings": with_head("qwen3_vl"),
        "a tied head in place of the embeddings": with_head("qwen3_vl", EMBEDDINGS["qwen3_vl"]),
        "older names": renamed(**{"model.language_model": "language_model", "model.visual": "visual"}),
        "a buffer that is no longer stored": with_buffer("model.language_model.rotary_emb.inv_freq"),
        "the older name of the vision part": lambda folder: edit_json(
            folder / "config.json", lambda config: config["vision_config"].update(model_type="qwen3_vl")
        ),
    },
    "gemma3": {
        "whole": lambda folder: None,
        "sharded": shard,
        "a tied head beside the embeddings": with_head("gemma3"),
        "a tied head in place of the embeddings": with_head("gemma3", EMBEDDINGS["gemma3"]),
        "an older name of the vision part": renamed(vision_tower=VISION),
        "older names": renamed(**{"language_model.model": "model.language_model", "vision_tower": f"model.{VISION}"}),
        "newer names": renamed(
            **{"language_model.model": "model.language_model", "vision_tower": "model.vision_tower"},
            multi_modal_projector="model.multi_modal_projector",
        ),
        "a buffer that is no longer stored": with_buffer(f"{VISION}.embeddings.position_ids"),
    },
}
CASES = [
    pytest.param(f, change, id=f"{f}: {name}", marks=[pytest.mark.rest] * (f == "gemma3" and name != "older names"))
    for f, of in LAYOUTS.items()
    for name, change in of.items()
]


@pytest.mark.parametrize(("tiny", "change"), CASES, indirect=["tiny"])
def test_a_whole_checkpoint_is_accepted_in_every_layout(tiny, folder, change):
    change(folder)
    assert_accepted(tiny, folder)


@both
def test_more_embeddings_than_tokens_are_accepted(tiny, tmp_path):
    model = load(tiny.checkpoint, MODEL)
    model.resize_token_embeddings(512, mean_resizing=False)
    folder = shutil.copytree(tiny.checkpoint, tmp_path / "mine")
    model.save_pretrained(folder)
    copied(tiny, folder, tmp_path / "out")
    opened = open_checkpoint(folder, MODEL)
    assert opened.model.get_input_embeddings().num_embeddings == 512


def test_a_loaded_model_attends_without_cudnn(tiny):
    """On a GPU, cuDNN plans each new shape, and each token makes one."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    load(tiny.checkpoint, MODEL)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
