import pytest
from hypothesis import given

from dualread.grading.options import WAYS, option_of
from tests.drawn import few, texts

ORGANS = ["liver", "kidney", "spleen", "heart"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("liver", 0),
        ("The Kidneys.", 1),
        ("A", 0),
        ("b", 1),
        ("(C)", 2),
        ("[d]", 3),
        ("( A )", 0),
        ("A.", 0),
        ("B)", 1),
        ("C:", 2),
        ("**D**", 3),
        ("**D.** heart", 3),
        ("A. liver", 0),
        ("A.liver", 0),
        ("(B) The kidney", 1),
        ("C - spleen", 2),
        ("C \u2013 spleen", 2),
        ("A) Liver, because it is large", 0),
        ("Option B", 1),
        ("The answer is C.", 2),
        ("The correct answer is: (D) heart", 3),
        ("Answer: A", 0),
        ("A. kidney", None),  # letter and text contradict each other
        ("C. difficile", None),
        ("A kidney", 1),  # an article
        ("a large mass", None),
        ("E", None),
        ("0", None),
        ("lung", None),
        ("liver or kidney", None),
        ("", None),
        ("...", None),
        ("Because", None),
    ],
)
def test_the_option_that_an_answer_names(text, place):
    assert option_of(text, ORGANS) == place


def test_the_text_of_an_option_comes_before_letters():
    assert option_of("A", ["B", "A"]) == 1  # blood groups, for instance
    assert option_of("C. difficile", ["E. coli", "C. difficile"]) == 1


def test_two_equal_options_are_told_apart_by_their_letters_only():
    assert option_of("lung", ["Lung", "lungs", "heart"]) is None
    assert option_of("lungs", ["Lung", "lungs", "heart"]) == 1  # as it is written
    assert option_of("B", ["Lung", "lungs", "heart"]) == 1


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
