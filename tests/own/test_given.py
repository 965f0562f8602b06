import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualread.errors import DataError
from dualread.own.inputs import read_given
from tests.own.tables import write


def of_text(folder, text, name="mine.csv"):
    return read_given(write(folder, name, text))


def test_a_value_is_read_as_its_text_in_every_format(tmp_path):
    table = pl.DataFrame({"c": [0.9, 0.2, 1.0], "z": [True, False, True], "id": [7, 8, 9]})
    table.write_csv(tmp_path / "mine.csv")
    table.write_ndjson(tmp_path / "mine.jsonl")
    table.cast({"c": pl.Float32}).write_parquet(tmp_path / "mine.parquet")
    for name in ("mine.csv", "mine.jsonl", "mine.parquet"):
        read = read_given(tmp_path / name)
        assert read.number("c").to_list() == [0.9, 0.2, 1.0]  # float32 0.9 as float64 would be 0.89999998
        assert read.truth("z").to_list() == [True, False, True]
        assert read.text("id").to_list() == ["7", "8", "9"]
        assert read.rows.to_list() == [1, 2, 3]


def test_decimal_commas_are_read_where_they_cannot_be_anything_else(tmp_path):
    assert of_text(tmp_path, "confidence;correct\n0,9;1\n1;0\n").number("confidence").to_list() == [0.9, 1]
    for doubtful in ("1,234;1", "0,9;1\n0.8;1", "0,9,1;0"):
        with pytest.raises(DataError, match=r"'[0-9,.]+'.*decimal point"):
            of_text(tmp_path, f"confidence;correct\n{doubtful}\n").number("confidence")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.floats(0.0, 1.0), min_size=1))
def test_a_number_is_read_to_the_last_bit(tmp_path, values):
    values = [*values, 0.1]  # which no float32 is, so that nothing here had been one
    table = pl.DataFrame({"c": values})
    table.write_parquet(tmp_path / "mine.parquet")
    assert read_given(tmp_path / "mine.parquet").number("c").to_list() == values
    assert of_text(tmp_path, "c\n" + "\n".join(map(repr, values))).number("c").to_list() == values


def test_na_is_an_answer(tmp_path):
    assert of_text(tmp_path, "answer\nNA\nnull\nNone\n").text("answer").to_list() == ["NA", "null", "None"]


def test_only_known_booleans_and_words_are_accepted(tmp_path):
    read = of_text(tmp_path, "z,type,id\n1,Open,a\n2,closed,b\n0,shut,\n")
    with pytest.raises(DataError, match=r"'z' is wrong in 1 of 3 rows: row 2: '2'; expected 1 or 0, true or false"):
        read.truth("z")
    with pytest.raises(DataError, match=r"row 3: 'shut'; expected open or closed"):
        read.one_of("type", ("open", "closed"))
    with pytest.raises(DataError, match=r"column 'id' has no value in 1 of 3 rows: 3\. Every row needs one\."):
        read.text("id")


def test_lists_are_read_only_as_alternatives(tmp_path):
    read = of_text(tmp_path, '{"a": ["x", "y"], "b": [["x"]]}\n{"a": null, "b": []}\n', "mine.jsonl")
    assert read.alternatives("a") == [["x", "y"], []]
    with pytest.raises(DataError, match=r"column 'a' holds List\(String\); expected one value per row"):
        read.text("a")
    with pytest.raises(DataError, match=r"column 'b' holds .*; expected either a text or a list of texts"):
        read.alternatives("b")
    assert of_text(tmp_path, "a\nx#y\n").alternatives("a") == [["x", "y"]]


def test_a_mix_of_lists_and_single_values_is_refused(tmp_path):
    """If a list were read as one text, every answer to that question would be graded as wrong."""
    lines = '{"c": 0.5, "gold": ["CT", "MRI"], "more": {"x": [1]}}\n{"c": 0.4, "gold": "CT", "more": 7}\n'
    read = of_text(tmp_path, lines, "mine.jsonl")
    assert read.number("c").to_list() == [0.5, 0.4]  # the other column is ignored
    with pytest.raises(DataError, match=r"mine\.jsonl: column 'gold' holds .*; expected either .* in all rows"):
        read.alternatives("gold")
    with pytest.raises(DataError, match=r"column 'more' holds .*; expected one value per row"):
        read.text("more")


def test_a_json_value_is_read_as_it_is_written(tmp_path):
    lines = '\ufeff{"id": 12345678901234567890123, "z": true, "c": 0.90}\n\n'
    lines += '{"id": "x", "z": 0, "c": 9e-1, "r": [1, null]}\n'
    read = of_text(tmp_path, lines, "mine.jsonl")
    assert read.text("id").to_list() == ["12345678901234567890123", "x"]
    assert read.truth("z").to_list() == [True, False]
    assert read.number("c").to_list() == [0.9, 0.9]
    assert read.alternatives("r") == [[], ["1"]]
    assert read.rows.to_list() == [1, 3]


def test_bytes_that_are_not_text_are_reported(tmp_path):
    pl.DataFrame({"c": [0.5, 0.4], "question": [b"a", b"\xff"]}).write_parquet(tmp_path / "mine.parquet")
    read = read_given(tmp_path / "mine.parquet")
    assert read.number("c").to_list() == [0.5, 0.4]
    with pytest.raises(DataError, match=r"mine\.parquet: column 'question' holds Binary .*; expected text in UTF-8"):
        read.text("question")


def test_a_column_may_have_any_name(tmp_path):
    read = of_text(tmp_path, "row of the file,row,c\n7,8,0.5\n")
    assert (read.text("row of the file").to_list(), read.rows.to_list()) == (["7"], [1])


def test_how_a_file_was_read_is_said_unless_it_is_usual(tmp_path):
    (tmp_path / "latin.csv").write_bytes("a\nü\n".encode("latin-1"))
    read = read_given(tmp_path / "latin.csv")
    assert (read.text("a").to_list(), read.notes) == (["ü"], ("read as commas, windows-1252",))
    assert of_text(tmp_path, "a;b\n1;2\n").notes == ()


def test_numpy_and_python_agree_on_what_was_written(tmp_path):
    values = np.random.default_rng(0).random(1000)
    np.savetxt(tmp_path / "mine.csv", values, header="c", comments="", fmt="%.17g")
    assert (read_given(tmp_path / "mine.csv").number("c").to_numpy() == values).all()
