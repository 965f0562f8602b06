"""Images of a user's own table: what is stored, counted and said of DICOM, of 16 bits, of frames, of black pictures."""

import json

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dualread.artifacts.tables import read_table
from dualread.data.images import open_image
from dualread.errors import DataError
from dualread.schema.columns import MANIFEST
from dualread.stages import build_manifest
from tests import specs
from tests.data.dicoms import PATIENT, dicom

# Gray levels 20, 90, 140, 200 of 255, in 12 bits: level * 4095 // 255.
SHOWN, TWELVE = [20, 90, 140, 200], np.array([[321, 1445, 2248, 3211]])


def _table(folder, *images):
    rows = [{"id": i, "question": "?", "reference_answers": ["yes"], "image": name} for i, name in enumerate(images)]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _built(folder, **changes):
    out = folder.parent / "out"
    out.mkdir()
    said = build_manifest.compute(specs.manifest("table", **changes), {"source": folder}, out)
    audit = {row["step"]: row["reason"] for row in pl.read_parquet(out / "audit.parquet").to_dicts()}
    manifest = read_table(out / "manifest.parquet", MANIFEST)
    levels = [np.asarray(open_image(out / name))[0, :, 0].tolist() for name in manifest["image_files"].explode()]
    return out, manifest, audit, levels, said


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def test_of_dicom_the_picture_is_stored_and_nothing_about_the_patient(folder, capsys):
    (folder / "DOE_JANE").mkdir()
    cine = np.stack([TWELVE * 0, TWELVE])
    for name, values in (("IM0", TWELVE), ("IM1", TWELVE + 100), ("cine.dcm", cine)):
        (folder / "DOE_JANE" / name).write_bytes(dicom(values, WindowCenter=2048, WindowWidth=4096))
    _table(folder, "DOE_JANE/IM0", "DOE_JANE/IM1", "DOE_JANE/cine.dcm#1")
    out, manifest, audit, levels, _ = _built(folder)
    assert levels[0] == SHOWN
    assert levels[2] == [0] * 4
    assert manifest["image_files"].explode().str.ends_with(".png").all()
    assert audit["how pictures are shown"] == (
        "3 pictures: DICOM shown by its first window; 1 pictures: a named frame is shown"
    )
    seen = "1 of 3 pictures are hard to see; 1: the picture has a single color"
    assert audit["pictures hard to see"].startswith(seen)
    assert "warning: table/test: 1 of 3 pictures are hard to see" in capsys.readouterr().err
    stored = [path for path in out.rglob("*") if path.is_file()]
    assert sum(path.suffix == ".png" for path in stored) == 3
    for path in stored:
        assert not any(name in path.read_bytes() for name in (PATIENT.encode(), b"DOE_JANE", b"4711", b"DICM"))
    tables = (manifest.write_json(), pl.read_parquet(out / "audit.parquet").write_json())
    assert not any("DOE" in text for text in tables)


def test_twelve_bits_are_refused_and_then_read_as_the_data_set_says(folder):
    for name in ("a.png", "b.tif"):
        Image.fromarray(TWELVE.astype(np.uint16) + (name == "b.tif")).save(folder / name)
    _table(folder, "a.png", "b.tif")
    with pytest.raises(DataError, match=r"(?s)a\.png: its 16-bit gray values end at 3211.*b\.tif: its 16-bit"):
        build_manifest.compute(specs.manifest("table"), {"source": folder}, folder.parent)
    _, manifest, _, levels, _ = _built(folder, bits=12)
    assert levels == [SHOWN, SHOWN]
    assert manifest["image_files"].explode().str.ends_with(".png").all()  # stages that follow know nothing of the bits


def test_ordinary_images_are_stored_unchanged_and_counted(folder, capsys):
    Image.fromarray(np.array([SHOWN], dtype=np.uint8)).save(folder / "x.png")
    _table(folder, "x.png")
    out, manifest, audit, _, _ = _built(folder)
    assert (out / manifest["image_files"].explode()[0]).read_bytes() == (folder / "x.png").read_bytes()
    assert audit["pictures hard to see"] == "0 of 1 pictures are hard to see"
    assert "how pictures are shown" not in audit
    assert "warning" not in capsys.readouterr().err


def test_a_picture_behind_a_link_out_of_the_folder_is_read_and_counted(folder):
    Image.new("L", (4, 4), 7).save(folder.parent / "elsewhere.png")
    (folder / "x.png").symlink_to("../elsewhere.png")
    _table(folder, "x.png")
    _, _, audit, _, _ = _built(folder)
    assert audit["linked pictures"].startswith("1 of 1 pictures are behind links out of the data set's folder: ")
