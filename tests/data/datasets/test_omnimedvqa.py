import json

import pytest

from dualread import plugins
from dualread.data.datasets.omnimedvqa import load_rows


def _record(**changes):
    return {
        "dataset": "ACRIMA",
        "question_id": "ACRIMA_0000",
        "question_type": "Modality Recognition",
        "question": "What imaging technique was employed?",
        "gt_answer": "Fundus imaging",
        "image_path": "Images/ACRIMA/Im553_g_ACRIMA.png",
        "option_A": "PET scan",
        "option_B": "CT scan",
        "option_C": "Blood test",
        "option_D": "Fundus imaging",
        "modality_type": "Fundus Photography",
    } | changes


def _write(folder, records, name="ACRIMA.json"):
    questions = folder / "QA_information" / "Open-access"
    questions.mkdir(parents=True, exist_ok=True)
    (questions / name).write_text(json.dumps(records), encoding="utf-8")


def _without(record, *keys):
    return {key: value for key, value in record.items() if key not in keys}


def test_fields_of_a_row(tmp_path):
    assert plugins.declared("datasets", "omnimedvqa", "HUB_FILES") == {"test": ("OmniMedVQA.zip",)}
    _write(tmp_path, [_record()])
    loaded = load_rows(tmp_path, "test", {})
    (row,) = loaded.rows
    assert loaded.file == tmp_path / "QA_information" / "Open-access"
    assert (row.official_id, row.source_row) == ("ACRIMA_0000", 0)
    assert row.question == "What imaging technique was employed?"
    assert row.options == ("PET scan", "CT scan", "Blood test", "Fundus imaging")
    assert (row.reference_answers, row.answer_type) == (("Fundus imaging",), "closed")
    assert (row.modality, row.content_family, row.location) == ("fundus photography", "modality recognition", None)
    assert row.image == tmp_path / "Images" / "ACRIMA" / "Im553_g_ACRIMA.png"
    assert row.image_name == "Images/ACRIMA/Im553_g_ACRIMA.png"
    assert [(step.step, step.kept, step.dropped) for step in loaded.audit] == [
        ("four options", 1, 0),
        ("distinct options", 1, 0),
        ("gold option", 1, 0),
    ]


def test_the_archive_unpacks_into_a_folder_of_its_own(tmp_path):
    _write(tmp_path / "OmniMedVQA", [_record()])
    (row,) = load_rows(tmp_path, "test", {}).rows
    assert row.image == tmp_path / "OmniMedVQA" / "Images" / "ACRIMA" / "Im553_g_ACRIMA.png"


def test_rows_of_all_files_are_numbered_together_in_the_order_of_the_file_names(tmp_path):
    _write(tmp_path, [_record(question_id="b0"), _record(question_id="b1")], "b.json")
    _write(tmp_path, [_record(question_id="a0")], "a.json")
    restricted = tmp_path / "QA_information" / "Restricted-access"
    restricted.mkdir()
    (restricted / "AIDA.json").write_text(json.dumps([_record(question_id="AIDA_0")]))
    rows = load_rows(tmp_path, "test", {}).rows
    assert [(row.source_row, row.official_id) for row in rows] == [(0, "a0"), (1, "b0"), (2, "b1")]


@pytest.mark.parametrize("gold", ["fundus IMAGING", "Fundus imaging.", " Fundus imaging . "])
def test_the_gold_answer_is_matched_ignoring_case_and_a_trailing_dot(tmp_path, gold):
    _write(tmp_path, [_record(gt_answer=gold)])
    assert load_rows(tmp_path, "test", {}).rows[0].reference_answers == ("Fundus imaging",)
    _write(tmp_path, [_record(gt_answer="fundus imaging", option_D=" FUNDUS imaging.")])
    assert load_rows(tmp_path, "test", {}).rows[0].reference_answers == ("FUNDUS imaging.",)


def test_rows_that_cannot_be_asked_are_dropped_and_counted(tmp_path):
    yes_no = _record(question_id="two", option_A="Yes", option_B="No", gt_answer="No")
    records = [
        _record(),
        _without(yes_no, "option_C", "option_D"),
        _record(question_id="null", option_A=None),
        _record(question_id="blank", option_A=" "),
        _record(question_id="same", option_A="the ct scans"),
        _record(question_id="no gold", gt_answer="Fundus"),
        _record(question_id="letter", gt_answer="D"),
    ]
    _write(tmp_path, records)
    loaded = load_rows(tmp_path, "test", {})
    assert [row.official_id for row in loaded.rows] == ["ACRIMA_0000"]
    assert [(step.kept, step.dropped) for step in loaded.audit] == [(4, 3), (3, 1), (1, 2)]
    assert loaded.audit[-1].reason == "dropped where gt_answer is none of the options"


def test_one_official_row_has_its_modality_under_another_key(tmp_path):
    other = _without(_record(question_id="1", modality="CT(Computed Tomography)"), "modality_type", "question_type")
    _write(tmp_path, [other, _without(_record(question_id="2"), "modality_type")])
    first, second = load_rows(tmp_path, "test", {}).rows
    assert (first.modality, first.content_family) == ("ct(computed tomography)", None)
    assert second.modality is None
