import hashlib
import io
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from PIL import Image

from dualread.artifacts.tables import each_part, read_parts, read_table
from dualread.data.datasets.base import Loaded, Row
from dualread.data.images import open_image, pixel_sha256
from dualread.data.questions import build, pictures
from dualread.errors import DataError
from dualread.schema.base import NoSpec
from dualread.schema.columns import MANIFEST, THUMBNAILS
from dualread.schema.data import PairDonorsSpec, Select
from dualread.stages import build_manifest, check_leakage, draw_phantom, pair_donors
from tests import specs

SHARED = Path(os.environ.get("DUALREAD_SHARED", Path(__file__).resolve().parents[2] / ".." / "shared"))
REAL = SHARED / "data" / "slake"
ROLES = {"train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2}, "validation": "validation", "test": "test"}


def _spec(split="test", **changes):
    return specs.manifest(**{"split": split, "settings": {"language": "en"}, "roles": ROLES[split]} | changes)


def _build(source, out, split="test", **changes):
    out.mkdir()
    build_manifest.compute(_spec(split, **changes), {"source": source}, out)
    return read_table(out / "manifest.parquet", MANIFEST)


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospital")
    images = {"train": 20, "validation": 5, "test": 6}
    draw_phantom.compute(specs.phantom(images=images), {}, folder)
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
    thumbnails = dict(read_table(tmp_path / "out" / "thumbnails.parquet", THUMBNAILS).iter_rows())
    assert thumbnails == {
        row["pixel_sha256"]: pictures.thumbnail(open_image(tmp_path / "out" / row["image_file"]))
        for row in manifest.iter_rows(named=True)
    }


def test_many_thumbnails_are_written_in_parts(hospital, tmp_path, monkeypatch):
    _build(hospital, tmp_path / "whole")
    monkeypatch.setattr(build_manifest, "_THUMBNAILS_PER_PART", 4)
    _build(hospital, tmp_path / "out")
    assert [part.height for part in each_part(tmp_path / "out", THUMBNAILS)] == [4, 2]
    assert read_parts(tmp_path / "out", THUMBNAILS).equals(read_parts(tmp_path / "whole", THUMBNAILS))


def test_the_same_input_gives_the_same_bytes(hospital, tmp_path):
    for name in ("a", "b"):
        _build(hospital, tmp_path / name, "train")
    for name in ("manifest.parquet", "audit.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_digest_is_written_said_and_may_be_expected(hospital, tmp_path):
    manifest = _build(hospital, tmp_path / "first")
    digest = (tmp_path / "first" / "manifest_digest.txt").read_text().strip()
    assert digest == build.digest(manifest)
    (tmp_path / "second").mkdir()
    said = build_manifest.compute(_spec(expect_sha256=digest), {"source": hospital}, tmp_path / "second")
    assert said == (
        f"read 48 questions from test.json, wrote 48 rows ({(manifest['answer_type'] == 'open').sum()} open,"
        f" {(manifest['answer_type'] == 'closed').sum()} closed) on 6 pictures, digest {digest}"
    )
    with pytest.raises(DataError, match=rf"has the digest (?!{digest})[0-9a-f]{{64}}, expected {digest}"):
        _build(hospital, tmp_path / "third", seed=1, expect_sha256=digest, select=Select(questions=40))
    assert not list((tmp_path / "third").iterdir())


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


def test_a_selection_is_drawn_and_told(hospital, tmp_path):
    every = _build(hospital, tmp_path / "every")
    rule = {"questions": {"open": 4, "closed": 2}, "max_per_image": 2}
    drawn = _build(hospital, tmp_path / "drawn", select=Select(**rule))
    assert drawn["answer_type"].value_counts().sort("count")["count"].to_list() == [2, 4]
    assert drawn["image_id"].value_counts()["count"].max() <= 2
    assert drawn.equals(every.filter(pl.col("sample_id").is_in(drawn["sample_id"].to_list())))
    images = {path.name for path in (tmp_path / "drawn" / "images").iterdir()}
    assert images == {Path(name).name for name in drawn["image_file"]}  # no others are copied
    audit = pl.read_parquet(tmp_path / "drawn" / "audit.parquet")
    assert audit["step"].to_list()[:3] == ["language", "questions per picture", "draw"]
    assert audit.filter(step="draw")["kept"].item() == 6


def test_images_outside_the_selection_are_not_read(source, tmp_path):
    names = {row["img_name"] for row in json.loads((source / "test.json").read_text()) if row["q_lang"] == "en"}
    chosen = _build(source, tmp_path / "all", select=Select(questions=1, max_per_image=1))["image_id"].item()
    for name in names:
        if name.split("/")[0] != chosen:
            (source / "imgs" / name).unlink()
    again = _build(source, tmp_path / "one", select=Select(questions=1, max_per_image=1))
    assert again["image_id"].to_list() == [chosen]
    with pytest.raises(DataError, match="no such image file"):  # and one that is drawn is not passed over in silence
        _build(source, tmp_path / "two", select=Select(questions=2, max_per_image=1))


def _picture(value, format_name="PNG"):
    buffer = io.BytesIO()
    Image.new("L", (4, 4), value).save(buffer, format=format_name)
    return buffer.getvalue()


@pytest.fixture
def embedded(tmp_path, monkeypatch):
    """Return a manifest of rows whose images are `contents`, as a table with embedded images has them."""

    def make(*contents):
        rows = [
            Row(
                **{"official_id": str(i), "question": "What?", "reference_answers": ("CT",), "answer_type": "open"},
                **{"content_family": None, "options": (), "modality": None, "location": None},
                **{"image": content, "image_name": hashlib.sha256(content).hexdigest(), "source_row": i},
            )
            for i, content in enumerate(contents)
        ]
        table = Loaded(file=Path("/official/test.parquet"), rows=rows, audit=[])
        loader = SimpleNamespace(load_rows=lambda folder, split, settings: table)
        monkeypatch.setattr(build_manifest.plugins, "load_module", lambda module: loader)
        return _build(tmp_path, tmp_path / "out")

    return make


def test_embedded_images_are_files_of_their_own_format(embedded, tmp_path):
    png, bmp, jpg = _picture(7), _picture(7, "BMP"), _picture(200, "JPEG")
    manifest = embedded(png, jpg, bmp, png)
    for name, content, ending in zip(
        manifest["image_file"], (png, jpg, bmp, png), ("png", "jpg", "bmp", "png"), strict=True
    ):
        assert name == f"images/{hashlib.sha256(content).hexdigest()}.{ending}"
        assert (tmp_path / "out" / name).read_bytes() == content
    assert len(list((tmp_path / "out" / "images").iterdir())) == 3
    first, second, third, fourth = manifest["image_id"]
    assert first == third == fourth != second  # the same pixels, however they are stored


def test_a_broken_embedded_image_is_named_by_file_and_row(embedded):
    with pytest.raises(DataError) as error:
        embedded(_picture(1), b"no image")
    assert str(error.value).startswith("/official/test.parquet: row 1 (id 1): an image of 8 bytes: cannot be decoded")


@pytest.mark.skipif(not REAL.is_dir(), reason="the real SLAKE is not on this machine (DUALREAD_SHARED)")
def test_the_real_slake(tmp_path):
    manifests, n_pairs = {}, {}
    for split in ROLES:
        manifests[split] = _build(REAL, tmp_path / split, split)
        pairs = tmp_path / f"pairs-{split}"
        pairs.mkdir()
        pair_donors.compute(
            PairDonorsSpec(dataset="slake", split="test", match_on=["modality"]), {"manifest": tmp_path / split}, pairs
        )
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
    check_leakage.compute(NoSpec(), {split: tmp_path / split for split in ROLES}, tmp_path / "leakage")
    found = pl.read_parquet(tmp_path / "leakage" / "leakage.parquet")
    assert found.select(pl.sum("n_images"), pl.sum("n_near")).row(0) == (0, 0)
