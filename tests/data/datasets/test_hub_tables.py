import hashlib

from dualread.data.datasets._hub_tables import read_rows
from dualread.data.tables import parquet
from tests.data.datasets.tables import write_tables


def test_contents_name_images_and_questions(tmp_path):
    write_tables(tmp_path, "test", [(b"one", "Is it?", " Yes")])
    ((split, row),) = read_rows(tmp_path, ["test"])
    digest = hashlib.sha256(b"one").hexdigest()
    assert row.image_name == digest[:16]
    assert row.official_id == hashlib.sha256(f"{digest}\x1fIs it?\x1f Yes".encode()).hexdigest()[:16]
    assert (split, row.images[0].source, row.source_row, row.reference_answers) == ("test", b"one", 0, (" Yes",))
    assert (row.answer_type, row.content_family, row.modality, row.location) == ("closed", None, None, None)


def test_rows_are_numbered_through_all_tables_and_equal_images_are_one_object(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_BATCH", 2)
    write_tables(tmp_path, "train", [(b"one", f"q{i}", "x") for i in range(5)], [(b"two", "q5", "x")])
    write_tables(tmp_path, "test", [(b"one", "q6", "x"), (b"two", "q7", "x")])
    rows = read_rows(tmp_path, ["train", "test"])
    assert [split for split, _ in rows] == ["train"] * 6 + ["test"] * 2
    assert [row.source_row for _, row in rows] == list(range(8))
    assert [row.question for _, row in rows] == [f"q{i}" for i in range(8)]
    assert len({id(row.images[0].source) for _, row in rows}) == 2
