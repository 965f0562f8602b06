import hashlib

import pytest
import torch

from dualread.errors import DataError
from dualread.models import prompts
from dualread.models.backbones.encode import prompt_sha256
from tests.architectures import both
from tests.tiny import image


def ask(question):
    return prompts.render("shared", question=question)


def test_the_digest_of_a_prompt_by_hand():
    # Each id is four bytes, the lowest first: 70,000 = 0x11170.
    by_hand = hashlib.sha256(bytes([1, 0, 0, 0, 0x70, 0x11, 1, 0])).hexdigest()
    assert prompt_sha256([1, 70_000]) == prompt_sha256((1, 70_000)) == by_hand


@both
def test_a_prompt_equals_the_processors_encoding_of_one_user_turn(tiny):
    _, encoder = tiny.load()
    text, picture = ask("What is the size of the lesion?"), image(0)
    ours = encoder.prompt(text, images=[picture], row="1")
    message = {"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": text}]}
    theirs = encoder.processor.apply_chat_template(
        [message], tokenize=True, return_dict=True, add_generation_prompt=True, return_tensors="pt"
    )
    assert theirs["input_ids"][0].tolist() == list(ours.token_ids)
    assert torch.equal(theirs["pixel_values"], ours.image["pixel_values"])
    [name] = ours.types
    assert torch.equal(theirs[name], encoder.batch([ours])[name])


def test_an_image_is_identified_by_its_content_and_not_by_its_path(tiny, tmp_path):
    _, encoder = tiny.load()
    path, copy = tmp_path / "0.png", tmp_path / "1.png"
    image(0).save(path)
    first = encoder.prompt(ask("Where?"), images=[path], row="1")
    copy.write_bytes(path.read_bytes())
    again = encoder.prompt(ask("Where?"), images=[copy], row="2")
    image(1).save(path)
    other = encoder.prompt(ask("Where?"), images=[path], row="3")
    assert first.image_sha256 == again.image_sha256 != other.image_sha256
    assert first.image["pixel_values"] is again.image["pixel_values"]  # computed once
    _, fresh = tiny.load()
    assert torch.equal(other.image["pixel_values"], fresh.prompt("?", images=[image(1)], row="3").image["pixel_values"])


@both
def test_later_images_and_texts_are_what_the_processor_alone_makes_of_them(tiny):
    # The processor makes the first prompt as a whole, and of later ones only the image, with equal results.
    _, encoder = tiny.load()
    with_text = []
    made = encoder._processed
    encoder._processed = lambda *given: with_text.append(given) or made(*given)
    for k in range(6):
        text, picture = ask(f"Where is {k % 2}?"), image(k).resize((32 + 8 * (k % 3), 32))
        ours = encoder.prompt(text, images=[picture], row="1")
        processed = made((("user", text),), [picture])
        assert (ours.token_ids, ours.types) == (processed.token_ids, processed.types)
        assert ours.image.keys() == processed.image.keys()
        assert all(torch.equal(ours.image[name], tensor) for name, tensor in processed.image.items())
    assert len(with_text) < 6


def test_a_processor_that_changes_an_image_beside_a_text_makes_every_prompt(tiny):
    _, encoder = tiny.load()
    call = type(encoder.processor).__call__

    class Brighter(type(encoder.processor)):
        def __call__(self, *given, **named):
            made = call(self, *given, **named)
            made["pixel_values"] = made["pixel_values"] + 1
            return made

    encoder.processor.__class__ = Brighter
    for k in range(3):
        ours = encoder.prompt(ask("Where?"), images=[image(k)], row="1")
        assert torch.equal(ours.image["pixel_values"], encoder.inputs("?", [image(k)])["pixel_values"])


def test_a_missing_image_is_named(tiny, tmp_path):
    _, encoder = tiny.load()
    with pytest.raises(
        DataError, match=r"gone\.png: no such image file; it cannot be read \(No such file or directory\)"
    ):
        encoder.prompt("?", images=[tmp_path / "gone.png"], row="1")


def test_an_image_that_the_processor_refuses_is_named_with_its_reason(tiny, monkeypatch):
    def refuse(*arguments, **named):
        raise ValueError("absolute aspect ratio must be smaller than 200, got 450.0")

    _, encoder = tiny.load()
    monkeypatch.setattr(encoder.processor, "apply_chat_template", refuse)
    with pytest.raises(
        DataError, match=r"^mine: the processor refuses its image \(ValueError: absolute .* Give another"
    ):
        encoder.prompt("Is it?", images=[image(9)], row="mine")


def test_a_batch_by_hand(tiny):
    """Prompts are padded on the left, completions on the right, and nothing attends to what is padded."""
    _, encoder = tiny.load()
    short = encoder.prompt(ask("Where?"), images=[image(0)], row="r")
    long = encoder.prompt(ask("What is the size of the lesion?"), images=[image(1)], row="r")
    made, pad = encoder.batch([short, long], [[60], [62, 63, 64]]), encoder.tokenizer.pad_token_id
    before = len(long.token_ids) - len(short.token_ids)
    assert before > 0
    assert made["input_ids"].tolist() == [
        [*[pad] * before, *short.token_ids, 60, pad, pad],
        [*long.token_ids, 62, 63, 64],
    ]
    assert made["attention_mask"].tolist() == [
        [*[0] * before, *[1] * len(short.token_ids), 1, 0, 0],
        [*[1] * len(long.token_ids), 1, 1, 1],
    ]


def test_a_prompt_that_is_too_long_is_refused_by_name(tiny):
    _, encoder = tiny.load()
    with pytest.raises(DataError, match=r"slake/test/7: the prompt has \d+ tokens.*max_prompt_tokens = 200"):
        encoder.prompt(ask("word " * 300), images=[image(0)], row="slake/test/7")


def test_a_question_that_contains_image_tokens_is_refused(tiny):
    _, encoder = tiny.load()
    smuggled = encoder.tokenizer.decode([encoder.image_token_id])
    with pytest.raises(DataError, match=r"slake/test/8: .* image tokens"):
        encoder.prompt(ask(f"What is {smuggled}?"), images=[image(0)], row="slake/test/8")
