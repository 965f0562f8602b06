import dataclasses
import json

import pytest

from dualread import plugins
from dualread.data.datasets.rexvqa import load_rows
from dualread.errors import ConfigError

VIEW = "deid_png/GRDN1/GRDN2/studies/1.2/series/1.3/instances/1.4.png"


def _record(**changes):
    return {
        "question": "Which finding is present?",
        "options": ["A. Normal heart", "B. Pneumonia", "C. Fracture", "D. Effusion"],
        "correct_answer": "B",
        "correct_answer_explanation": "LEAK explanation",
        "task_name": "Presence Assessment",
        "category": "LEAK category",
        "class": "LEAK class",
        "subcategory": "LEAK subcategory",
        "study_id": "LEAK study",
        "PatientID": "LEAK patient",
        "PatientAge": "LEAK age",
        "Indication": "LEAK indication",
        "Comparison": "LEAK comparison",
        "Findings": "LEAK right lower lobe consolidation",
        "Impression": "LEAK pneumonia",
        "ImagePath": [f"../{VIEW}", "../deid_png/GRDN1/lateral.png"],
        "ImageViewPosition": ["PA", "LATERAL"],
    } | changes


def _write(folder, records, name="test_vqa_data.json"):
    (folder / "metadata").mkdir(exist_ok=True)
    (folder / "metadata" / name).write_text(json.dumps(records), encoding="utf-8")


def _load(folder, settings=(), **records):
    _write(folder, records)
    return load_rows(folder, "test", dict(settings))


def test_fields_of_a_row(tmp_path):
    assert plugins.declared("datasets", "rexvqa", "HUB_FILES")["test"] == ("metadata/test_vqa_data.json",)
    loaded = _load(tmp_path, q1=_record(), q2=_record(task_name=None))
    row, other = loaded.rows
    assert loaded.file == tmp_path / "metadata" / "test_vqa_data.json"
    assert (row.official_id, row.source_row, row.question) == ("q1", 0, "Which finding is present?")
    assert row.options == ("Normal heart", "Pneumonia", "Fracture", "Effusion")
    assert (row.reference_answers, row.answer_type) == (("Pneumonia",), "closed")
    assert (row.content_family, row.modality, row.location) == ("presence assessment", "x-ray", "chest")
    assert row.image == tmp_path / VIEW  # the first view, from metadata/ upwards
    assert row.image_name == VIEW
    assert (other.official_id, other.source_row, other.content_family) == ("q2", 1, None)
    assert [(step.step, step.kept, step.dropped) for step in loaded.audit] == [
        ("four options", 2, 0),
        ("distinct options", 2, 0),
        ("gold option", 2, 0),
    ]


def test_no_field_of_a_row_holds_the_report_or_the_explanation(tmp_path):
    (row,) = _load(tmp_path, q1=_record()).rows
    for field in dataclasses.fields(row):
        assert "LEAK" not in str(getattr(row, field.name)), field.name


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_the_three_splits_have_official_files(tmp_path, split):
    name = {"validation": "valid"}.get(split, split)
    _write(tmp_path, {"q": _record()}, f"{name}_vqa_data.json")
    assert len(load_rows(tmp_path, split, {}).rows) == 1


def test_images_may_lie_deeper_in_the_source_folder(tmp_path):
    (row,) = _load(tmp_path, {"images": "unpacked/images"}, q=_record()).rows
    assert row.image == tmp_path / "unpacked" / "images" / VIEW
    assert row.image_name == VIEW
    for outside in ("../images", "/images", ""):
        with pytest.raises(ConfigError, match=r"settings\.images is .*, expected a folder inside the source folder"):
            _load(tmp_path, {"images": outside}, q=_record())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["A) w", "B) x", "C) y", "D) z"], ("w", "x", "y", "z")),
        (["(A) w", "(B) x", "(C) y", "(D) z"], ("w", "x", "y", "z")),
        (["A: w ", " B:x", "C:y", "D: z"], ("w", "x", "y", "z")),
        (["w", "x", "y", "z"], ("w", "x", "y", "z")),
        (["w", "x", "C. difficile", "z"], ("w", "x", "C. difficile", "z")),
        (["B. w", "A. x", "C. y", "D. z"], ("B. w", "A. x", "C. y", "D. z")),
    ],
)
def test_labels_are_removed_only_if_every_option_has_its_own(tmp_path, options, expected):
    (row,) = _load(tmp_path, q=_record(options=options)).rows
    assert row.options == expected
    assert row.reference_answers == (expected[1],)
