import csv
import gzip
import io
import json
from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread import limits
from dualread.data.tables import parquet
from dualread.data.tables.files import read_file, read_records
from dualread.errors import DataError
from tests.drawn import attempt, few


def wrote(folder, text, name="mine.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def cells(path):
    """Return the cells as text; "" where one is empty."""
    return [[value or "" for value in row] for row in read_file(path).frame.rows()]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n"C:\\new","x"\n', [["C:\\new", "x"]]),  # other backslashes stay
        ('a,b\n5\\" mass,x\n', [['5\\" mass', "x"]]),  # no quotes around it
        ('a,b\n"C:\\",x\n"D:\\",y\n', [["C:\\", "x"], ["D:\\", "y"]]),  # a path, not an escaped quote
        ('a,b\n"x ""y""",z\n', [['x "y"', "z"]]),
        ('a,b\n5" mass,"x\r\ny"\nz,w\n', [['5" mass', "x\r\ny"], ["z", "w"]]),
        ("a,b\rc,d\re,f\r", [["c", "d"], ["e", "f"]]),
        ("\na,b,\n1,2,\n\n3,4\n,,\n", [["1", "2"], ["3", "4"]]),
        (',a\n0,x\n1,"y"\n', [["0", "x"], ["1", "y"]]),  # pandas's index
        ("\ufeffa|b\n1|2\n", [["1|2"]]),  # one column
        ("a;b;c,d\n1;2;3\n", [["1", "2", "3"]]),  # most often in the first line
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
    assert read == expected or "\\" in written.getvalue()
    assert error is None or '\\"' in written.getvalue()
    assert error is None or str(path) in str(error)


def test_a_column_may_begin_far_below_but_has_one_kind(tmp_path, monkeypatch):
    monkeypatch.setattr("dualread.data.tables.files._CHUNK", 2)
    records = [{"a": None}, {}, {"a": "x", "b": ["y"]}, {}, {"b": []}]
    frame = read_file(wrote(tmp_path, json.dumps(records), "a.json")).frame
    assert frame["a"].to_list() == [None, None, "x", None, None]
    assert frame["b"].to_list() == [None, None, ["y"], None, []]
    with pytest.raises(DataError, match="lists in some rows"):
        read_file(wrote(tmp_path, json.dumps([*records, {"a": ["z"]}]), "a.json"))


def test_limits(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="has 200,000 columns, expected at most 5,000"):
        read_file(wrote(tmp_path, ",".join(map(str, range(200_000))) + "\n"))
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)
    monkeypatch.setattr(limits, "ALWAYS_UNPACKED_BYTES", 1_000_000)
    with pytest.raises(DataError, match="holds more than 1,000,000 bytes when it is unpacked"):
        read_file(wrote(tmp_path, bomb, "mine.csv.gz"))
    monkeypatch.setattr(limits, "LINE_CHARACTERS", 100)
    with pytest.raises(DataError, match="a line has more than 100 characters"):
        read_file(wrote(tmp_path, "a,b\n1," + "2" * 100 + "\n"))


def test_equal_images_of_a_parquet_are_one_object_across_batches(tmp_path):
    n = 3 * parquet._BATCH
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
    assert read_file(tmp_path / "mine.parquet").frame.to_dict(as_series=False) == expected
    records = [record for _, record in read_records(tmp_path / "mine.parquet").rows]
    assert [record["right"] for record in records] == expected["right"]


@pytest.mark.parametrize(
    "metadata", ["{", "[]", '{"info": 3}', '{"info": {"features": {"a": {"names": 3}}}}', "[" * 9999]
)
def test_damaged_metadata_name_nothing(tmp_path, metadata):
    pl.DataFrame({"a": [0, 1]}).write_parquet(tmp_path / "mine.parquet", metadata={"huggingface": metadata})
    assert read_file(tmp_path / "mine.parquet").frame["a"].to_list() == [0, 1]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet", ".csv.gz"])
@pytest.mark.parametrize("used", [{"a", "c"}, {"a", "b", "c"}, {"z"}, set()])
def test_columns_that_are_not_wanted_are_named_and_not_read(tmp_path, suffix, used):
    frame = pl.DataFrame({" b": ["x", None], "a": ["1", "2"], "d": [None, "y"], " c": ["3", None]})
    path = tmp_path / f"mine{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix.startswith(".csv"):
        text = frame.write_csv().encode()
        path.write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    else:
        path.write_text(json.dumps(frame.to_dicts()) if suffix == ".json" else frame.write_ndjson())
    table = read_file(path, lambda name: name in used)
    assert table.columns == ("b", "a", "d", "c")
    assert set(table.frame.columns) == used - {"z"}
    assert table.rows.to_list() == [1, 2]


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.csv", "mine.parquet"])
def test_equal_texts_are_one_object(tmp_path, name):
    frame = pl.DataFrame({"question": ["Where is it?"] * 2})
    wrote(tmp_path, frame.write_csv() if name == "mine.csv" else frame.write_ndjson(), name)
    if name == "mine.parquet":
        frame.write_parquet(tmp_path / name)
    (_, one), (_, other) = read_records(tmp_path / name).rows
    assert one == other == {"question": "Where is it?"}
    assert one["question"] is other["question"]
