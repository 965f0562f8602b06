"""Tokenizers that do not fit the model are refused."""

import json
import re
import types

import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from transformers import AriaImageProcessorPil, CLIPImageProcessorPil, PreTrainedTokenizerFast, ProcessorMixin

from dualread.errors import ArtifactError
from dualread.models.backbones import processor
from dualread.models.backbones.checkpoint import check, open_checkpoint
from dualread.models.backbones.processor import load_processor
from tests import families
from tests.architectures import both
from tests.models.backbones.damage import copied, edit_json
from tests.tiny import MODEL, image


def assert_tokenizer_refused(tiny, folder, expected):
    out = folder.parent / "out"
    for attempt in (
        lambda: copied(tiny, folder, out),
        lambda: check(folder, MODEL),
        lambda: load_processor(folder, MODEL),
    ):
        with pytest.raises(ArtifactError, match=re.escape(expected)):
            attempt()


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused(tiny, folder):
    tokenizer = load_processor(folder, MODEL).tokenizer
    n_embeddings = len(tokenizer)
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(folder)
    assert_tokenizer_refused(
        tiny, folder, f"has ids up to {n_embeddings}, expected less than the {n_embeddings} embeddings"
    )


@both
def test_a_tokenizer_with_another_image_token_is_refused(tiny, folder):
    image_token = {"qwen3_vl": "<|image_pad|>", "gemma3": "<start_of_image>"}[tiny.family]
    key = {"qwen3_vl": "image_token_id", "gemma3": "image_token_index"}[tiny.family]
    found = load_processor(folder, MODEL).image_token_id
    edit_json(folder / "config.json", lambda config: config.update({key: 9}))
    assert_tokenizer_refused(tiny, folder, f"id of {image_token} is {found}, expected 9")


def unlink(name):
    return lambda folder: (folder / name).unlink()


def write(name, content):
    return lambda folder: (folder / name).write_text(content)


def template_in_json(content):
    def damage(folder):
        (folder / "chat_template.jinja").unlink()
        (folder / "chat_template.json").write_text(content)

    return damage


WRONG = {
    "no chat template": (unlink("chat_template.jinja"), "no chat template. Expected chat_template.jinja"),
    "half a chat template": (template_in_json("{"), "the chat template cannot be read ("),
    "a chat template that is a list": (template_in_json("[]"), "the chat template cannot be read ("),
    "a chat template of texts": (
        write("chat_template.jinja", "{{ messages[0].content[-1].text }}"),
        "the chat template cannot show an image and a text (ValueError",
    ),
    "a chat template of one text": (
        write("chat_template.jinja", "{{ '<user>' + messages[0].content }}"),
        "the chat template cannot show an image and a text (TypeError",
    ),
    "half a tokenizer": (write("tokenizer.json", '{"version": '), "the tokenizer cannot be read ("),
    "no image processor": (
        unlink("processor_config.json"),
        "no file preprocessor_config.json or processor_config.json.",
    ),
    "half an image processor": (write("preprocessor_config.json", "{"), "preprocessor_config.json: not valid JSON"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_damaged_file_is_named(tiny, folder, wrong):
    damage, words = WRONG[wrong]
    damage(folder)
    assert_tokenizer_refused(tiny, folder, words)


def as_json(folder, template):
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": template}))


def in_tokenizer(folder, template):
    edit_json(folder / "tokenizer_config.json", lambda config: config.update({"chat_template": template}))


def as_jinja(folder, template):
    (folder / "chat_template.jinja").write_text(template)


@pytest.mark.parametrize("places", [[as_jinja], [as_json], [in_tokenizer], [in_tokenizer, as_json]])
def test_a_chat_template_is_found_wherever_transformers_looks_for_one(tiny, folder, places):
    """The last of `places` has the template of the model, any other one a template that must not be used."""
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    for place in places:
        place(folder, template if place is places[-1] else "another one")
    processor = load_processor(folder, MODEL)
    assert processor.chat_template == template
    assert processor.tokenizer.chat_template == template


@pytest.mark.parametrize("ends", [None, -1, 10**6, [1, 10**6], "<eos>"])
def test_an_end_of_turn_token_outside_the_vocabulary_is_refused(tiny, folder, ends):
    edit_json(folder / "generation_config.json", lambda entries: entries.update(eos_token_id=ends))
    with pytest.raises(ArtifactError, match=r"eos_token_id in .* is .*, expected ids from 0 to \d+"):
        open_checkpoint(folder, MODEL)


def test_a_chat_template_that_writes_the_date_is_refused_unless_the_settings_give_it(tiny, folder):
    """Otherwise an answer would be replayed on another day after another prompt."""
    file = folder / "chat_template.jinja"
    dated = "{%- set day = day if day is defined else strftime_now('%d %b %Y') -%}" + file.read_text()
    file.write_text(dated)
    load_processor(folder, MODEL)  # a date that is not written changes nothing
    file.write_text(dated + "{{- day -}}")
    assert_tokenizer_refused(tiny, folder, "the chat template writes the date, so that prompts differ")
    load_processor(folder, {**MODEL, "chat_template": {"day": "1 May 2026"}})


def test_white_space_before_a_chat_template_is_no_date(tiny, folder):
    file = folder / "chat_template.jinja"
    file.write_text("\n  {{ '' }}" + file.read_text())
    rendered = load_processor(folder, MODEL).apply_chat_template(processor.turn("Where?"))
    assert rendered.startswith("\n  <")


def test_images_of_another_processor_are_no_fault_of_the_chat_template(tiny, folder):
    CLIPImageProcessorPil().save_pretrained(folder)
    edit_json(folder / "processor_config.json", lambda entries: entries.pop("image_processor"))
    name = type(load_processor(tiny.checkpoint, MODEL)).__name__
    assert_tokenizer_refused(
        tiny, folder, f"{name} cannot make a prompt with what CLIPImageProcessorPil makes of an image"
    )


def test_where_no_token_pads_the_one_that_ends_a_turn_does(tiny, folder):
    expected = tiny.open()
    edit_json(folder / "tokenizer_config.json", lambda entries: entries.pop("pad_token"))
    opened = open_checkpoint(folder, MODEL)
    assert opened.encoder.tokenizer.pad_token == opened.encoder.tokenizer.eos_token
    ids = [of.encoder.prompt("Where?", images=[image(0)], row="1").token_ids for of in (expected, opened)]
    assert ids[0] == ids[1]
    edit_json(folder / "tokenizer_config.json", lambda entries: entries.pop("eos_token"))
    assert_tokenizer_refused(tiny, folder, "the tokenizer has neither pad_token nor eos_token. Expected at least one.")


def test_a_processor_whose_package_is_not_installed_is_named(tiny, folder, monkeypatch):
    """As that of Pixtral, which imports torchvision; another download would not help."""

    def absent(name):
        raise ModuleNotFoundError("No module named 'torchvision'")

    monkeypatch.setattr(processor, "importlib", types.SimpleNamespace(import_module=absent))
    with pytest.raises(ArtifactError) as refused:
        load_processor(folder, MODEL)
    assert str(refused.value).endswith(
        " of transformers cannot be used (ModuleNotFoundError: No module named 'torchvision'). Expected a model that"
        " needs no other packages than those of envs/. Download or save the checkpoint again, or choose another model."
    )


def test_a_processor_with_other_media_in_any_order_is_made_without_them():
    """PerceptionLM has videos first, Gemma 4 names its parts, SmolVLM insists on videos."""
    images, tokenizer = CLIPImageProcessorPil(), PreTrainedTokenizerFast(tokenizer_object=Tokenizer(BPE()))

    class First(ProcessorMixin):
        def __init__(self, video_processor, image_processor, tokenizer, chat_template=None, steps=1):
            self.steps = steps
            super().__init__(video_processor, image_processor, tokenizer, chat_template=chat_template)

    class Named(ProcessorMixin):
        def __init__(self, feature_extractor, image_processor, tokenizer, chat_template=None):
            super().__init__(
                feature_extractor=feature_extractor,
                image_processor=image_processor,
                tokenizer=tokenizer,
                chat_template=chat_template,
            )

    for complete, given in ((First, [None, images, tokenizer]), (Named, [None, images, tokenizer])):
        made = processor.without_other_media(complete)(*given, chat_template="x")
        assert (made.image_processor, made.tokenizer, made.chat_template) == (images, tokenizer, "x")
        assert made.get_attributes() == ["image_processor", "tokenizer"]


def test_settings_of_a_processor_may_be_mappings(tmp_path):
    """Aria's counts the image tokens by the size of the image."""
    folder = families.build("llava", tmp_path / "mine")
    AriaImageProcessorPil(max_image_size=980).save_pretrained(folder)
    entries = {"processor_class": "AriaProcessor", "size_conversion": {"980": 3}}
    (folder / "processor_config.json").write_text(json.dumps(entries))
    assert load_processor(folder, MODEL).size_conversion == {980: 3}
