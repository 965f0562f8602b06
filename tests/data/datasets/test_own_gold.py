"""Gold answers that are letters, numbers or booleans: read where one way fits all rows, else refused by name."""

import json

import pytest

from dualread.data.datasets.table import load_rows
from dualread.errors import DataError

ORGANS = ["liver", "lung", "heart", "kidney"]


def _loaded(folder, *rows, **settings):
    """The rows of a table; each row is (options, gold) or (options, gold, question)."""
    records = [
        {"question": "".join(row[2:]) or f"Which of these is it, {k}?", "reference_answers": row[1], "image": "a.png"}
        | ({"options": row[0]} if row[0] else {})
        for k, row in enumerate(rows)
    ]
    (folder / "test.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return load_rows(folder, "test", settings)


def _golds(*given, **settings):
    return [row.reference_answers for row in _loaded(*given, **settings).rows]


@pytest.mark.parametrize("golds", [("A", "D"), ("a", "d"), ("(A)", "D."), ("A. liver", "D) kidney"), ("Option A", "D")])
def test_letters_become_the_texts_of_their_options_and_are_counted(tmp_path, golds):
    loaded = _loaded(tmp_path, (ORGANS, golds[0]), (ORGANS, golds[1]), ([], "CT"))
    assert [row.reference_answers for row in loaded.rows] == [("liver",), ("kidney",), ("CT",)]
    assert [(step.step, step.kept, step.reason) for step in loaded.audit[1:]] == [
        ("form", 3, "2 rows: the gold answer names an option by its letter: its text is taken")
    ]


def test_labels_of_options_are_taken_off(tmp_path):
    labeled = ["A. liver", "B. lung", "C. heart"]
    loaded = _loaded(tmp_path, (labeled, "B"), (labeled, "A"))
    assert [row.reference_answers for row in loaded.rows] == [("lung",), ("liver",)]
    assert loaded.rows[0].options == ("liver", "lung", "heart")
    assert _golds(tmp_path, (labeled, "heart"), (labeled, "liver")) == [("heart",), ("liver",)]


@pytest.mark.parametrize(
    ("golds", "expected"),
    [
        (("0", "2"), ("liver", "heart")),  # 0 is no number from 1
        ((0, 3), ("liver", "kidney")),
        ((4, 1), ("kidney", "liver")),  # 4 is no number from 0
        ((4.0, 1.0), ("kidney", "liver")),
    ],
)
def test_numbers_are_read_where_the_first_or_the_last_occurs(tmp_path, golds, expected):
    assert _golds(tmp_path, *((ORGANS, gold) for gold in golds)) == [(text,) for text in expected]


def test_a_number_that_is_the_text_of_another_option_is_asked_for(tmp_path):
    rows = [(["1", "2", "3"], "2"), (ORGANS, "0")]
    with pytest.raises(DataError, match=r"'2' names '3' by its number, from 0, and '2' by its text"):
        _loaded(tmp_path, *rows)
    assert _golds(tmp_path, *rows, gold="number from 0") == [("3",), ("liver",)]
    same = [(["0", "1", "2"], "2"), (["0", "1", "2"], "0")]  # here the number and the text are one option
    assert _golds(tmp_path, *same) == [("2",), ("0",)]


def test_synonyms_may_stand_beside_the_text_of_an_option(tmp_path):
    assert _golds(tmp_path, (["CT", "MRI"], ["CT", "computed tomography"])) == [("CT", "computed tomography")]
    assert _golds(tmp_path, (ORGANS, ["A", "B"]), (ORGANS, ["D"])) == [("liver", "lung"), ("kidney",)]
    with pytest.raises(DataError, match="line 1: the gold answer is 'A' or 'the right lung'"):
        _loaded(tmp_path, (ORGANS, ["A", "the right lung"]), (ORGANS, ["D"]))


@pytest.mark.parametrize("values", [(True, False), ("True", "False"), ("TRUE", ["false"])])
def test_true_and_false_are_asked_for_where_the_question_does_not(tmp_path, values):
    rows = [([], value, "Is there a lesion?") for value in values]
    with pytest.raises(DataError, match=r"line 1: the gold answer is 'True', and the question asks for neither(?i:.*)"):
        _loaded(tmp_path, (rows[0][0], "True", rows[0][2]), *rows)
    loaded = _loaded(tmp_path, *rows, booleans="yes/no")
    assert [row.reference_answers for row in loaded.rows] == [("yes",), ("no",)]
    assert {row.answer_type for row in loaded.rows} == {"closed"}
    assert "2 rows: the gold answer is True or False: yes or no is taken" in [step.reason for step in loaded.audit]
    kept = _golds(tmp_path, *rows, booleans="true/false")
    assert [gold.lower() for (gold,) in kept] == ["true", "false"]


def test_true_and_false_stand_for_themselves_where_they_are_asked_for(tmp_path):
    asked = [([], "True", "True or false: is this the liver?"), (["true", "false"], True, "The liver is shown.")]
    assert [gold.lower() for (gold,) in _golds(tmp_path, *asked)] == ["true", "true"]
    assert _golds(tmp_path, (["yes", "no"], True, "A lesion?"), booleans="yes/no") == [("yes",)]
