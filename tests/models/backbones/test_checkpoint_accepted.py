"""Complete checkpoints are accepted in every layout that the hub and transformers have used."""

import re
import shutil

import pytest
import torch

from dualread.models.backbones.checkpoint import load, open_checkpoint
from tests.architectures import both
from tests.models.backbones.damage import EMBEDDINGS, assert_accepted, copied, edit_json, edit_weights, shard, without
from tests.tiny import FAMILIES, MODEL


@both
def test_a_whole_checkpoint_is_accepted(tiny, folder):
    assert_accepted(tiny, folder)


@both
def test_a_sharded_checkpoint_is_accepted(tiny, folder):
    shard(folder)
    assert_accepted(tiny, folder)


def test_a_config_that_says_that_nothing_is_quantized_is_accepted(tiny, folder):
    edit_json(folder / "config.json", lambda entries: entries.update(quantization_config=None))
    assert_accepted(tiny, folder)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_another_dtype_are_accepted(tiny, folder, dtype):
    edit_weights(folder, lambda tensors: {name: tensor.to(dtype) for name, tensor in tensors.items()})
    assert_accepted(tiny, folder)


@both
def test_a_tied_head_may_be_stored_in_addition_to_the_embeddings(tiny, folder):
    edit_weights(folder, lambda tensors: {**tensors, "lm_head.weight": tensors[EMBEDDINGS[tiny.family]].clone()})
    assert_accepted(tiny, folder)


@both
def test_a_tied_head_may_be_stored_instead_of_the_embeddings(tiny, folder):
    stored = EMBEDDINGS[tiny.family]
    edit_weights(folder, lambda tensors: {**without(tensors, stored), "lm_head.weight": tensors[stored]})
    assert_accepted(tiny, folder)


# Names of the same weights in checkpoints of the hub and in other versions of transformers.
LAYOUTS = {
    "qwen3_vl": [
        [("model.language_model.", "language_model."), ("model.visual.", "visual.")],
    ],
    "gemma3": [
        [("vision_tower.", "vision_tower.vision_model.")],
        [("language_model.model.", "model.language_model."), ("vision_tower.", "model.vision_tower.vision_model.")],
        [
            ("language_model.model.", "model.language_model."),
            ("vision_tower.", "model.vision_tower."),
            ("multi_modal_projector.", "model.multi_modal_projector."),
        ],
    ],
}


@pytest.mark.parametrize(("tiny", "layout"), [(f, i) for f in FAMILIES for i in LAYOUTS[f]], indirect=["tiny"])
def test_older_names_of_the_same_weights_are_accepted(tiny, layout, folder):
    def rename(tensors):
        renamed = dict(tensors)
        for old, new in layout:
            renamed = {re.sub(f"^{re.escape(old)}", new, name): tensor for name, tensor in renamed.items()}
        assert renamed.keys() != tensors.keys()
        return renamed

    edit_weights(folder, rename)
    assert_accepted(tiny, folder)


@pytest.mark.parametrize(
    ("tiny", "name"),
    [
        ("qwen3_vl", "model.language_model.rotary_emb.inv_freq"),
        ("gemma3", "vision_tower.vision_model.embeddings.position_ids"),
    ],
    indirect=["tiny"],
)
def test_buffers_that_transformers_no_longer_stores_are_accepted(tiny, name, folder):
    edit_weights(folder, lambda tensors: {**tensors, name: torch.arange(4)})
    assert_accepted(tiny, folder)


@pytest.mark.parametrize("tiny", ["qwen3_vl"], indirect=True)
def test_the_older_name_of_qwens_vision_part_is_accepted(tiny, folder):
    edit_json(folder / "config.json", lambda config: config["vision_config"].update(model_type="qwen3_vl"))
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
