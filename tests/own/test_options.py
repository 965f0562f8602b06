"""Multiple choice in plain tables: what names one option is one answer; accuracies by hand."""

import pytest

import dualread

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
