import polars as pl
import pytest

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.tables import from_rows, write_table
from dualread.errors import DataError
from dualread.stages.check_leakage import compute


def _artifact(folder, role, *pictures):
    folder.mkdir()
    rows = [
        {
            "sample_id": f"slake/{folder.name}/{i}",
            "dataset": "slake",
            "split": folder.name,
            "role": role,
            "question": "q",
            "question_key": "q",
            "reference_answers": ["a"],
            "answer_type": "open",
            "options": [],
            "image_file": "f",
            "image_sha256": picture,
            "pixel_sha256": picture,
            "image_id": f"image {picture}",
            "source_row": i,
        }
        for i, picture in enumerate(pictures)
    ]
    write_table(folder / "manifest.parquet", from_rows(rows, MANIFEST), MANIFEST)
    return folder


def test_a_clean_study_gets_a_table_of_zeros(tmp_path):
    inputs = {"a": _artifact(tmp_path / "train", "fit", "p1", "p2"), "b": _artifact(tmp_path / "test", "test", "p3")}
    out = tmp_path / "out"
    out.mkdir()
    summary = compute({}, inputs, out)
    assert summary.startswith("read 3 questions on 3 pictures in 2 manifests")
    table = pl.read_parquet(out / "leakage.parquet")
    assert table.columns == ["role", "other_role", "n_images"]
    assert table["n_images"].to_list() == [0] * 21


def test_a_leak_writes_nothing_and_names_the_images(tmp_path):
    inputs = {"a": _artifact(tmp_path / "train", "fit", "p1"), "b": _artifact(tmp_path / "test", "test", "p1")}
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(DataError, match=r"fit: slake/train/image p1, test: slake/test/image p1"):
        compute({}, inputs, out)
    assert not list(out.iterdir())
