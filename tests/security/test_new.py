"""What `dualread new` reads of a checkpoint and of a table that mean harm: a sentence, or plain text in one line."""

import json
import struct
from pathlib import Path

import pytest

from dualread.errors import ArtifactError
from dualread.models.backbones.user_model import look
from tests.apps.new.checkpoints import QWEN, checkpoint


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "[]",
        '"text"',
        json.dumps(QWEN | {"model_type": ["x"]}),
        json.dumps(QWEN | {"text_config": 3}),
        json.dumps(QWEN | {"text_config": QWEN["text_config"] | {"num_attention_heads": 0, "head_dim": None}}),
        json.dumps(QWEN | {"text_config": QWEN["text_config"] | {"num_hidden_layers": 10**20}}),
        json.dumps(QWEN | {"vision_config": {"patch_size": "\x1b[31m"}}),
    ],
)
def test_a_config_of_any_form_is_refused_in_a_sentence(tmp_path, content):
    folder = checkpoint(tmp_path / "mine")
    (folder / "config.json").write_text(content)
    with pytest.raises(ArtifactError) as error:
        look(str(folder))
    assert str(folder) in str(error.value)
    assert len(str(error.value)) < 1500


@pytest.mark.parametrize("content", [struct.pack("<Q", 2**62), struct.pack("<Q", 9) + b'{"a": []}', b"", b"\0" * 8])
def test_a_head_of_weights_of_any_form_is_refused_without_reading_what_it_promises(tmp_path, content):
    folder = checkpoint(tmp_path / "mine")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"model\.safetensors: damaged or cut off"):
        look(str(folder))


@pytest.mark.parametrize("make", [Path.mkdir, lambda file: file.symlink_to(file.with_name("removed"))])
def test_weights_that_are_no_file_are_refused_in_a_sentence(tmp_path, make):
    folder = checkpoint(tmp_path / "mine")
    (folder / "model.safetensors").unlink()
    make(folder / "model.safetensors")
    with pytest.raises(ArtifactError, match=r"model\.safetensors: cannot be read"):
        look(str(folder))


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", '{"added_tokens": 3}', '{"added_tokens": [3]}', "\xff"])
def test_a_tokenizer_of_any_form_is_refused_in_a_sentence(tmp_path, content):
    folder = checkpoint(tmp_path / "mine")
    (folder / "tokenizer.json").write_text(content, encoding="latin-1")
    with pytest.raises(ArtifactError, match=r"tokenizer\.json: not a tokenizer"):
        look(str(folder))


def test_code_in_a_checkpoint_is_not_run_for_its_limits(tmp_path):
    folder = checkpoint(tmp_path / "mine")
    owned = tmp_path / "owned"
    named = {"image_processor_type": "Mine", "auto_map": {"AutoImageProcessor": "mine.Mine"}}
    (folder / "preprocessor_config.json").write_text(json.dumps(named))
    (folder / "mine.py").write_text(f"open({str(owned)!r}, 'w')\nclass Mine: pass\n")
    with pytest.raises(ArtifactError):
        look(str(folder))
    assert not owned.exists()


def test_words_of_a_checkpoint_stay_in_their_line(tmp_path):
    found = look(str(checkpoint(tmp_path / "a\nseeds: [1]\x1b[31m")))
    assert found.label == "a seeds: [1] [31m"
    assert found.settings_from.isprintable()
