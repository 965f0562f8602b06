"""Multiple choice in plain tables: what names one option is one answer; accuracies by hand."""

import pytest

import dualread
from dualread.errors import ConfigError, DataError

OPTIONS = {"A": ["liver", "left", "five"], "B": ["kidney", "right", "six"], "C": ["spleen", "both", "a#b"]}


def accuracy(answers, references, columns=("A", "B", "C"), **more):
    table = {**OPTIONS, "confidence": [0.9, 0.8, 0.7], "answer": answers, "reference_answer": references, **more}
    found = dualread.evaluate(table, replicates=0, options=columns)
    assert not found.unused
    return found.metrics.filter(subset="all", metric="accuracy")["estimate"][0]


@pytest.mark.parametrize(
    ("answers", "references"),
    [
        (["A", "(B)", "C."], ["liver", "right", "five"]),
        (["A. liver", "right", "C"], ["A", "B", "A"]),
        (["Liver", "right", "six"], [0, 1, 0]),  # 0: numbers from 0
        (["liver", "both", "six"], [1, 3, 1]),  # 3 of 3 options: numbers from 1
        ([0, 1, 2], ["A", "B", "A"]),
        (["liver", "right", None], ["liver", "right", "six"]),
        (["liver", "right", "a"], ["A", "B", "C"]),  # the option "a#b" is one text
        (["A", "B", "nonsense"], ["A", "B", "C"]),
    ],
)
def test_two_of_three_are_right(answers, references):
    assert accuracy(answers, references) == pytest.approx(2 / 3)


def test_options_may_be_lists_of_any_length():
    lists = [["liver", "kidney"], ["left", "right"], ["five", "six", "seven"]]
    table = {"confidence": [0.9, 0.8, 0.7], "answer": ["A", "right", "C"], "reference_answer": ["A", "B", "B"]}
    for column in (lists, [str(one) for one in lists]):
        found = dualread.evaluate({**table, "choices": column}, replicates=0, options="choices")
        assert found.metrics.filter(subset="all", metric="accuracy")["estimate"][0] == pytest.approx(2 / 3)
        assert found.notes == ["predictions: column 'reference_answer' names options by letter"]


@pytest.mark.parametrize(
    ("answers", "references", "message"),
    [
        (["A", "B", "C"], [1, 2, 1], "names options by number from 0 or number from 1, and nothing tells which"),
        ([1, 2, 1], ["A", "B", "C"], "column 'answer' names options by number from 0 or number from 1"),
        (["A", "B", "C"], ["A", "B", "heart"], "does not name an option in one way in all rows .'heart' names none"),
        (["A", "B", "C"], ["A", "right", "A"], r"in one way in all rows \(in several ways\)"),
    ],
)
def test_what_names_no_option_is_refused(answers, references, message):
    with pytest.raises(DataError, match=message):
        accuracy(answers, references)


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"--options D: predictions has no such column"):
        accuracy(["A"] * 3, ["A"] * 3, ("A", "D"))
