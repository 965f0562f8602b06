import json
import os
from pathlib import Path

import pytest

from dualread.data.datasets.slake import load_rows
from dualread.errors import DataError

SHARED = Path(os.environ.get("DUALREAD_SHARED", Path(__file__).resolve().parents[3] / ".." / "shared"))
REAL = SHARED / "data" / "slake"


def _record(**changes):
    return {
        "img_id": 1,
        "img_name": "xmlab1/source.jpg",
        "question": "What is it?",
        "answer": "MRI",
        "q_lang": "en",
        "modality": "MRI",
        "location": "Brain_Tissue",
        "answer_type": "OPEN",
        "base_type": "vqa",
        "content_type": "Modality",
        "triple": ["vhead", "_", "_"],
        "qid": 7,
    } | changes


def _write(folder, records, name="test.json"):
    (folder / name).write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")


def test_fields_of_a_row(tmp_path):
    _write(tmp_path, [_record(q_lang="zh"), dict(reversed(_record(content_type="KG", answer="  two  words ").items()))])
    loaded = load_rows(tmp_path, "test", {"language": "en"})
    (row,) = loaded.rows
    assert (row.official_id, row.source_row, row.question) == ("7", 1, "What is it?")
    assert row.reference_answers == ("  two  words ",)  # verbatim; grading normalizes it
    assert (row.answer_type, row.content_family, row.modality, row.options) == ("open", "knowledge", "mri", ())
    assert row.image == tmp_path / "imgs" / "xmlab1" / "source.jpg"
    assert row.image_name == "xmlab1"
    (step,) = loaded.audit
    assert (step.step, step.kept, step.dropped) == ("language", 1, 1)


@pytest.mark.parametrize("name", ["validation.json", "validate.json"])
def test_the_validation_file_may_have_either_name(tmp_path, name):
    _write(tmp_path, [_record()], name)
    assert load_rows(tmp_path, "validation", {}).file == tmp_path / name


def test_two_validation_files_must_agree(tmp_path):
    _write(tmp_path, [_record()], "validation.json")
    _write(tmp_path, [_record()], "validate.json")
    assert len(load_rows(tmp_path, "validation", {}).rows) == 1
    _write(tmp_path, [_record(qid=8)], "validate.json")
    with pytest.raises(DataError, match=r"validation\.json and validate\.json differ"):
        load_rows(tmp_path, "validation", {})


@pytest.mark.skipif(not REAL.is_dir(), reason="the real SLAKE is not on this machine (DUALREAD_SHARED)")
@pytest.mark.parametrize(
    ("split", "n_rows", "n_images", "n_open"),
    [("train", 4919, 450, 2976), ("validation", 1053, 96, 631), ("test", 1061, 96, 645)],
)
def test_counts_of_the_real_data(split, n_rows, n_images, n_open):
    rows = load_rows(REAL, split, {"language": "en"}).rows
    assert len(rows) == n_rows
    assert len({row.image_name for row in rows}) == n_images
    assert sum(row.answer_type == "open" for row in rows) == n_open
    assert {row.modality for row in rows} == {"ct", "mri", "x-ray"}
