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


def test_an_empty_modality_is_null(tmp_path):
    _write(tmp_path, [_record(modality=" ")])
    assert load_rows(tmp_path, "test", {}).rows[0].modality is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": None}, r"test\.json: row 1: qid 7: answer is None, expected text"),
        ({"answer": 3}, r"row 1: qid 7: answer is 3, expected text"),
        ({"qid": "7"}, r"row 1: qid is '7', expected an integer"),
        ({"answer_type": "HALF"}, r"answer_type is 'HALF', expected OPEN or CLOSED"),
        ({"content_type": "Weather"}, r"content_type is 'Weather'"),
        ({"img_name": " "}, r"img_name is"),
        ({"q_lang": None}, r"row 1: q_lang is None"),
    ],
)
def test_a_broken_row_is_named(tmp_path, changes, message):
    _write(tmp_path, [_record(qid=6), _record(**changes)])
    with pytest.raises(DataError, match=message):
        load_rows(tmp_path, "test", {})


def test_missing_keys_of_ten_rows_are_listed_together(tmp_path):
    broken = {key: value for key, value in _record().items() if key != "question"}
    _write(tmp_path, [broken] * 12)
    with pytest.raises(DataError, match=r"(?s)row 0: qid 7: question is None.*row 9: .*\.\.\. and 2 more"):
        load_rows(tmp_path, "test", {})


def test_files_in_another_format_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"no test\.json\. Expected the official SLAKE files"):
        load_rows(tmp_path, "test", {})
    (tmp_path / "test.json").write_text("[{", encoding="utf-8")
    with pytest.raises(DataError, match=r"test\.json: not JSON"):
        load_rows(tmp_path, "test", {})
    _write(tmp_path, {"rows": []})
    with pytest.raises(DataError, match="holds a dict, expected a list"):
        load_rows(tmp_path, "test", {})
    _write(tmp_path, ["text"])
    with pytest.raises(DataError, match="row 0: is a str, expected an object"):
        load_rows(tmp_path, "test", {})


def test_an_unknown_language_is_refused(tmp_path):
    _write(tmp_path, [_record()])
    with pytest.raises(DataError, match=r"no row has q_lang 'fr'\. Languages in the file: en"):
        load_rows(tmp_path, "test", {"language": "fr"})


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
