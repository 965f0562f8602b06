import hashlib
import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from PIL import Image

from dualread.artifacts.tables import read_table
from dualread.data.datasets import slake
from dualread.data.datasets.base import Loaded, Picture, Row
from dualread.data.images import open_image, pixel_sha256
from dualread.data.questions import build, pictures
from dualread.errors import DataError
from dualread.schema.columns import MANIFEST, THUMBNAILS
from dualread.schema.data import Select
from dualread.stages import build_manifest, draw_phantom
from tests import specs

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
        copy = tmp_path / "out" / row["image_files"][0]
        assert copy.read_bytes() == original.read_bytes()
        assert row["image_files"] == [f"images/{hashlib.sha256(original.read_bytes()).hexdigest()}.jpg"]
        assert row["pixel_sha256s"][0] == pixel_sha256(open_image(original))
        assert row["image_id"] == f"xmlab{record['img_id']}"
    assert len(list((tmp_path / "out" / "images").iterdir())) == manifest["image_id"].n_unique() == 6
    assert manifest.height == 48
    thumbnails = dict(read_table(tmp_path / "out" / "thumbnails.parquet", THUMBNAILS).iter_rows())
    assert thumbnails == {
        row["pixel_sha256s"][0]: pictures.thumbnail(open_image(tmp_path / "out" / row["image_files"][0]))
        for row in manifest.iter_rows(named=True)
    }


def test_the_digest_is_written_said_and_may_be_expected(hospital, tmp_path):
    manifest = _build(hospital, tmp_path / "first")
    digest = (tmp_path / "first" / "manifest_digest.txt").read_text().strip()
    assert digest == build.digest(manifest)
    (tmp_path / "second").mkdir()
    said = build_manifest.compute(_spec(expect_sha256=digest), {"source": hospital}, tmp_path / "second")
    assert said.startswith("read 48 questions from test.json, wrote 48 rows (")
    assert said.endswith(f" on 6 pictures, digest {digest}")
    with pytest.raises(DataError, match=rf"has the digest (?!{digest})[0-9a-f]{{64}}, expected {digest}"):
        _build(hospital, tmp_path / "third", seed=1, expect_sha256=digest, select=Select(questions=40))
    assert not list((tmp_path / "third").iterdir())


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


def test_a_selection_is_drawn_and_told(hospital, tmp_path):
    every = _build(hospital, tmp_path / "every")
    rule = {"questions": {"open": 4, "closed": 2}, "max_per_image": 2}
    drawn = _build(hospital, tmp_path / "drawn", select=Select(**rule))
    assert drawn["answer_type"].value_counts().sort("count")["count"].to_list() == [2, 4]
    assert drawn["image_id"].value_counts()["count"].max() <= 2
    assert drawn.equals(every.filter(pl.col("sample_id").is_in(drawn["sample_id"].to_list())))
    images = {path.name for path in (tmp_path / "drawn" / "images").iterdir()}
    assert images == {Path(name).name for name in drawn["image_files"].explode()}  # no others are copied
    audit = pl.read_parquet(tmp_path / "drawn" / "audit.parquet")
    assert audit["step"].to_list()[:3] == ["language", "questions per picture", "draw"]
    assert audit.filter(step="draw")["kept"].item() == 6


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
                **{"images": (Picture(content, hashlib.sha256(content).hexdigest()),), "source_row": i},
            )
            for i, content in enumerate(contents)
        ]
        table = Loaded(file=Path("/official/test.parquet"), rows=rows, audit=[])
        loader = SimpleNamespace(
            __name__="made",
            HUB_FILES=["test"],
            Settings=slake.Settings,
            load_rows=lambda folder, split, settings: table,
        )
        monkeypatch.setattr(build_manifest.plugins, "load_module", lambda module: loader)
        return _build(tmp_path, tmp_path / "out")

    return make


def test_embedded_images_are_files_of_their_own_format_and_a_broken_one_is_named(embedded, tmp_path):
    contents = [_picture(7), _picture(200, "JPEG"), _picture(7, "BMP"), _picture(7)]
    manifest = embedded(*contents)
    for name, content, ending in zip(
        manifest["image_files"].explode(), contents, ("png", "jpg", "bmp", "png"), strict=True
    ):
        assert name == f"images/{hashlib.sha256(content).hexdigest()}.{ending}"
        assert (tmp_path / "out" / name).read_bytes() == content
    assert len(list((tmp_path / "out" / "images").iterdir())) == 3
    first, second, third, fourth = manifest["image_id"]
    assert first == third == fourth != second  # the same pixels, however they are stored
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(DataError, match=r"^/official/test\.parquet: row 1 \(id 1\): an image of 8 bytes: cannot be"):
        embedded(_picture(1), b"no image")
