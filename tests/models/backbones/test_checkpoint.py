"""Folders that are not a complete checkpoint are refused with a specific message; complete ones are accepted."""

import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests import tiny as builder
from tests.tiny import FAMILIES, MODEL

from dualread.errors import ArtifactError
from dualread.models.backbones.encode import open_checkpoint
from dualread.models.generation import vllm_engine
from dualread.specs.actors import CopyCheckpointSpec
from dualread.specs.parts import Plugin
from dualread.stages import copy_checkpoint

PARTS = {
    "qwen3_vl": {"text_config": "qwen3_vl_text", "vision_config": "qwen3_vl_vision"},
    "gemma3": {"text_config": "gemma3_text", "vision_config": "siglip_vision_model"},
}
# The name of one weight in the file and in the model.
EMBEDDINGS = {
    "qwen3_vl": "model.language_model.embed_tokens.weight",
    "gemma3": "language_model.model.embed_tokens.weight",
}
OF_THE_MODEL = "model.language_model.embed_tokens.weight"


@pytest.fixture
def folder(tiny, tmp_path):
    """A copy of the checkpoint that tests can damage."""
    return shutil.copytree(tiny.checkpoint, tmp_path / "mine")


def edit_weights(folder, edit):
    """Replace the weights {name: tensor} by the result of `edit`."""
    edited = edit(load_file(folder / "model.safetensors"))
    save_file(edited, folder / "model.safetensors", metadata={"format": "pt"})


def without(tensors, *names):
    return {name: tensor for name, tensor in tensors.items() if name not in names}


def edit_json(file, edit):
    entries = json.loads(file.read_text())
    edit(entries)
    file.write_text(json.dumps(entries))


def shard(folder, n_files=2):
    """Write the weights to several files with an index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    files = {name: f"model-{i % n_files + 1:05}-of-{n_files:05}.safetensors" for i, name in enumerate(names)}
    for file in set(files.values()):
        held = {name: tensors[name] for name in names if files[name] == file}
        save_file(held, folder / file, metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))


def copied(tiny, folder, out):
    """Copy the folder's checkpoint into a study."""
    out.mkdir()
    spec = CopyCheckpointSpec(family=Plugin(module=f"models.backbones.{tiny.family}"))
    return copy_checkpoint.compute(spec, {"source": folder}, out)


def refusals(tiny, folder):
    """Return the message of each way to copy or open the checkpoint; all of them have to refuse it."""
    said = []
    out = folder.parent / "out"
    for attempt in (
        lambda: copied(tiny, folder, out),
        lambda: tiny.backbone.check(folder),
        lambda: tiny.backbone.load_model(folder, MODEL),
        lambda: open_checkpoint(folder, tiny.backbone, MODEL),
    ):
        with pytest.raises(ArtifactError) as refused:
            attempt()
        said.append(str(refused.value))
    assert not list(out.iterdir())  # nothing is copied before the check
    return said


def assert_refused(tiny, folder, *expected):
    for said in refusals(tiny, folder):
        assert str(folder) in said
        for words in expected:
            assert words in said


def assert_accepted(tiny, folder):
    """The folder is accepted, and every weight equals that of the complete checkpoint."""
    copied(tiny, folder, folder.parent / "out")
    opened = open_checkpoint(folder.parent / "out" / "checkpoint", tiny.backbone, MODEL)
    whole = tiny.backbone.load_model(tiny.checkpoint, MODEL).state_dict()
    assert opened.model.state_dict().keys() == whole.keys()
    for name, weight in opened.model.state_dict().items():
        torch.testing.assert_close(weight, whole[name], atol=1e-2, rtol=1e-2)


# --- Refused: tensors


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
        tiny.backbone.load_model(folder, MODEL)
    with pytest.raises(ArtifactError, match=re.escape(f"{EMBEDDINGS[tiny.family]}. Expected finite weights")):
        copied(tiny, folder, folder.parent / "out")


# --- Refused: another model


@pytest.mark.parametrize("model_type", ["qwen2_5_vl", "gemma3_text", None])
def test_another_model_type_over_the_same_weights_is_refused(tiny, folder, model_type):
    edit_json(folder / "config.json", lambda config: config.update(model_type=model_type))
    assert_refused(tiny, folder, f"model_type is {model_type!r}, expected {tiny.family!r}")


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_a_part_of_another_model_is_refused(tiny, folder, part):
    edit_json(folder / "config.json", lambda config: config[part].update(model_type="clip_vision_model"))
    expected = PARTS[tiny.family][part]
    assert_refused(tiny, folder, f"{part}.model_type is 'clip_vision_model', expected {expected!r}")


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_a_part_of_an_unknown_model_is_refused(tiny, folder, part):
    edit_json(folder / "config.json", lambda config: config[part].update(model_type="my_model"))
    assert_refused(tiny, folder, "config.json: ", "my_model")


def test_the_other_backbone_is_refused(tiny, tmp_path):
    [other] = set(FAMILIES) - {tiny.family}
    foreign = builder.build(other, tmp_path / "mine").checkpoint
    assert_refused(tiny, foreign, f"model_type is {other!r}, expected {tiny.family!r}", "family")


def test_a_lora_folder_is_refused_with_instructions_for_merging(tiny, tmp_path):
    (adapter := tmp_path / "mine").mkdir()
    (adapter / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    save_file({"base_model.model.lm_head.lora_A.weight": torch.zeros(2, 2)}, adapter / "adapter_model.safetensors")
    assert_refused(tiny, adapter, "adapter", "merge_and_unload", "save_pretrained")


def test_an_adapter_beside_its_base_model_is_refused_too(tiny, folder):
    (folder / "adapter_config.json").write_text("{}")
    assert_refused(tiny, folder, "adapter_config.json", "merge_and_unload")


def test_quantized_weights_are_refused(tiny, folder):
    edit_json(folder / "config.json", lambda config: config.update(quantization_config={"quant_method": "awq"}))
    assert_refused(tiny, folder, "quantization_config", "dequantize")


# --- Refused: files


def test_a_missing_shard_is_named_with_what_it_held(tiny, folder):
    shard(folder, n_files=3)
    held = len(load_file(folder / "model-00002-of-00003.safetensors"))
    (folder / "model-00002-of-00003.safetensors").unlink()
    assert_refused(tiny, folder, "1 of its 3 files are not there: model-00002-of-00003.safetensors", f" {held} of ")


def test_an_index_and_a_single_file_that_it_does_not_name_are_refused(tiny, folder):
    shard(folder)
    shutil.copy(tiny.checkpoint / "model.safetensors", folder)
    assert_refused(tiny, folder, "model.safetensors, and model.safetensors.index.json that names other files")


@pytest.mark.parametrize("kept", [0, 5, 2000, -4])
def test_an_incomplete_download_is_named(tiny, folder, kept):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:kept])
    assert_refused(tiny, folder, f"model.safetensors: damaged or cut off at {len(content[:kept])} bytes", "Download")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_git_lfs_pointer_is_named(tiny, folder, name):
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 4321\n"
    (folder / name).write_text(pointer)
    assert_refused(tiny, folder, f"{name}: a Git LFS pointer", "git lfs pull")


@pytest.mark.parametrize("content", ["<html>", "[]", ""])
def test_a_config_that_is_not_a_json_object_is_refused(tiny, folder, content):
    (folder / "config.json").write_text(content)
    assert_refused(tiny, folder, "config.json: ", "JSON")


@pytest.mark.parametrize(
    "content", ["<html>", "[]", "{}", '{"weight_map": {}}', '{"weight_map": {"lm_head.weight": 1}}']
)
def test_an_index_that_names_no_files_is_refused(tiny, folder, content):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(content)
    assert_refused(tiny, folder, "model.safetensors.index.json: ")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_required_file_is_named(tiny, folder, name):
    (folder / name).unlink()
    assert_refused(tiny, folder, f"no file {name}", "Expected a checkpoint in safetensors")


# --- Refused: tokenizers


def assert_tokenizer_refused(tiny, folder, expected):
    out = folder.parent / "out"
    for attempt in (
        lambda: copied(tiny, folder, out),
        lambda: tiny.backbone.check(folder),
        lambda: tiny.backbone.load_processor(folder, MODEL),
    ):
        with pytest.raises(ArtifactError, match=re.escape(expected)):
            attempt()


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused(tiny, folder):
    tokenizer = tiny.backbone.load_processor(folder, MODEL).tokenizer
    n_embeddings = len(tokenizer)
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(folder)
    assert_tokenizer_refused(
        tiny, folder, f"has ids up to {n_embeddings}, expected less than the {n_embeddings} embeddings"
    )


def test_a_tokenizer_with_another_image_token_is_refused(tiny, folder):
    image_token = {"qwen3_vl": "<|image_pad|>", "gemma3": "<image_soft_token>"}[tiny.family]
    key = {"qwen3_vl": "image_token_id", "gemma3": "image_token_index"}[tiny.family]
    found = tiny.backbone.image_token_id(tiny.backbone.load_processor(folder, MODEL))
    edit_json(folder / "config.json", lambda config: config.update({key: 9}))
    assert_tokenizer_refused(tiny, folder, f"id of {image_token} is {found}, expected 9")


def test_a_missing_chat_template_is_named(tiny, folder):
    (folder / "chat_template.jinja").unlink()
    assert_tokenizer_refused(tiny, folder, "no chat template. Expected chat_template.jinja")


def test_a_broken_tokenizer_is_named(tiny, folder):
    (folder / "tokenizer.json").write_text('{"version": ')
    assert_tokenizer_refused(tiny, folder, "the tokenizer cannot be read (")


def test_a_checkpoint_without_an_end_of_turn_token_is_refused(tiny, folder):
    (folder / "generation_config.json").write_text("{}")
    with pytest.raises(ArtifactError, match="no eos_token_id"):
        open_checkpoint(folder, tiny.backbone, MODEL)


# --- Accepted


def test_a_whole_checkpoint_is_accepted(tiny, folder):
    assert_accepted(tiny, folder)


def test_a_sharded_checkpoint_is_accepted(tiny, folder):
    shard(folder)
    assert_accepted(tiny, folder)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_another_dtype_are_accepted(tiny, folder, dtype):
    edit_weights(folder, lambda tensors: {name: tensor.to(dtype) for name, tensor in tensors.items()})
    assert_accepted(tiny, folder)


def test_a_tied_head_may_be_stored_in_addition_to_the_embeddings(tiny, folder):
    edit_weights(folder, lambda tensors: {**tensors, "lm_head.weight": tensors[EMBEDDINGS[tiny.family]].clone()})
    assert_accepted(tiny, folder)


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


def test_more_embeddings_than_tokens_are_accepted(tiny, tmp_path):
    model = tiny.backbone.load_model(tiny.checkpoint, MODEL)
    model.resize_token_embeddings(512, mean_resizing=False)
    folder = shutil.copytree(tiny.checkpoint, tmp_path / "mine")
    model.save_pretrained(folder)
    copied(tiny, folder, tmp_path / "out")
    opened = open_checkpoint(folder, tiny.backbone, MODEL)
    assert opened.model.get_input_embeddings().num_embeddings == 512


# --- The vLLM engine


def test_the_vllm_engine_refuses_an_incomplete_checkpoint_before_it_starts(tiny, folder, monkeypatch):
    monkeypatch.setattr(vllm_engine, "prepare", lambda: None)
    monkeypatch.setattr(vllm_engine, "VllmEngine", lambda *_: "opened")
    monkeypatch.setattr(vllm_engine, "visible_gpus", list)
    assert vllm_engine.open_engine(folder, tiny.backbone, MODEL, {}) == "opened"
    edit_weights(folder, lambda tensors: {**tensors, "score.weight": torch.zeros(1, 32)})
    with pytest.raises(ArtifactError, match=r"unknown to this model: score\.weight"):
        vllm_engine.open_engine(folder, tiny.backbone, MODEL, {})
