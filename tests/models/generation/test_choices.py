import pytest
from tests.families import Scale
from tests.more_families import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from dualread.errors import ConfigError
from dualread.models.generation.choices import choices_of
from dualread.schema.answers import Choices as ChoicesSpec

STOP = frozenset({0})


def tokenizer(words: str, corpus: list[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE whose words are what the regular expression `words` says."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=3000,
        special_tokens=["<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(corpus * 50, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<end>")


COMPLETIONS = [f"<answer>left</answer>\n<confidence>{n}</confidence>" for n in range(101)] + ["Yes No yes no", " Yes"]
SPLIT = tokenizer(r"[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+|\s+", COMPLETIONS)  # every digit is a token
WHOLE = tokenizer(r"[A-Za-z]+|[0-9]+| ?[^\sA-Za-z0-9]+|\s+", COMPLETIONS)  # 42 and 100 are one token
STRADDLE = tokenizer(r"[A-Za-z]+|>?[0-9]|[^\sA-Za-z0-9]+|\s+", COMPLETIONS)  # `>4` is one token, then `2`
SPACED = PreTrainedTokenizerFast(  # puts a space before every text that it reads
    tokenizer_object=sentencepiece(Scale(texts=COMPLETIONS), ("<end>", "<unk>", "<s>")), eos_token="<end>"
)
TOKENIZERS = {"split": SPLIT, "whole": WHOLE, "straddle": STRADDLE}


def ids(which, text):
    return which(text, add_special_tokens=False)["input_ids"]


def stated_integers(which, completion, stop, low, high, thinking_ends=None):
    return choices_of(ChoicesSpec(integers=[low, high]), which, completion, stop, thinking_ends)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_prefix_and_choice_are_the_completion_that_states_the_integer(name):
    which = TOKENIZERS[name]
    made = stated_integers(which, [*ids(which, COMPLETIONS[42]), 0], STOP, 0, 100)
    assert list(made.variants) == [str(n) for n in range(101)]
    for number, [variant] in made.variants.items():
        whole = ids(which, COMPLETIONS[int(number)])
        assert [*made.prefix, *variant] == whole[: len(made.prefix) + len(variant)]
        said = which.decode([*made.prefix, *variant])
        assert said.startswith(f"<answer>left</answer>\n<confidence>{number}<")  # up to the first token of the end


def test_how_vocabularies_differ():
    assert {len(v[0]) for v in stated_integers(WHOLE, ids(WHOLE, COMPLETIONS[42]), STOP, 0, 100).variants.values()} == {
        2
    }
    split = stated_integers(SPLIT, ids(SPLIT, COMPLETIONS[42]), STOP, 0, 100)
    assert [len(split.variants[n][0]) for n in ("7", "42", "100")] == [2, 3, 4]
    straddled = stated_integers(STRADDLE, ids(STRADDLE, COMPLETIONS[42]), STOP, 0, 100)
    assert STRADDLE.decode(straddled.prefix).endswith("<confidence")


def test_a_completion_without_the_tag_gets_it_appended():
    made = stated_integers(SPLIT, [*ids(SPLIT, "<answer>left</answer>"), 0], STOP, 0, 100)
    assert SPLIT.decode(made.prefix) == "<answer>left</answer><confidence>"


def test_words_are_found_in_every_spelling_that_is_one_token():
    made = choices_of(ChoicesSpec(words=["Yes", "No"]), WHOLE, [], STOP)
    assert made.prefix == ()
    spelled = {word: {WHOLE.decode(v) for v in variants} for word, variants in made.variants.items()}
    assert spelled["Yes"] >= {"Yes", "yes"}
    assert spelled["No"] >= {"No", "no"}
    assert all(len(v) == 1 for variants in made.variants.values() for v in variants)
    with pytest.raises(ConfigError, match="'Perhaps' is not a single token"):
        choices_of(ChoicesSpec(words=["Yes", "Perhaps"]), WHOLE, [], STOP)


def test_a_space_before_every_text_is_in_no_choice():
    """In the completion, no space precedes the integer, and a line break may precede a word; by hand, over the pieces.

    Tokenized alone, 42 is `▁42` or `▁`, `42`: the integer after a space, which the model does not state.
    """
    assert SPACED.convert_ids_to_tokens(ids(SPACED, "42"))[0].startswith("▁")
    said = "<answer>left</answer>\n<confidence>42</confidence>"
    made = stated_integers(SPACED, [*ids(SPACED, said), 0], STOP, 0, 100)
    for number, [variant] in made.variants.items():
        pieces = SPACED.convert_ids_to_tokens(variant)
        assert "".join(pieces).startswith(f"{number}<")
        assert SPACED.decode([*made.prefix, *variant]).startswith(f"<answer>left</answer>\n<confidence>{number}<")
    appended = stated_integers(SPACED, ids(SPACED, "<answer>left</answer>"), STOP, 0, 100)
    assert SPACED.decode(appended.prefix) == "<answer>left</answer><confidence>"
    words = choices_of(ChoicesSpec(words=["Yes", "No"]), SPACED, [], STOP)
    assert {SPACED.convert_ids_to_tokens(token) for [token] in words.variants["Yes"]} == {"Yes", "yes", "▁Yes", "▁yes"}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_what_the_thinking_says_about_confidence_is_not_what_is_stated(name):
    which, thought = TOKENIZERS[name], "<confidence>7</confidence></think>"
    made = stated_integers(which, ids(which, thought + COMPLETIONS[42]), STOP, 0, 100, "</think>")
    said = which.decode([*made.prefix, *made.variants["5"][0]])
    assert said.startswith(f"{thought}<answer>left</answer>\n<confidence>5<")
    for text in (f"{thought}no tag", "<confidence>7</confidence> without an end"):
        appended = stated_integers(which, ids(which, text), STOP, 0, 100, "</think>")
        assert which.decode(appended.prefix) == f"{text}<confidence>"


@pytest.mark.parametrize("name", TOKENIZERS)
def test_options_stand_in_place_of_the_answer(name):
    which, options = TOKENIZERS[name], {"A": "left", "B": "Yes"}
    made = choices_of(ChoicesSpec(options=True), which, [*ids(which, COMPLETIONS[42]), 0], STOP, None, options)
    start = which.decode(made.prefix)
    spelled = {choice: [start + which.decode(v) for v in variants] for choice, variants in made.variants.items()}
    for choice, texts in (("A", ("left", "Left")), ("B", ("Yes", "yes"))):
        for text, expected in zip(spelled[choice], texts, strict=True):
            assert text.startswith(f"<answer>{expected}<")  # up to the first token of the closing tag
            assert f"<answer>{expected}</answer>".startswith(text)
    without = choices_of(ChoicesSpec(options=True), which, ids(which, "left"), STOP, None, options)
    assert which.decode(without.prefix) == "left<answer>"
