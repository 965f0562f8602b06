"""Prompts are never cut, padded or drawn, whatever the files of a tokenizer keep of the calls of a training."""

import json
import re

import pytest
from tokenizers import Tokenizer

from dualread.apps.score.loading import checkpoint_digests
from dualread.errors import ArtifactError
from dualread.models.backbones.checkpoint import copy_processor, open_checkpoint
from dualread.models.backbones.processor import load_processor
from dualread.models.backbones.tokenizer import forget_calls, without_calls
from dualread.models.probe import probe
from tests import families
from tests.architectures import others_in_rest
from tests.models.backbones.damage import copied, edit_json
from tests.tiny import MODEL, image

FAMILIES = ("qwen2_5_vl", "llava")
SETTINGS = families.SETTINGS | {"max_prompt_tokens": 400}
QUESTION = "Is there a lesion in the upper left of the image, and what is its size?\nA. small\nB. large"

TRUNCATION = {"direction": "Right", "max_length": 30, "strategy": "LongestFirst", "stride": 0}
PADDING = {"strategy": {"Fixed": 300}, "direction": "Left", "pad_to_multiple_of": None}
PADDING |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}

# What a training or a quantization leaves in the files, by the file's name.
KEPT = {
    "truncation": {"tokenizer.json": {"truncation": TRUNCATION}},
    "truncation on the left": {"tokenizer.json": {"truncation": TRUNCATION | {"direction": "Left"}}},
    "padding": {"tokenizer.json": {"padding": PADDING}},
    "both": {"tokenizer.json": {"truncation": TRUNCATION, "padding": PADDING}},
    "dropout": {"tokenizer.json": {"model": {"dropout": 0.3}}},
    "max_length": {"tokenizer_config.json": {"max_length": 30}},
    "saved by transformers": {
        "tokenizer_config.json": {
            **{"max_length": 30, "stride": 0, "truncation_side": "right", "truncation_strategy": "longest_first"},
            "pad_to_multiple_of": 64,
        }
    },
    "truncation=True": {"tokenizer_config.json": {"truncation": True, "model_max_length": 30}},
    "padding=max_length": {"tokenizer_config.json": {"padding": "max_length", "max_length": 300}},
    "of the processor": {"processor_config.json": {"text_kwargs": {"truncation": True, "max_length": 30}}},
}


def keep(folder, kept):
    """Write further entries into files of a checkpoint."""
    for name, entries in kept.items():

        def edit(found, entries=entries):
            for key, value in entries.items():
                found[key] = found[key] | value if key == "model" else value

        edit_json(folder / name, edit)


@pytest.fixture(scope="module", params=others_in_rest(FAMILIES))
def plain(request, tmp_path_factory):
    return families.build(request.param, tmp_path_factory.mktemp("plain") / request.param)


def ids_of(folder):
    return open_checkpoint(folder, SETTINGS).encoder.prompt(QUESTION, images=[image(0)], row="1").token_ids


@pytest.fixture(scope="module")
def whole(plain):
    """The ids of a prompt of the checkpoint that keeps nothing of calls."""
    return ids_of(plain)


def end_of_question(folder, found):
    """Return the position behind the question's last token, whose ids the package tokenizers gives."""
    alone = Tokenizer.from_file(str(folder / "tokenizer.json"))
    alone.no_truncation()
    alone.no_padding()
    words = alone.encode(QUESTION.partition("lesion")[2], add_special_tokens=False).ids[1:]
    start = next(i for i in range(len(found)) if list(found[i : i + len(words)]) == words)
    return start + len(words)


@pytest.mark.parametrize("kept", KEPT)
def test_what_files_keep_of_calls_changes_no_prompt(plain, whole, copy_of, kept):
    folder = copy_of(plain)
    keep(folder, KEPT[kept])
    assert ids_of(folder) == whole
    assert end_of_question(plain, whole) < len(whole)  # the assistant's turn is there, too


@pytest.mark.parametrize("kept", ["both", "saved by transformers", "dropout"])
def test_a_copy_keeps_nothing_of_calls_so_that_no_other_program_cuts(plain, copy_of, tmp_path, kept):
    folder = copy_of(plain)
    keep(folder, KEPT[kept])
    (tmp_path / "copy").mkdir()
    copy_processor(folder, tmp_path / "copy")
    found = Tokenizer.from_file(str(tmp_path / "copy" / "tokenizer.json"))
    assert found.truncation is None
    assert found.padding is None
    entries = json.loads((tmp_path / "copy" / "tokenizer_config.json").read_text())
    assert not {"max_length", "stride", "truncation_strategy"} & entries.keys()
    # The original is what the copy is: a reader that was fitted on one may score with the other.
    own = checkpoint_digests(folder)
    assert {name: sha for name, sha in checkpoint_digests(tmp_path / "copy").items() if own[name] != sha} == {}


def test_a_checkpoint_without_any_is_copied_byte_by_byte(plain, copy_of):
    folder = copy_of(plain)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    forget_calls(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("content", [b"{", b"[]", b'"text"', b"[" * 100_000, b'{"model": 1}', b"\xff"])
def test_other_content_stays_as_it_is(content):
    assert without_calls("tokenizer.json", content) == content
    assert without_calls("tokenizer_config.json", content) == content


def test_an_actor_of_a_study_has_no_truncation(tiny, folder, tmp_path):
    keep(folder, {"tokenizer.json": {"truncation": TRUNCATION}})
    copied(tiny, folder, tmp_path / "out")
    assert Tokenizer.from_file(str(tmp_path / "out/checkpoint/tokenizer.json")).truncation is None
    whole = tiny.open().encoder.prompt(QUESTION, images=[image(0)], row="1").token_ids
    for checkpoint in (folder, tmp_path / "out/checkpoint"):
        ids = open_checkpoint(checkpoint, MODEL).encoder.prompt(QUESTION, images=[image(0)], row="1").token_ids
        assert ids == whole


def test_the_probe_notices_a_tokenizer_that_cuts(plain):
    """Its reference is the package tokenizers alone, which cuts nothing."""
    opened = open_checkpoint(plain, SETTINGS)
    tokenizer = opened.encoder.tokenizer
    own = type(tokenizer).__call__

    class Cutting(type(tokenizer)):
        def __call__(self, *given, **named):
            return own(self, *given, **{**named, "truncation": True, "max_length": 4000})

    tokenizer.__class__ = Cutting
    with pytest.raises(ArtifactError, match="of a question of 1000 words has not all its tokens"):
        probe(opened, "cut")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("p['text']", "p['text'][:100]", "changes or cuts the text of a long question"),
        ("p['text']", "p['text'] | truncate(255)", "changes or cuts the text of a long question"),
        ("p['text']", "p['text'] | lower | replace('\n', ' ')", "changes or cuts the text of a long question"),
        ("p['text']", "p['text'] + (range(10 ** 4) | random | string)", "writes another prompt each time"),
    ],
)
def test_a_template_that_changes_questions_is_refused(plain, copy_of, old, new, problem):
    folder = copy_of(plain)
    file = folder / "chat_template.jinja"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ArtifactError, match=re.escape(f"the chat template {problem}")):
        load_processor(folder, SETTINGS)


def test_a_template_that_trims_questions_is_accepted(plain, copy_of):
    folder = copy_of(plain)
    file = folder / "chat_template.jinja"
    file.write_text(file.read_text().replace("p['text']", "p['text'] | trim"))
    assert ids_of(folder) == ids_of(plain)


def test_a_tokenizer_that_ends_prompts_is_refused(copy_of, tmp_path):
    folder = families.build("llava", tmp_path / "mine")

    def end(entries):
        [pieces] = [entries["post_processor"]["single"]]
        pieces.append({"SpecialToken": {"id": "</s>", "type_id": 0}})
        entries["post_processor"]["special_tokens"]["</s>"] = {"id": "</s>", "ids": [2], "tokens": ["</s>"]}

    edit_json(folder / "tokenizer.json", end)
    with pytest.raises(ArtifactError, match="the tokenizer adds </s> to the end of a prompt"):
        load_processor(folder, SETTINGS)


def test_pixel_limits_of_a_file_do_not_win_over_those_of_the_settings(copy_of, tmp_path):
    """As Qwen2.5-VL is on the hub: min_pixels 3136, max_pixels 12845056."""
    folder = families.build("qwen2_5_vl", tmp_path / "mine")
    settings = SETTINGS | {"min_pixels": 1024, "max_pixels": 1024}
    whole = load_processor(folder, settings).image_processor.size
    size = {"shortest_edge": 4096, "longest_edge": 8192}
    for entries in ({"min_pixels": 3136, "max_pixels": 12845056}, {"max_pixels": 10**9}, {"size": size}):
        edit_json(folder / "processor_config.json", lambda found, more=entries: found["image_processor"].update(more))
        edit_json(folder / "tokenizer_config.json", lambda found, more=entries: found.update(more))
        processor = load_processor(folder, settings)
        assert processor.image_processor.size == whole
        encoder = open_checkpoint(folder, settings).encoder
        assert encoder.prompt("?", images=[image(0)], row="1").image["pixel_values"].shape[0] == 16  # 32 x 32 / 8 / 8
    edit_json(folder / "processor_config.json", lambda found: found["image_processor"].update(do_resize=False))
    with pytest.raises(ArtifactError, match="does not resize images"):
        load_processor(folder, settings)
