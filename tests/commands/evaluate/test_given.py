import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualread.commands.evaluate.given import mapped
from dualread.commands.evaluate.inputs.table import read_given
from dualread.errors import DataError
from tests.commands.evaluate.tables import write


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


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_first_line_says_what_separates_columns(tmp_path, separator):
    lines = ["confidence;answer;image_id", "0.9;left, upper;a", '0.25;"yes; no";b']
    if separator == ",":
        lines = ["confidence;answer;image_id", '0.9;"left, upper";a', "0.25;yes\t no;b"]
    read = of_text(tmp_path, "\r\n".join(lines).replace(";", separator))
    assert read.frame.columns == ["confidence", "answer", "image_id"]
    assert read.number("confidence").to_list() == [0.9, 0.25]
    assert read.text("image_id").to_list() == ["a", "b"]


def test_decimal_commas_are_read_where_they_cannot_be_anything_else(tmp_path):
    assert of_text(tmp_path, "confidence;correct\n0,9;1\n1;0\n").number("confidence").to_list() == [0.9, 1]
    for doubtful in ("1,234;1", "0,9;1\n0.8;1", "0,9,1;0"):
        with pytest.raises(DataError, match=r"'[0-9,.]+'.*decimal point"):
            of_text(tmp_path, f"confidence;correct\n{doubtful}\n").number("confidence")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.floats(0.0, 1.0), min_size=1))
def test_a_number_is_read_to_the_last_bit(tmp_path, values):
    table = pl.DataFrame({"c": values})
    table.write_parquet(tmp_path / "mine.parquet")
    assert read_given(tmp_path / "mine.parquet").number("c").to_list() == values
    assert of_text(tmp_path, "c\n" + "\n".join(map(repr, values))).number("c").to_list() == values


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(min_size=1), ending=st.sampled_from(["csv", "jsonl", "parquet"]))
def test_any_bytes_are_a_table_or_an_error(tmp_path, content, ending):
    path = tmp_path / f"mine.{ending}"
    path.write_bytes(content)
    try:
        read_given(path)
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017


def test_additions_of_spreadsheets_are_ignored(tmp_path):
    # a byte-order mark, spaces around names and values, a blank line between rows, empty rows at the end
    read = of_text(tmp_path, "\ufeffconfidence , correct,\n 0.5, TRUE ,\n\n0.25,0.0,\n,,\n,,\n")
    assert read.number("confidence").to_list() == [0.5, 0.25]
    assert read.truth("correct").to_list() == [True, False]
    assert read.rows.to_list() == [1, 3]


def test_na_is_an_answer(tmp_path):
    assert of_text(tmp_path, "answer\nNA\nnull\nNone\n").text("answer").to_list() == ["NA", "null", "None"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "",
            r"column 'c' has no value in 1 of 3 rows: 2\. Drop these rows .*, or impute a c \(the workflow uses 0\.5",
        ),
        ("NaN", r"column 'c' is NaN in 1 of 3 rows: 2\. Drop these rows"),
        ("inf", r"column 'c' is wrong in 1 of 3 rows: row 2: 'inf'; expected a finite number"),
        ("-inf", r"row 2: '-inf'"),
        ("'0,5'", r"row 2: .*expected a finite number with a decimal point"),
        ("high", r"row 2: 'high'"),
    ],
)
def test_an_invalid_confidence_is_reported(tmp_path, value, message):
    text = f'x,c\n1,0.5\n2,"{value}"\n3,1\n'
    with pytest.raises(DataError, match=f"^{tmp_path}/mine.csv: .*{message}"):
        of_text(tmp_path, text).number("c")


def test_five_rows_are_listed_and_all_are_counted(tmp_path):
    text = "c\n" + "\n".join(["85%"] * 7 + ["0.5"])
    with pytest.raises(DataError, match=r"7 of 8 rows: row 1: '85%', row 2: '85%', .*, row 5: '85%', \.\.\.; "):
        of_text(tmp_path, text).number("c")


def test_a_column_is_called_by_its_own_name(tmp_path):
    read = mapped(of_text(tmp_path, "Right?\nyes\n0\n"), {"correct": "Right?"}, ["correct"])
    with pytest.raises(DataError, match=r"column 'Right\?' \(correct\) is wrong in 1 of 2 rows: row 1: 'yes'; "):
        read.truth("correct")


def test_only_known_booleans_and_words_are_accepted(tmp_path):
    read = of_text(tmp_path, "z,type,id\n1,Open,a\n2,closed,b\n0,shut,\n")
    with pytest.raises(DataError, match=r"'z' is wrong in 1 of 3 rows: row 2: '2'; expected 1 or 0, true or false"):
        read.truth("z")
    with pytest.raises(DataError, match=r"row 3: 'shut'; expected open or closed"):
        read.one_of("type", ("open", "closed"))
    with pytest.raises(DataError, match=r"column 'id' has no value in 1 of 3 rows: 3\. Every row needs one\."):
        read.text("id")


def test_a_missing_column_is_reported_with_the_existing_ones(tmp_path):
    with pytest.raises(DataError, match=r"mine\.csv: no column 'b', the second letter\. Found: a;b, c\. If"):
        of_text(tmp_path, "a;b,c\n1,2\n").need("b", "the second letter")


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


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mine.csv", "", r"has no rows, it is empty"),
        ("mine.csv", "\n \n", r"has no rows, it is empty"),
        ("mine.csv", "a,b\n", r"has no rows.* found columns: a, b"),
        ("mine.csv", "a,b\n,\n", r"has no rows.* found columns: a, b"),
        ("mine.csv", "a,b\n1,2,3\n", r"line 2: has 3 cells, expected 2\. Put cells .* in double quotes"),
        ("mine.csv", "a,b,a\n1,2,3\n", r"column 'a' occurs more than once"),
        ("mine.csv", "a, a\n1,2\n", r"column 'a' occurs more than once"),
        ("mine.jsonl", '{"a": 1}\n{"a": "\\ud800"}\n', r"line 2: not JSON"),
        ("mine.jsonl", '{"a": 1}\n{"a": 1\n', r"line 2: not JSON .* Write one object per line"),
        ("mine.jsonl", "{}\n{}\n", r"has no rows.* found columns: none"),
        ("mine.parquet", "a,b\n1,2\n", r"is not a \.parquet table"),
        ("mine.xlsx", "a", r"unknown format '\.xlsx'\. Known: \.csv, \.tsv, .* each also with \.gz"),
        ("mine", "a", r"unknown format ''"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(tmp_path, name, text, message):
    with pytest.raises(DataError, match=f"^{tmp_path}/{name}: {message}"):
        of_text(tmp_path, text, name)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: cannot be read \(No such file or directory\)"):
        read_given(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv: cannot be read \(Is a directory\)"):
        read_given(tmp_path / "folder.csv")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.csv")
    with pytest.raises(DataError, match=r"other\.csv: is a parquet file; rename it to other\.parquet\."):
        read_given(tmp_path / "other.csv")


def test_how_a_file_was_read_is_said_unless_it_is_usual(tmp_path):
    (tmp_path / "latin.csv").write_bytes("a\nü\n".encode("latin-1"))
    read = read_given(tmp_path / "latin.csv")
    assert (read.text("a").to_list(), read.notes) == (["ü"], ("read as commas, windows-1252",))
    assert of_text(tmp_path, "a;b\n1;2\n").notes == ()


def test_numpy_and_python_agree_on_what_was_written(tmp_path):
    values = np.random.default_rng(0).random(1000)
    np.savetxt(tmp_path / "mine.csv", values, header="c", comments="", fmt="%.17g")
    assert (read_given(tmp_path / "mine.csv").number("c").to_numpy() == values).all()
