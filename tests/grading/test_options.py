import pytest
from hypothesis import given

from dualread.grading.options import WAYS, name_of, option_of
from tests.drawn import few, texts

ORGANS = ["liver", "kidney", "spleen", "heart"]


# What names each of them, and what names none.
NAMED = {
    0: ["liver", "A", "( A )", "A.", "A. liver", "A.liver", "A) Liver, because it is large", "Answer: A"],
    1: ["The Kidneys.", "b", "B)", "(B) The kidney", "Option B", "A kidney"],  # an article
    2: ["(C)", "C:", "C - spleen", "C \u2013 spleen", "The answer is C."],
    3: ["[d]", "**D**", "**D.** heart", "The correct answer is: (D) heart"],
    None: [
        "A. kidney",  # letter and text contradict each other
        *("C. difficile", "a large mass", "E", "0", "lung", "liver or kidney", "", "...", "Because"),
    ],
}


@pytest.mark.parametrize(("text", "place"), [(text, place) for place, texts in NAMED.items() for text in texts])
def test_the_option_that_an_answer_names(text, place):
    assert option_of(text, ORGANS) == place


def test_the_text_of_an_option_comes_before_letters():
    assert option_of("A", ["B", "A"]) == 1  # blood groups, for instance
    assert option_of("C. difficile", ["E. coli", "C. difficile"]) == 1


def test_two_equal_options_are_told_apart_by_their_letters_only():
    assert option_of("lung", ["Lung", "lungs", "heart"]) is None
    assert option_of("lungs", ["Lung", "lungs", "heart"]) == 1  # as it is written
    assert option_of("B", ["Lung", "lungs", "heart"]) == 1


def test_an_option_is_named_by_its_text_and_by_its_letter_where_that_is_not_enough():
    assert name_of(ORGANS, 1) == "kidney"
    assert name_of(["Lung", "lungs", "heart"], 1) == "(B) lungs"  # two have one form
    assert name_of(["B", "A"], 0) == "(A) B"  # the letter of the other one
    assert name_of(["0", "z"], 0) == "0"


def test_an_option_that_is_not_there_has_no_letter():
    assert option_of("C", ["yes", "no", "", ""]) is None
    assert option_of("", ["yes", "no", "", ""]) is None


@pytest.mark.parametrize(
    ("golds", "ways"),
    [
        (["liver", "kidney"], ("text",)),
        (["A", "d"], ("letter",)),
        (["(A)", "B. kidney"], ("letter",)),
        (["0", "3"], ("number from 0",)),
        (["1", "4"], ("number from 1",)),
        (["1.0", "4.0"], ("number from 1",)),
        (["1", "2"], ("number from 0", "number from 1")),
        (["A", "liver"], ()),  # mixed
        (["5"], ()),
        (["-1"], ()),
        ([], ()),
    ],
)
def test_how_a_column_of_gold_answers_names_options(golds, ways):
    fit = [name for name, way in WAYS.items() if golds and all(way(gold, ORGANS) is not None for gold in golds)]
    assert tuple(fit) == ways


def test_numbers_that_are_texts_of_options_fit_in_several_ways():
    counts = ["1", "2", "3", "4"]
    assert WAYS["text"]("2", counts) == 1
    assert WAYS["number from 0"]("2", counts) == 2


@few
@given(texts)
def test_any_text_names_one_option_or_none(text):
    assert option_of(text, ORGANS) in (None, 0, 1, 2, 3)
    assert option_of(text, []) is None
