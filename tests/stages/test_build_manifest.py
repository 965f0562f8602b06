import hashlib
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.tables import read_table
from dualread.errors import DataError
from dualread.images import open_image, pixel_sha256
from dualread.stages import build_manifest, check_leakage, draw_phantom, pair_donors

SHARED = Path(os.environ.get("DUALREAD_SHARED", Path(__file__).resolve().parents[2] / ".." / "shared"))
REAL = SHARED / "data" / "slake"
ROLES = {"train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2}, "validation": "validation", "test": "test"}


def _spec(split="test", **changes):
    return {
        "dataset": "slake",
        "split": split,
        "loader": {"module": "datasets.slake"},
        "settings": {"language": "en"},
        "roles": ROLES[split],
        "seed": 0,
    } | changes


def _build(source, out, split="test", **changes):
    out.mkdir()
    build_manifest.compute(_spec(split, **changes), {"source": source}, out)
    return read_table(out / "manifest.parquet", MANIFEST)


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospital")
    images = {"train": 20, "validation": 5, "test": 6}
    writer = {"module": "hospitals.slake"}
    draw_phantom.compute({"name": "hospital", "writer": writer, "seed": 0, "images": images, "size": 32}, {}, folder)
    return folder


@pytest.fixture
def source(hospital, tmp_path):
    """Return a copy of the hospital that a test may damage."""
    return Path(shutil.copytree(hospital, tmp_path / "source"))


def _edit(source, change):
    rows = json.loads((source / "test.json").read_text(encoding="utf-8"))
    change(rows)
    (source / "test.json").write_text(json.dumps(rows), encoding="utf-8")


def test_rows_and_images_are_those_of_the_source(hospital, tmp_path):
    manifest = _build(hospital, tmp_path / "out")
    official = json.loads((hospital / "test.json").read_text(encoding="utf-8"))
    for row in manifest.iter_rows(named=True):
        record = official[row["source_row"]]
        assert row["sample_id"] == f"slake/test/{record['qid']}"
        assert (row["question"], row["reference_answers"]) == (record["question"], [record["answer"]])
        original = hospital / "imgs" / record["img_name"]
        copy = tmp_path / "out" / row["image_file"]
        assert copy.read_bytes() == original.read_bytes()
        assert row["image_file"] == f"images/{row['image_sha256']}.jpg"
        assert row["image_sha256"] == hashlib.sha256(original.read_bytes()).hexdigest()
        assert row["pixel_sha256"] == pixel_sha256(open_image(original))
        assert row["image_id"] == f"xmlab{record['img_id']}"
    assert len(list((tmp_path / "out" / "images").iterdir())) == manifest["image_id"].n_unique() == 6
    assert manifest.height == 48


def test_the_same_input_gives_the_same_bytes(hospital, tmp_path):
    for name in ("a", "b"):
        _build(hospital, tmp_path / name, "train")
    for name in ("manifest.parquet", "audit.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_roles_follow_images(hospital, tmp_path):
    manifest = _build(hospital, tmp_path / "out", "train")
    per_image = manifest.group_by("image_id").agg(pl.col("role").unique())
    assert per_image["role"].list.len().to_list() == [1] * 20
    counts = dict(manifest.group_by("role").agg(pl.col("image_id").n_unique()).iter_rows())
    assert counts == {"fit": 14, "stop": 2, "calibration": 4}
    assert manifest.filter(pl.col("reference_answers").list.contains("")).height == 1


def test_identical_files_are_one_picture_stored_once(source, tmp_path):
    names = sorted({row["img_name"] for row in json.loads((source / "test.json").read_text()) if row["q_lang"] == "en"})
    shutil.copyfile(source / "imgs" / names[0], source / "imgs" / names[1])
    manifest = _build(source, tmp_path / "out")
    assert manifest["image_id"].n_unique() == 5
    assert len(list((tmp_path / "out" / "images").iterdir())) == 5
    audit = pl.read_parquet(tmp_path / "out" / "audit.parquet")
    assert "6 image names, 5 distinct pictures" in audit["reason"].to_list()


def test_missing_and_truncated_images_and_empty_questions_are_listed_at_once(source, tmp_path):
    rows = json.loads((source / "test.json").read_text())
    english = [row for row in rows if row["q_lang"] == "en"]
    names = list(dict.fromkeys(row["img_name"] for row in english))
    (source / "imgs" / names[0]).unlink()
    (source / "imgs" / names[5]).write_bytes((source / "imgs" / names[5]).read_bytes()[:300])
    _edit(source, lambda rows: rows[10].update(question=" "))
    with pytest.raises(DataError) as error:
        _build(source, tmp_path / "out")
    lines = str(error.value).splitlines()
    # Eight rows of the missing image, one empty question, then the truncated image; ten are listed.
    assert len(lines) == 11
    assert f"test.json: row 0 (id {rows[0]['qid']}): " in lines[0]
    assert f"{names[0]}: no such image file" in lines[0]
    assert f"row 10 (id {rows[10]['qid']}): the question is empty" in lines[8]
    assert "cannot be decoded" in lines[9]
    assert lines[10] == "... and 7 more"


def test_a_duplicate_id_names_both_rows(source, tmp_path):
    _edit(source, lambda rows: rows[4].update(qid=rows[2]["qid"]))
    with pytest.raises(DataError, match=r"test\.json: row 4 \(id \d+\): row 2 has the same id"):
        _build(source, tmp_path / "out")


@pytest.mark.skipif(not REAL.is_dir(), reason="the real SLAKE is not on this machine (DUALREAD_SHARED)")
def test_the_real_slake(tmp_path):
    manifests, n_pairs = {}, {}
    for split in ROLES:
        manifests[split] = _build(REAL, tmp_path / split, split)
        pairs = tmp_path / f"pairs-{split}"
        pairs.mkdir()
        pair_donors.compute({"match_on": ["modality"]}, {"manifest": tmp_path / split}, pairs)
        n_pairs[split] = pl.read_parquet(pairs / "audit.parquet")["n_pairs"].to_list()
    counts = {split: (m.height, m["image_id"].n_unique()) for split, m in manifests.items()}
    assert counts == {"train": (4919, 450), "validation": (1053, 96), "test": (1061, 96)}
    n_open = {split: (m["answer_type"] == "open").sum() for split, m in manifests.items()}
    assert n_open == {"train": 2976, "validation": 631, "test": 645}
    empty = manifests["train"].filter(pl.col("reference_answers").list.contains(""))
    assert empty["sample_id"].to_list() == ["slake/train/1622"]
    audit = pl.read_parquet(tmp_path / "train" / "audit.parquet")
    assert audit.filter(pl.col("step") == "repetitions")["reason"].item().startswith("7 rows repeat")
    assert n_pairs["test"] == [442, 714]
    (tmp_path / "leakage").mkdir()
    check_leakage.compute({}, {split: tmp_path / split for split in ROLES}, tmp_path / "leakage")
    assert pl.read_parquet(tmp_path / "leakage" / "leakage.parquet")["n_images"].sum() == 0
