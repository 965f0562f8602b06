"""Files of a checkpoint with absurd sizes, endless depth, or other kinds of files: a sentence, in a second (D5, D7)."""

import json
import os
import time

import pytest

from dualread.errors import DualReadError
from dualread.models.backbones.checkpoint import check, open_checkpoint
from tests import families
from tests.models.backbones.damage import edit_json

FILES = ["config.json", "generation_config.json", "processor_config.json", "tokenizer.json", "tokenizer_config.json"]
FILES += ["chat_template.json", "preprocessor_config.json", "model.safetensors.index.json", "adapter_config.json"]


def refused(folder, seconds=10.0):
    started = time.monotonic()
    with pytest.raises(DualReadError) as error:
        open_checkpoint(folder, families.SETTINGS)
    assert time.monotonic() - started < seconds
    return str(error.value)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"", b"null", b"1" * 10_000])
def test_a_file_that_is_none_is_a_sentence(folder, name, content):
    if name.startswith("chat_template"):
        (folder / "chat_template.jinja").unlink()
    (folder / name).write_bytes(content)
    assert len(refused(folder)) < 2000


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("text_config.num_hidden_layers", 10**9),
        ("text_config.num_hidden_layers", 10**6),
        ("text_config.num_hidden_layers", 1000),
        ("vision_config.depth", 10**9),
        ("text_config.max_window_layers", 10**7),
        ("text_config.hidden_size", 10**18),
        ("text_config.head_dim", 10**9),
        ("vision_config.patch_size", 10**9),
        ("text_config.num_attention_heads", 10**400),
        ("text_config.max_position_embeddings", 10**18),
    ],
)
def test_numbers_without_a_limit_are_refused_before_anything_is_built(folder, where, value):
    part, _, name = where.partition(".")
    edit_json(folder / "config.json", lambda entries: entries[part].update({name: value}))
    assert f"{where} is " in refused(folder, seconds=2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", {"shortest_edge": 10**9, "longest_edge": 10**10}),
        ("min_pixels", 10**9),
        ("temporal_patch_size", 10**9),
        ("merge_size", 10**6),
        ("patch_size", 10**9),
    ],
)
def test_a_small_image_stays_small(folder, name, value):
    def edit(entries):
        entries["image_processor"][name] = value

    edit_json(folder / "processor_config.json", edit)
    assert "of the image processor is" in refused(folder, seconds=5)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"])
def test_a_pipe_or_a_device_in_place_of_a_file_is_not_waited_for(folder, name):
    for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        (folder / name).unlink()
        make(folder / name)
        assert refused(folder)


@pytest.mark.parametrize(
    "names", [["../../x.safetensors"], ["/etc/passwd"], ["model.safetensors", "../mine/model.safetensors"]]
)
def test_weights_are_in_the_folder(folder, names):
    weights = {f"w{i}": name for i, name in enumerate(names)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weights}))
    with pytest.raises(DualReadError):
        check(folder, families.SETTINGS)
