"""The text of a completion as it grows and is cut off, and the bytes of its tokens."""

from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from dualread.apps.serve.texts import GrowingText, TokenPieces
from dualread.models.streams import TokenEvent

TEXT = "At 37°C 日本: no, none."


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<eos>"]
    )
    tokenizer.train_from_iterator(["no, none"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", clean_up_tokenization_spaces=False)


def sentence_piece():
    """As Gemma's: spaces are U+2581, and characters that are no pieces are bytes."""
    pieces = ["<eos>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *"At37C:no,e.", "lesion"]
    tokenizer = Tokenizer(models.BPE({piece: k for k, piece in enumerate(pieces)}, [], byte_fallback=True))
    tokenizer.add_special_tokens(["<eos>"])
    parts = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.pre_tokenizer, tokenizer.decoder = (
        pre_tokenizers.Metaspace(prepend_scheme="never"),
        decoders.Sequence(parts),
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", clean_up_tokenization_spaces=False)


@pytest.fixture(params=[byte_level, sentence_piece])
def tokenizer(request):
    return request.param()


def grown(tokenizer, stop=(), text=TEXT, takes=True):
    """A text to which all tokens of `TEXT` and a stop token were added, and what was taken after each."""
    encoder = SimpleNamespace(decode=lambda ids: tokenizer.decode(ids, skip_special_tokens=True))
    growing = GrowingText(encoder, TokenPieces(tokenizer), stop)
    taken = []
    for token in [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]:
        if not growing.is_cut:
            growing.add(TokenEvent(name="", index=0, token=token, log_prob=-1.0))
            taken += [growing.take()] if takes else []
    return growing, taken


def whole(tokenizer, stop=()):
    """A text of which nothing was taken."""
    return grown(tokenizer, stop, takes=False)


def test_the_bytes_of_the_tokens_are_those_of_the_text(tokenizer):
    growing, taken = grown(tokenizer)
    pieces = TokenPieces(tokenizer)
    text, tokens = growing.take(TEXT)
    assert "".join(part for part, _ in taken) + text == TEXT
    streamed = [event for _, events in taken for event in events] + tokens
    assert streamed == whole(tokenizer)[0].take(TEXT)[1]  # without the special one
    said = [pieces.to_wire(event.token, event.log_prob) for event in streamed]
    assert b"".join(bytes(of["bytes"]) for of in said).decode() == TEXT
    assert "bytes:\\xb0" in [of["token"] for of in said]  # the second half of the degree sign
    assert not any("\ufffd" in part for part, _ in taken)


def test_only_a_piece_that_names_a_byte_is_one():
    tokenizer = sentence_piece()
    said = [TokenPieces(tokenizer).bytes_of(tokenizer.convert_tokens_to_ids(piece)) for piece in ("<0xB0>", "lesion")]
    assert said == [b"\xb0", b"lesion"]


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ((": no",), "At 37°C 日本"),
        (("none", "no, "), "At 37°C 日本: "),
        (("日本",), "At 37°C "),
        (("At",), ""),
        (("nox",), TEXT),
    ],
)
def test_a_text_of_stop_cuts_off_and_nothing_of_it_is_sent(tokenizer, stop, text):
    growing, taken = grown(tokenizer, stop)
    assert growing.is_cut is (text != TEXT)
    assert "".join(part for part, _ in taken) + growing.take(text)[0] == text
    pieces = TokenPieces(tokenizer)
    _, tokens = whole(tokenizer, stop)[0].take(text)
    shown = [pieces.bytes_of(event.token) for event in tokens]
    assert b"".join(shown).decode().startswith(text)
    assert len(b"".join(shown[:-1])) < len(text.encode()) or not shown  # the last one begins in the text
    if growing.is_cut:
        finished = growing.finished(SimpleNamespace(token_ids=(1, 2)))
        assert (finished.completion.text, finished.completion.finish_reason) == (text, "stop")


@pytest.mark.parametrize("log_prob", [float("nan"), float("-inf"), None])
def test_a_log_probability_that_is_no_number_is_very_low(tokenizer, log_prob):
    assert TokenPieces(tokenizer).to_wire(5, log_prob)["logprob"] == -9999.0
