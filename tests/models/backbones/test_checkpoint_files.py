"""Folders with missing, damaged or truncated files are refused, and the files are named."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.backbones.damage import EMBEDDINGS, OF_THE_MODEL, assert_refused, edit_json, edit_weights, shard


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


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn])
def test_quantized_weights_without_a_word_in_the_config_are_refused(tiny, folder, dtype):
    edit_weights(folder, lambda tensors: {**tensors, OF_THE_MODEL: torch.ones(4, 4).to(dtype)})
    assert_refused(tiny, folder, f"model.safetensors: 1 tensors are quantized: {OF_THE_MODEL} (")


def test_a_tensor_in_another_file_than_the_index_says_is_refused(tiny, folder):
    shard(folder)
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    name = EMBEDDINGS[tiny.family]
    other = next(file for file in set(index.values()) if file != index[name])
    twice = load_file(folder / other) | {name: load_file(folder / index[name])[name] * 2}
    save_file(twice, folder / other, metadata={"format": "pt"})
    assert_refused(tiny, folder, f"{other}: holds 1 tensors that are not its own: {name}.", index[name])


def test_an_index_without_metadata_is_refused(tiny, folder):
    shard(folder)
    edit_json(folder / "model.safetensors.index.json", lambda entries: entries.pop("metadata"))
    assert_refused(tiny, folder, "model.safetensors.index.json: no metadata. Expected a mapping.")
