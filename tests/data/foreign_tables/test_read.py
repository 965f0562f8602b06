import csv
import gzip
import io
import json
from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.data.foreign_tables import content, read
from dualread.data.foreign_tables.read import read_columns, read_records
from dualread.errors import DataError
from tests.drawn import attempt, few


def wrote(folder, text, name="mine.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def cells(path):
    """Return the cells as text; "" where one is empty."""
    return [[value or "" for value in row] for row in read_columns(path).frame.rows()]


# Quotes that are escaped by a backslash: polars reads 2 of these 4 rows.
ESCAPED = '{}confidence,note\n0.9,"a 5 \\" mass"\n0.8,x\n0.3,"a 3 \\" node"\n0.2,z\n'


def test_quotes_escaped_by_a_backslash_lose_no_row(tmp_path):
    read = read_columns(wrote(tmp_path, ESCAPED.format("")))
    assert read.frame.rows() == [("0.9", 'a 5 " mass'), ("0.8", "x"), ("0.3", 'a 3 " node'), ("0.2", "z")]
    assert read.rows.to_list() == [1, 2, 3, 4]
    assert (read.form, read.is_usual) == ("commas, utf-8, quotes escaped by a backslash", False)
    records = read_records(tmp_path / "mine.csv")
    assert [(number, one["note"]) for number, one in records.rows][2] == (4, 'a 3 " node')  # line 4


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n"5 \\"",x\ny,z\n', [['5 "', "x"], ["y", "z"]]),  # a quote at the end of a cell
        ('a,b\n"\\"5\\"",x\n', [['"5"', "x"]]),
        ('a,b\n"C:\\new","x \\" y"\n', [["C:\\new", 'x " y']]),  # other backslashes stay
        ('a,b\n"C:\\\\","x \\" y"\n', [["C:\\", 'x " y']]),
        ('a,b\n"C:\\",x\n"D:\\",y\n', [["C:\\", "x"], ["D:\\", "y"]]),  # a path, not an escaped quote
        ('a,b\n5\\" mass,x\n', [['5\\" mass', "x"]]),  # no quotes around it: both forms give the same
        ('a,b\n"x ""y""",z\n', [['x "y"', "z"]]),
        ('a,b\n5" mass,"x\r\ny"\nz,w\n', [['5" mass', "x\r\ny"], ["z", "w"]]),
        ("a,b\rc,d\re,f\r", [["c", "d"], ["e", "f"]]),
        ("\na,b,\n1,2,\n\n3,4\n,,\n", [["1", "2"], ["3", "4"]]),
        (',a\n0,x\n1,"y"\n', [["0", "x"], ["1", "y"]]),  # pandas's index
        ("\ufeffa|b\n1|2\n", [["1|2"]]),  # one column, until sep= says more
        ("sep=|\na|b\n1|2\n", [["1", "2"]]),
        ("sep=;\r\na,b;c\r\n1;2\r\n", [["1", "2"]]),
        ("a,b;c\n1,2\n", [["1", "2"]]),  # the second line tells
    ],
)
def test_forms_of_quotes_and_lines(tmp_path, text, rows):
    assert cells(wrote(tmp_path, text)) == rows


LETTERS = st.text(st.sampled_from('ab";,\t\\\n\r é'), max_size=6)


@few
@given(
    rows=st.lists(st.lists(LETTERS, min_size=3, max_size=3), min_size=1, max_size=6),
    form=st.sampled_from(list(product(",;\t", ["doubled", "escaped"], ["utf-8", "utf-8-sig", "cp1252", "utf-16"]))),
)
def test_every_row_of_any_writer_is_read_or_the_file_is_refused(tmp_path, rows, form):
    separator, quotes, encoding = form
    rows = [[f"{k}", *row[1:]] for k, row in enumerate(rows)]
    written = io.StringIO()
    escape = {"doublequote": False, "escapechar": "\\"} if quotes == "escaped" else {}
    csv.writer(written, delimiter=separator, quoting=csv.QUOTE_ALL, **escape).writerows([["x", "y", "z"], *rows])
    path = wrote(tmp_path, written.getvalue(), encoding=encoding)
    read, error = attempt(lambda: cells(path), DataError)
    expected = [[cell.strip() for cell in row] for row in rows]
    if quotes == "escaped" and read is not None:  # a backslash before another letter stays
        read, expected = ([[cell.replace("\\", "") for cell in row] for row in table] for table in (read, expected))
    assert read == expected or (error is not None and '\\"' in written.getvalue())
    assert error is None or str(path) in str(error)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path, encoding):
    read = read_columns(wrote(tmp_path, "a;b\nRöntgen;Läsion\n", encoding=encoding))
    assert read.frame.rows() == [("Röntgen", "Läsion")]
    assert read.form == f"semicolons, {'windows-1252' if encoding == 'cp1252' else encoding.removesuffix('-sig')}"


RECORDS = [{"id": 7, "c": 0.90, "z": True, "r": ["x", "y"]}, {"id": 8, "c": 1, "z": None, "r": None}]
COLUMNS = {name: [record[name] for record in RECORDS] for name in RECORDS[0]}
JSON = {
    "lines": "\n".join(map(json.dumps, RECORDS)),
    "list": json.dumps(RECORDS, indent=1),
    "columns": json.dumps(COLUMNS),
    "pandas": json.dumps({name: dict(enumerate(values)) for name, values in COLUMNS.items()}),
}


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".ndjson"])
@pytest.mark.parametrize("form", JSON)
def test_forms_of_json(tmp_path, form, suffix, packed):
    if form in ("columns", "pandas") and suffix != ".json":
        return  # one object of lists is one row there
    text = ("\ufeff" + JSON[form]).encode()
    path = wrote(tmp_path, gzip.compress(text) if packed else text, f"mine{suffix}{packed}")
    frame = read_columns(path).frame
    assert frame.to_dict(as_series=False) == {
        "id": ["7", "8"],
        "c": ["0.9", "1"],
        "z": ["true", None],
        "r": [["x", "y"], None],
    }
    assert [record for _, record in read_records(path).rows] == RECORDS


def test_a_column_may_change_its_kind_far_below(tmp_path, monkeypatch):
    monkeypatch.setattr("dualread.data.foreign_tables.read._CHUNK", 2)
    records = [{"a": None}, {}, {"a": "x", "b": ["y"]}, {}, {"a": ["z"], "b": []}]
    frame = read_columns(wrote(tmp_path, json.dumps(records), "a.json")).frame
    assert frame["a"].to_list() == [None, None, "x", None, ["z"]]
    assert frame["b"].to_list() == [None, None, ["y"], None, []]


def test_parquet_packed_or_not(tmp_path):
    frame = pl.DataFrame({"a": [1, 2], "b": [["x"], None]})
    frame.write_parquet(tmp_path / "a.parquet")
    wrote(tmp_path, gzip.compress((tmp_path / "a.parquet").read_bytes()), "a.parquet.gz")
    for name in ("a.parquet", "a.parquet.gz"):
        assert read_columns(tmp_path / name).frame.equals(frame)
        assert list(read_records(tmp_path / name).rows)[1] == (2, {"a": 2, "b": None})


def test_limits(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="has 200,000 columns, expected at most 5,000"):
        read_columns(wrote(tmp_path, ",".join(map(str, range(200_000))) + "\n"))
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)
    monkeypatch.setattr(content, "_ALWAYS_UNPACKED", 1_000_000)
    with pytest.raises(DataError, match="holds more than 1,000,000 bytes when it is unpacked"):
        read_columns(wrote(tmp_path, bomb, "mine.csv.gz"))
    monkeypatch.setattr(content, "_LONGEST_LINE", 100)
    with pytest.raises(DataError, match="a line has more than 100 characters"):
        read_columns(wrote(tmp_path, "a,b\n1," + "2" * 100 + "\n"))


def test_equal_images_of_a_parquet_are_one_object_across_batches(tmp_path):
    n = 3 * read._BATCH
    images = [{"bytes": bytes([k % 2]) * 1000, "path": None} for k in range(n)]
    for name in ("a[1].parquet", "a.parquet.gz"):
        path = tmp_path / name
        buffer = io.BytesIO()
        pl.DataFrame({"k": range(n), "image": [[one] for one in images]}).write_parquet(buffer)
        path.write_bytes(gzip.compress(buffer.getvalue()) if name.endswith(".gz") else buffer.getvalue())
        rows = [record for _, record in read_records(path).rows]
        assert [row["k"] for row in rows] == list(range(n))
        assert [row["image"] for row in rows] == [[one] for one in images]
        assert len({id(row["image"][0]["bytes"]) for row in rows}) == 2


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.csv", "mine.parquet"])
def test_equal_texts_are_one_object(tmp_path, name):
    frame = pl.DataFrame({"question": ["Where is it?"] * 2})
    wrote(tmp_path, frame.write_csv() if name == "mine.csv" else frame.write_ndjson(), name)
    if name == "mine.parquet":
        frame.write_parquet(tmp_path / name)
    (_, one), (_, other) = read_records(tmp_path / name).rows
    assert one == other == {"question": "Where is it?"}
    assert one["question"] is other["question"]


def test_pandas_split_and_lists_item_by_item(tmp_path):
    split = {"columns": ["a", "b"], "index": [0, 1], "data": [[1, "x"], [2, None]]}
    assert cells(wrote(tmp_path, json.dumps(split), "a.json")) == [["1", "x"], ["2", ""]]
    assert cells(wrote(tmp_path, ' [ {"a": "]"} ,\n{"a": "[,"}\n] \n', "a.json")) == [["]"], ["[,"]]


def test_lines_keep_their_numbers(tmp_path):
    # a line separator inside a text does not start a new line
    path = wrote(tmp_path, '{"a": 1}\n\n{"a": "\u2028"}\n', "a.jsonl")
    assert list(read_records(path).rows) == [(1, {"a": 1}), (3, {"a": "\u2028"})]


LABELS = {
    "right": {"names": ["true", "false"], "_type": "ClassLabel"},  # 0 means true
    "golds": {"feature": {"names": ["no", "yes"], "_type": "ClassLabel"}, "_type": "List"},
    "old": [{"names": ["no", "yes"], "_type": "ClassLabel"}],
    "n": {"dtype": "int64", "_type": "Value"},
}


def test_class_labels_of_datasets_are_read_by_their_names(tmp_path):
    columns = {"right": [0, 1, -1, 7], "golds": [[0, 1], [1], [], None], "old": [[1], [0], [], [1]], "n": [0, 1, 2, 3]}
    metadata = {"huggingface": json.dumps({"info": {"features": LABELS}})}
    pl.DataFrame(columns).write_parquet(tmp_path / "mine.parquet", metadata=metadata)
    expected = {
        "right": ["true", "false", None, "7"],
        "golds": [["no", "yes"], ["yes"], [], None],
        "old": [["yes"], ["no"], [], ["yes"]],
        "n": [0, 1, 2, 3],
    }
    assert read_columns(tmp_path / "mine.parquet").frame.to_dict(as_series=False) == expected
    records = [record for _, record in read_records(tmp_path / "mine.parquet").rows]
    assert [record["right"] for record in records] == expected["right"]


@pytest.mark.parametrize(
    "metadata", ["{", "[]", '{"info": 3}', '{"info": {"features": {"a": {"names": 3}}}}', "[" * 9999]
)
def test_damaged_metadata_name_nothing(tmp_path, metadata):
    pl.DataFrame({"a": [0, 1]}).write_parquet(tmp_path / "mine.parquet", metadata={"huggingface": metadata})
    assert read_columns(tmp_path / "mine.parquet").frame["a"].to_list() == [0, 1]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet", ".csv.gz"])
@pytest.mark.parametrize("used", [{"a", "c"}, {"a", "b", "c"}, {"z"}, set()])
def test_columns_that_are_not_used_take_no_memory(tmp_path, suffix, used):
    frame = pl.DataFrame(
        {" b": ["x", None, None], "a": ["1", "2", None], "d": [None, "y", None], " c": ["3", None, None]}
    )
    path = tmp_path / f"mine{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix.startswith(".csv"):
        text = frame.write_csv().replace("\n,,,\n", "\n,, ,\n").encode()
        path.write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    else:
        path.write_text(json.dumps(frame.to_dicts()))
    read = read_columns(path, used).frame
    names = [name.strip() for name in frame.columns]
    assert read.columns == names
    rows = 2 if suffix.startswith(".csv") else 3  # blank rows of .csv are no rows
    others = [name for name in names if name.strip() not in used]
    filled = frame.select(
        pl.any_horizontal(pl.col(one for one in frame.columns if one.strip() not in used).is_not_null())
    )
    for name, own in zip(names, frame.columns, strict=True):
        values = frame[own].to_list()[:rows] if name not in others else [None] * rows
        if name == others[0]:
            values = [one or None for one in filled.to_series().to_list()[:rows]]
        assert read[name].to_list() == values


@pytest.mark.parametrize(
    "content",
    [
        {"columns": ["a", "b"], "index": [0, 1], "data": [[1, "x"], [2, None]]},
        {"columns": ["a", "b"], "data": [[1, "x"], [2, None]]},  # pandas without its index
        {"columns": ["a", "b"], "data": [[1, "x"], [2, None]], "ncols": 2, "nrows": 2, "column_types": {}},  # wandb
        {"schema": {"fields": []}, "data": [{"a": 1, "b": "x"}, {"a": 2, "b": None}]},
    ],
)
def test_rows_beside_the_names_of_columns(tmp_path, content):
    path = wrote(tmp_path, json.dumps(content), "mine.json")
    assert read_columns(path).frame.to_dict(as_series=False) == {"a": ["1", "2"], "b": ["x", None]}


def test_a_key_of_json_may_be_empty(tmp_path):
    path = wrote(tmp_path, json.dumps([{"": "x", "a": "1"}]), "mine.json")
    for used in (None, {"a"}, set()):
        assert read_columns(path, used).frame.columns == ["", "a"]
