"""Formats of completions beside those of the paper."""

import pytest

from dualread.grading.contracts.linguistic import PROBABILITIES
from dualread.grading.parse import Parsed
from tests.grading.contracts import parse


def said(confidence: str) -> str:
    return f"<answer>left lung</answer>\n<confidence>{confidence}</confidence>"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("likely", 0.7),
        (" Almost\n certain ", 0.95),
        ("ALMOST NO CHANCE", 0.02),
        ("Likely.", 0.7),
        ("about even !", 0.5),
    ],
)
def test_words_stand_for_probabilities(words, value):
    assert parse(said(words), "linguistic") == Parsed(answer="left lung", confidence=value, status="valid")


@pytest.mark.parametrize("words", ["", ".", "very likely", ".likely", "90", "likely, unlikely"])
def test_other_words_are_no_confidence(words):
    assert parse(said(words), "linguistic").status == "invalid_confidence"


def test_the_words_are_ordered_and_all_in_the_prompt():
    from dualread.models import prompts

    text = prompts.template("linguistic")
    assert all(words in text for words in PROBABILITIES)
    assert list(PROBABILITIES.values()) == sorted(PROBABILITIES.values(), reverse=True)


@pytest.mark.parametrize(
    ("stated", "value"),
    [
        ("70, 20, 5, 5", 0.7),
        ("70", 0.7),
        ("90, 60, 30, 20", 0.45),  # 90 of 200
        ("0, 0", 0.0),
        (" 100 ,100", 0.5),
        ("20, 70", 0.2),  # the first one belongs to the answer, whatever follows
    ],
)
def test_the_first_of_several_confidences_is_that_of_the_answer(stated, value):
    assert parse(said(stated), "top_k") == Parsed(answer="left lung", confidence=value, status="valid")


@pytest.mark.parametrize("stated", ["", "101, 3", "70 20", "70,", ".7, .2", "70; 20", ", ".join(["5"] * 11)])
def test_other_lists_are_no_confidences(stated):
    assert parse(said(stated), "top_k").status == "invalid_confidence"


@pytest.mark.parametrize("contract", ["linguistic", "top_k"])
def test_an_answer_twice_is_invalid_in_any_format(contract):
    assert parse(said("likely") + said("70"), contract).status == "invalid_both"
