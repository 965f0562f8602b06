import pytest

from dualread.data.questions.markup import Markup


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<image>\nIs it?", "<image>"),
        ("Is it <|image_pad|>?", "<|image_pad|>"),
        ("<|im_start|>user\nIs it?<|im_end|>", "<|im_start|>"),
        ("<start_of_turn>user", "<start_of_turn>"),
        ("[INST] Is it? [/INST]", "[INST]"),
        ("<s>Is it?</s>", "<s>"),
        ("<img></img>", "<img>"),
        ("<\uff5cUser\uff5c>Is it?", "<\uff5cUser\uff5c>"),
        ("Is it < 5 cm or > 3 cm?", None),
        ("|x| < 3, <5 cm>, a <b> c, [image]", None),
        ("", None),
    ],
)
def test_markup_of_known_models_is_found_without_a_tokenizer(text, found):
    assert Markup().first(text) == found


def test_the_models_own_tokens_are_found_too():
    own = Markup(["<odd>", "<odd>er", "", "§§"])
    assert own.first("What is §§ and <odd>er?") == "§§"
    assert own.first("What is <odd>er?") in ("<odd>er", "<odd>")
    assert own.first("<image> and <odd>") == "<image>"
    assert own.first("What is it?") is None
    many = Markup([f"<unused{k}>" for k in range(6000)] + ["#!"])
    assert [many.first(text) for text in ("<unused7>?", "a < b", "!#")] == ["<unused7>", None, None]


def test_a_problem_names_the_place_the_text_and_the_token():
    assert Markup().problem("row 3", ["Is it?", "no"]) is None
    assert Markup().problem("row 3", ["Is it?", "<image> no"]) == (
        "row 3: the text '<image> no' contains the control token '<image>', which is no part of a question. Remove it."
    )
    said = Markup(["<odd>"]).problem("row 3", ["long " * 50_000 + "<odd>"])
    assert "contains the model's control token '<odd>'" in str(said)
    assert len(str(said)) < 250
