import polars as pl
import pytest

from dualread.artifacts.tables import from_rows, write_table
from dualread.data.questions.pictures import thumbnail
from dualread.errors import DataError
from dualread.schema.base import NoSpec
from dualread.schema.columns import MANIFEST, THUMBNAILS
from dualread.stages.check_leakage import compute
from tests.data.questions.looks import half, jpeg, picture

PICTURES = {"p1": picture(1), "p2": picture(2), "p3": picture(3), "a copy of p1": jpeg(half(picture(1)))}


def _artifact(folder, role, *pictures):
    folder.mkdir()
    same = {"dataset": "slake", "split": folder.name, "role": role, "question": "q", "question_key": "q"}
    same |= {"reference_answers": ["a"], "answer_type": "open", "options": [], "image_files": ["f"], "image_roles": []}
    rows = [
        {
            **same,
            "sample_id": f"slake/{folder.name}/{i}",
            "image_id": f"image {name}",
            "cluster_id": f"image {name}",
            "source_row": i,
        }
        | {"pixel_sha256s": [name]}
        for i, name in enumerate(pictures)
    ]
    looks = [{"pixel_sha256": name, "thumbnail": thumbnail(PICTURES[name])} for name in pictures]
    write_table(folder / "manifest.parquet", from_rows(rows, MANIFEST), MANIFEST)
    write_table(folder / "thumbnails.parquet", from_rows(looks, THUMBNAILS), THUMBNAILS)
    return folder


def test_what_only_reports_may_share_and_is_written_down(tmp_path):
    inputs = {
        "a": _artifact(tmp_path / "test", "test", "p1", "p2"),
        "b": _artifact(tmp_path / "rad", "ood", "p2", "a copy of p1"),
    }
    out = tmp_path / "out"
    out.mkdir()
    summary = compute(NoSpec(), inputs, out)
    assert summary.startswith("read 4 questions on 3 pictures in 2 manifests")
    assert summary.endswith("test and ood share 1, and 1 pairs are near-duplicates")
    table = pl.read_parquet(out / "leakage.parquet")
    assert table.columns == ["role", "other_role", "n_images", "n_near"]
    assert table.filter(role="test", other_role="ood").rows() == [("test", "ood", 1, 1)]
    assert table.select("n_images", "n_near").sum().row(0) == (1, 1)  # no other roles share any
    pairs = pl.read_parquet(out / "near_duplicates.parquet")
    assert pairs.select("role", "image", "other_role", "other_image", "kind").rows() == [
        ("test", "slake/test/image p1", "ood", "slake/rad/image a copy of p1", "near"),
        ("test", "slake/test/image p2", "ood", "slake/rad/image p2", "exact"),
    ]


def test_a_leak_writes_nothing_and_names_the_images(tmp_path):
    train = _artifact(tmp_path / "train", "fit", "p1", "p2")
    inputs = {"a": train, "b": _artifact(tmp_path / "test", "test", "p2", "a copy of p1")}
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(DataError, match=r"fit: slake/train/image p2, test: slake/test/image p2") as error:
        compute(NoSpec(), inputs, out)
    assert "fit: slake/train/image p1, test: slake/test/image a copy of p1 (a copy: " in str(error.value)
    assert not list(out.iterdir())
