"""The columns of a table of answers, their types, and what an option says about them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualread.data.tables.checks import checked
from dualread.data.tables.contract import ANSWERS, TableOptions, plain_ids
from dualread.data.tables.files import read_file
from dualread.data.tables.memory import read_frame
from dualread.errors import DataError


def read(table, declared=ANSWERS, **options):
    if isinstance(table, str | Path):
        return checked(read_file(Path(table)), TableOptions(**options).reading(declared))
    return checked(read_frame(table, "mine"), TableOptions(**options).reading(declared))


def of_text(folder, text, name="mine.csv", **options):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read(path, **options)


def confidences(table):
    return table.frame["confidence"].to_list()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.floats(0.0, 1.0), min_size=1))
def test_a_number_is_read_to_the_last_bit(tmp_path, values):
    values = [*values, 0.1]  # which no float32 is, so that nothing here had been one
    pl.DataFrame({"confidence": values}).write_parquet(tmp_path / "mine.parquet")
    assert confidences(read(tmp_path / "mine.parquet")) == values
    assert confidences(of_text(tmp_path, "confidence\n" + "\n".join(map(repr, values)))) == values


def test_float32_numbers_with_more_digits_are_what_they_were(tmp_path):
    values = [float(np.float32(value)) for value in (0.9, 0.1, 0.75)]
    table = of_text(tmp_path, "confidence\n" + "\n".join(map(repr, values)))
    assert confidences(table) == [0.9, 0.1, 0.75]
    assert "float32" in table.notes[0]
    of_study = of_text(tmp_path, "study,confidence\n" + "\n".join(f"s,{value!r}" for value in values))
    assert confidences(of_study) == values


@pytest.mark.parametrize(
    ("text", "options", "numbers"),
    [
        ("confidence;correct\n0,9;1\n1;0\n", {}, [0.9, 1]),
        ("confidence\tcorrect\n0,9\t1\n1\t0\n", {"decimal": ","}, [0.9, 1]),
        ('confidence,correct\n"0,9",1\n1,0\n', {"decimal": ","}, [0.9, 1]),
        ("confidence,correct\n0.9,1\n1,0\n", {"decimal": ","}, [0.9, 1]),
        ("confidence,correct\n90%,1\n12.5 %,0\n", {}, [0.9, 0.125]),
        ("confidence;correct\n90%;1\n12,5 %;0\n", {}, [0.9, 0.125]),
        ("confidence;correct\n0,9;1\n0.8;1\n", {}, None),  # of two kinds
        ("confidence\tcorrect\n0,9\t1\n1\t0\n", {}, None),
        ("confidence,correct\n90%,1\n0.5,0\n", {}, None),
        ("confidence,correct\n101%,1\n50%,0\n", {}, None),
        ("confidence,correct\n1e-3,1\n.5,0\n", {}, [0.001, 0.5]),
    ],
)
def test_forms_of_numbers(tmp_path, text, options, numbers):
    if numbers is None:
        with pytest.raises(DataError, match="column 'confidence' is wrong"):
            of_text(tmp_path, text, **options)
    else:
        table = of_text(tmp_path, text, **options)
        assert confidences(table) == pytest.approx(numbers)
        assert bool(table.notes) == ("%" in text or "0,9" in text)


def test_rows_without_a_verdict_are_left_out_and_counted(tmp_path):
    text = "confidence,correct\n.9,1\n.8,\n.7,NA\n.6,nan\n.5,FALSE\n"
    table = of_text(tmp_path, text)
    assert table.frame["row"].to_list() == [1, 5]
    assert table.left_out == {"no value in column 'correct'": 3}


@pytest.mark.parametrize(
    ("missing", "kept"), [(["NA"], ["q1", "q2"]), ([], ["q1", "q2", "q3"]), (["NA", "none"], ["q1"]), (None, None)]
)
def test_words_that_stand_for_an_empty_cell(tmp_path, missing, kept):
    text = "sample_id,confidence,answer,reference_answer\nq1,.5,NA,yes\nq2,.5,none,none\nq3,.5,x,NA\nq4,.5,x,\n"
    if kept is None:
        with pytest.raises(DataError, match="'reference_answer' is wrong in 2 of 4 rows"):
            of_text(tmp_path, text)
        return
    table = of_text(tmp_path, text, missing=missing)
    assert table.frame["sample_id"].to_list() == kept
    assert table.left_out == {"no value in column 'reference_answer'": 4 - len(kept)}
    assert table.frame["answer"][0] == (None if missing else "NA")


@pytest.mark.parametrize(
    ("alternatives", "references"),
    [
        (None, [["a#b"], ["c;d"], ["e"]]),
        ("#", [["a", "b"], ["c;d"], ["e"]]),
        (";", [["a#b"], ["c", "d"], ["e"]]),
        (".", [["a#b"], ["c;d"], ["e"]]),  # no pattern
    ],
)
def test_alternatives_are_what_the_user_says(tmp_path, alternatives, references):
    text = "confidence,answer,reference_answer\n.5,a,a#b\n.5,c,c;d\n.5,e, e \n"
    table = of_text(tmp_path, text, alternatives=alternatives)
    assert table.frame["reference_answer"].to_list() == references


def test_lists_are_references_and_nothing_else(tmp_path):
    lines = '{"confidence": 0.5, "answer": "x", "reference_answer": ["x", " ", null, 2, true]}\n'
    assert of_text(tmp_path, lines, "mine.jsonl").frame["reference_answer"].to_list() == [["x", "2", "true"]]
    with pytest.raises(DataError, match="'answer' holds"):
        of_text(tmp_path, lines.replace('"x",', '["x"],', 1), "mine.jsonl")


def test_ids_are_texts_as_they_are_written(tmp_path):
    text = "confidence,image_id\n.5,007\n.5,7\n.5,7.0\n.5,1E5\n.5,1e-10\n"
    assert of_text(tmp_path, text).frame["image_id"].to_list() == ["007", "7", "7.0", "1E5", "1e-10"]
    with pytest.raises(DataError, match=r"row 1: '1\.23E"):
        of_text(tmp_path, "confidence,image_id\n.5,1.23E+17\n.5,2\n")
    wells = of_text(tmp_path, "confidence,image_id\n.5,1E10\n.5,1E11\n")  # of a plate, rows A to H
    assert wells.frame["image_id"].to_list() == ["1E10", "1E11"]


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        *((one, "7") for one in ("007", "7.0", " 7", "7.png")),
        *((one, "a/ct01") for one in ("./A/CT 01.png", "a\\ct01", "a%2Fct01", "a/ct01.nii.gz", "a/\uff43t01")),
        ("ct10", "ct10"),
        ("0", "0"),
        ("7.5", "7.5"),
        ("v.10", "v.10"),
    ],
)
def test_names_that_are_equal_but_for_their_spelling(text, alike):
    assert pl.Series([text]).to_frame("id").select(plain_ids(pl.col("id"))).item() == alike


def test_a_negated_column_is_a_score():
    table = {"entropy": ["1.5", "-2", "0"], "correct": [1, 0, 1]}
    for columns in ({"score": "-entropy"}, {"confidence": "-entropy"}):
        checked_table = read(table, columns=columns)
        assert confidences(checked_table) == [-1.5, 2, 0]
        assert checked_table.frame["is_score"].all()
    assert confidences(read({**table, "entropy": [1.5, -2.0, 0.0]}, columns={"score": "-entropy"})) == [-1.5, 2, 0]


def test_an_answer_that_does_not_exist_needs_no_confidence():
    table = {"answer": ["yes", None, "no"], "reference_answer": ["yes", "yes", "yes"]}
    of_confidences = read({**table, "confidence": [0.9, None, 0.4]})
    assert confidences(of_confidences) == [0.9, 0, 0.4]
    assert "1 of 3 rows" in of_confidences.notes[0]
    of_scores = read({**table, "score": [-1.0, None, -3.0]})
    assert confidences(of_scores) == [-1, -3, -3]
    assert of_scores.frame["is_score"].all()
    both = read({**table, "score": [-1.0, None, -3.0], "confidence": [None] * 3})
    assert (confidences(both), both.frame["is_score"].all()) == ([-1, -3, -3], True)
    graded = {"answer": ["yes", None, None], "confidence": [0.9, None, None]}
    assert confidences(read({**graded, "correct": [1, 0, 0]})) == [0.9, 0, 0]
    for wrong in ({**graded, "correct": [1, 0, 1]}, {**table, "confidence": [0.9, 0.1, None]}):
        with pytest.raises(DataError, match="row 3: empty"):
            read(wrong)
