import hashlib

import polars as pl
import pytest

from dualread.data.datasets import _hub_tables
from dualread.data.datasets._hub_tables import answer_type, has_tables, read_rows
from dualread.errors import DataError
from tests.data.datasets.tables import SCHEMA, write_tables


def test_contents_name_images_and_questions(tmp_path):
    write_tables(tmp_path, "test", [(b"one", "Is it?", " Yes")])
    ((split, row),) = read_rows(tmp_path, ["test"])
    digest = hashlib.sha256(b"one").hexdigest()
    assert row.image_name == digest[:16]
    assert row.official_id == hashlib.sha256(f"{digest}\x1fIs it?\x1f Yes".encode()).hexdigest()[:16]
    assert (split, row.image, row.source_row, row.reference_answers) == ("test", b"one", 0, (" Yes",))
    assert (row.answer_type, row.content_family, row.modality, row.location) == ("closed", None, None, None)


def test_an_id_does_not_depend_on_the_order_of_the_rows(tmp_path):
    rows = [(b"one", "a", "b"), (b"one", "ab", ""), (b"two", "a", "b")]
    ids = []
    for name, order in (("x", rows), ("y", rows[::-1])):
        (tmp_path / name).mkdir()
        write_tables(tmp_path / name, "test", order)
        ids.append([row.official_id for _, row in read_rows(tmp_path / name, ["test"])])
    assert ids[0] == ids[1][::-1]
    assert len(set(ids[0])) == 3


def test_rows_are_numbered_through_all_tables_and_equal_images_are_one_object(tmp_path, monkeypatch):
    monkeypatch.setattr(_hub_tables, "_BATCH_ROWS", 2)
    write_tables(tmp_path, "train", [(b"one", f"q{i}", "x") for i in range(5)], [(b"two", "q5", "x")])
    write_tables(tmp_path, "test", [(b"one", "q6", "x"), (b"two", "q7", "x")])
    rows = read_rows(tmp_path, ["train", "test"])
    assert [split for split, _ in rows] == ["train"] * 6 + ["test"] * 2
    assert [row.source_row for _, row in rows] == list(range(8))
    assert [row.question for _, row in rows] == [f"q{i}" for i in range(8)]
    assert len({id(row.image) for _, row in rows}) == 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("yes", "closed"), (" NO\n", "closed"), ("no.", "open"), ("yes, it is", "open"), ("left", "open"), ("", "open")],
)
def test_yes_and_no_are_closed(answer, kind):
    assert answer_type(answer) == kind


def test_every_table_of_a_split_must_be_there(tmp_path):
    assert not has_tables(tmp_path)
    with pytest.raises(DataError, match=r"no data/test-\*\.parquet"):
        read_rows(tmp_path, ["test"])
    write_tables(tmp_path, "test", [(b"one", "a", "b")], [(b"two", "a", "b")], [(b"three", "a", "b")])
    assert has_tables(tmp_path)
    next((tmp_path / "data").glob("test-00001-*")).unlink()
    with pytest.raises(DataError, match=r"test-00000.*test-00002.*: expected test-00000-of-N to"):
        read_rows(tmp_path, ["test"])


def test_tables_of_two_revisions_are_refused(tmp_path):
    write_tables(tmp_path, "test", [(b"one", "a", "b")])
    table = next((tmp_path / "data").glob("test-*"))
    (tmp_path / "data" / "test-00000-of-00001-0123456789abcdef.parquet").write_bytes(table.read_bytes())
    with pytest.raises(DataError, match="from one revision"):
        read_rows(tmp_path, ["test"])


def test_rows_without_a_value_are_named_together(tmp_path):
    good = (b"one", "a", "b")
    write_tables(tmp_path, "test", [good, (b"one", None, "b"), (b"one", "a", None)], [good, (None, "a", "b")])
    with pytest.raises(DataError) as error:
        read_rows(tmp_path, ["test"])
    lines = str(error.value).splitlines()
    assert [line.split("e5bc3d208bb4deeb.parquet: ")[1].split(" is empty")[0] for line in lines] == [
        "row 1: question",
        "row 2: answer",
        "row 1: image.bytes",
    ]
    assert "test-00001-of-00002" in lines[2]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({**SCHEMA, "answer": pl.Binary}, "question and answer are not text"),
        ({**SCHEMA, "image": pl.Struct({"path": pl.String})}, "Expected a parquet table with the columns image"),
        ({"image": SCHEMA["image"], "question": pl.String}, "Expected a parquet table with the columns image"),
    ],
)
def test_a_table_with_other_columns_is_refused(tmp_path, schema, message):
    (tmp_path / "data").mkdir()
    pl.DataFrame(schema=schema).write_parquet(tmp_path / "data" / "test-00000-of-00001.parquet")
    with pytest.raises(DataError, match=rf"(?s)test-00000-of-00001\.parquet: .*{message}"):
        read_rows(tmp_path, ["test"])


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "test-00000-of-00001.parquet").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataError, match="Expected a parquet table with the columns image"):
        read_rows(tmp_path, ["test"])
