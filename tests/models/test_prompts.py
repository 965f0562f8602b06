"""The prompts are the paper's, byte for byte; rendering is literal and in one pass."""

import hashlib
from pathlib import Path

import pytest

from dualread.errors import ConfigError
from dualread.models import prompts

SHA256 = {
    "shared": "5fb604e22f44ae3b24edae736e7cda92732feecaa842449e043c5af5aeb025b0",
    "p_true": "db49a38c7db6f16d9b6191c4b610e8fc11a64910af8d9a0ca88a22c0f5737e32",
    "self_probing": "bc38b842c553c409bb50f23a68682ea5b5d9eb4c58c661a0a0da1702bfa7c33c",
    "ensemble_2": "317437acd1622f2555d289c28ffcda4322856421c2f216dfb66b614f9f9f1d2e",
    "ensemble_3": "3dc5bbae7f24932acab976518727410ae08284e193e3f12c68ee9d4f6993198b",
    "ensemble_4": "380225eed246f1a28ec134160e80a4f4c87c7721f1f347b344c78260c6a0a018",
    "option_visible": "16bb709168c5ca95056dd38178c8e189e9a81999977c2a3cc9d098730ee0aafc",
    "vl_calibration": "a627716cd78c95bbc228e9f910b9bdd711e216e44faa2b80266062914c5697c2",
}

OPTIONS = ("Left lung", "Right lung", "Liver", "Heart")


def test_the_prompts_of_the_paper_are_pinned_byte_by_byte():
    assert set(prompts.names()) >= set(SHA256)
    for name, sha256 in SHA256.items():
        data = (Path(prompts.__file__).parent / f"{name}.txt").read_bytes()
        assert hashlib.sha256(data).hexdigest() == sha256, name
        assert prompts.template(name).encode() == data


def test_render_is_literal_and_in_one_pass():
    text = prompts.render("p_true", question="{ANSWER} {QUESTION} {x} \\1", answer="{QUESTION}")
    assert text.startswith("Question: {ANSWER} {QUESTION} {x} \\1\nProposed answer: {QUESTION}\nIs the")


def test_option_visible_is_placed_in_the_shared_prompt():
    text = prompts.render("option_visible", question="Which organ? {ANSWER}", options=OPTIONS)
    assert text.startswith(prompts.template("shared").removesuffix("{QUESTION}"))
    assert text.split("Question: ", 1)[1].split("\n") == [
        "Which organ? {ANSWER}",
        "A. Left lung",
        "B. Right lung",
        "C. Liver",
        "D. Heart",
        prompts.template("option_visible").split("\n")[-1],
    ]


def test_options_that_the_question_contains_are_not_repeated_and_some_are_not_all():
    instruction = prompts.template("option_visible").split("\n")[-1]
    for question in (
        "Which organ?\nA. Left lung\nB. Right lung\nC. Liver\nD. Heart",
        "Which organ? (A) left lung (B) right  lung (C) liver (D) heart",
        "Which organ? A: Left lung, B: Right lung, C: Liver, D: Heart",
    ):
        assert prompts.option_field(question, OPTIONS) == f"{question}\n{instruction}"
    for question in (
        "Which organ?",
        "Is it A. Left lung or B. Right lung?",
        "Left lung, right lung, liver, heart?",
        "A. Left lung B. Right lung C. Livers D. Hearts",
    ):
        assert "\nD. Heart\n" in prompts.option_field(question, OPTIONS)


def test_two_to_ten_options_have_letters_from_a():
    for n in range(2, 11):
        lines = prompts.option_field("Which?", [f"organ {k}" for k in range(n)]).split("\n")
        assert lines[1:-1] == [f"{'ABCDEFGHIJ'[k]}. organ {k}" for k in range(n)]
        assert lines[-1] == prompts.template("option_visible").split("\n")[-1]
        shown = "\n".join(lines[:-1])
        assert prompts.option_field(shown, [f"organ {k}" for k in range(n)]) == "\n".join(lines)
        assert prompts.shows_options(shown, [f"Organ  {k}" for k in range(n)])
        assert not prompts.shows_options(shown, [f"organ {k}" for k in range(n - 1)] + ["lung"])


def test_four_options_fill_the_template_of_the_paper():
    text = prompts.template("option_visible").replace("{QUESTION}", "Which?")
    for letter, option in zip("ABCD", OPTIONS, strict=True):
        text = text.replace(f"{{OPTION_TEXT_{letter}}}", option)
    assert prompts.option_field("Which?", OPTIONS) == text


def test_a_long_question_full_of_labels_is_searched_in_linear_time():
    assert not prompts.shows_options("A. a " * 20_000 + "B. b " * 20_000, [*"abcdefghi", "none"])


def test_errors_name_what_is_missing():
    with pytest.raises(ConfigError, match="Known: ensemble_2"):
        prompts.render("sharedd", question="?")
    with pytest.raises(ValueError, match=r"p_true needs a value for \{ANSWER\}"):
        prompts.render("p_true", question="?")
    with pytest.raises(ValueError, match=r"1 options \(\['a'\]\) for the question '\?'\. Expected 2 to 10"):
        prompts.render("option_visible", question="?", options=["a"])
    with pytest.raises(ValueError, match=r"11 options .* Expected 2 to 10"):
        prompts.option_field("?", list("abcdefghijk"))


def test_the_digest_covers_what_is_rendered():
    assert prompts.template_sha256("shared") == SHA256["shared"]
    both = "\n".join(prompts.template(name) for name in ("option_visible", "shared"))
    assert prompts.template_sha256("option_visible") == hashlib.sha256(both.encode()).hexdigest()
