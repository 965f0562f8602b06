import hashlib
import io
import json
from collections import Counter
from dataclasses import replace

import pytest
from PIL import Image

from dualread.data.writers.base import Hospital
from dualread.data.writers.slake import official_files

HOSPITAL = Hospital(name="hospital", seed=0, images={"train": 24, "validation": 4, "test": 8})
SPLITS = {"train": "train.json", "validation": "validate.json", "test": "test.json"}
KEYS = {
    *("img_id", "img_name", "question", "answer", "q_lang", "location", "modality", "answer_type", "base_type"),
    *("content_type", "triple", "qid"),
}


@pytest.fixture(scope="module")
def files():
    return dict(official_files(HOSPITAL))


@pytest.fixture(scope="module")
def rows(files):
    return {split: json.loads(files[name]) for split, name in SPLITS.items()}


def _english(rows):
    return [row for row in rows if row["q_lang"] == "en"]


def test_the_same_settings_give_the_same_bytes(files):
    assert dict(official_files(HOSPITAL)) == files
    assert dict(official_files(replace(HOSPITAL, seed=1))) != files
    assert dict(official_files(replace(HOSPITAL, name="clinic"))) != files


def test_the_rows_are_those_of_the_first_version(files):
    """A change of shared code must not change the rows. Images are not compared, because they change with Pillow."""
    rows = b"".join(files[name] for name in SPLITS.values())
    assert hashlib.sha256(rows).hexdigest() == "7f01b24378498d982b9c3cd073878709a6a4d0e7d32832e5ccf867fb5d2d17ff"


def test_every_image_is_a_jpeg_of_the_asked_size(files):
    images = {name: content for name, content in files.items() if name.startswith("imgs/")}
    assert set(images) == {f"imgs/xmlab{i}/source.jpg" for i in range(36)}
    for content in images.values():
        image = Image.open(io.BytesIO(content))
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (64, 64))
    assert len(set(images.values())) == 36


def test_rows_have_the_official_keys_in_varying_order(rows):
    everything = [row for split in rows.values() for row in split]
    assert all(set(row) == KEYS for row in everything)
    assert len({tuple(row) for row in everything}) == 3
    assert {row["answer_type"] for row in everything} == {"OPEN", "CLOSED"}
    assert {row["modality"] for row in everything} == {"CT", "MRI", "X-Ray"}
    assert "KG" in {row["content_type"] for row in everything}
    assert all((row["base_type"] == "kvqa") == (row["content_type"] == "KG") for row in everything)
    assert [row["qid"] for row in everything] == list(range(len(everything)))


def test_english_rows_do_not_share_images_across_splits_and_chinese_rows_do(rows):
    english = {split: {row["img_id"] for row in _english(of_split)} for split, of_split in rows.items()}
    assert {split: len(ids) for split, ids in english.items()} == HOSPITAL.images
    assert len(set.union(*english.values())) == 36
    anything = {split: {row["img_id"] for row in of_split} for split, of_split in rows.items()}
    assert anything["train"] & english["test"]
    assert anything["test"] & (english["train"] | english["validation"])


def test_questions_per_image_and_the_defects_of_train(rows):
    per_image = Counter(row["img_id"] for row in _english(rows["test"]))
    assert set(per_image.values()) == {8}
    train = _english(rows["train"])
    assert len(train) == 24 * 8 + 7  # seven rows repeat
    assert [row["answer"] for row in train].count("") == 1
    asked = Counter((row["img_id"], row["question"]) for row in train)
    assert sum(n - 1 for n in asked.values()) == 7
    assert not any(row["answer"] == "" for split in ("validation", "test") for row in rows[split])


def test_answers_vary_in_case_and_space(rows):
    answers = {row["answer"] for row in _english(rows["train"])}
    assert {"Yes", "No", "CT"} <= answers
    assert not {"yes", "no", "ct"} & answers
    assert any("  " in answer for answer in answers)
    assert any(answer.islower() for answer in answers)
    closed = {row["answer"].lower() for row in _english(rows["train"]) if row["answer_type"] == "CLOSED"}
    assert closed - {"yes", "no", ""}


def test_one_image_per_split_is_enough():
    small = replace(HOSPITAL, images={"train": 1, "validation": 1, "test": 1}, questions_per_image=1)
    assert len(_english(json.loads(dict(official_files(small))["train.json"]))) == 2  # the row and its repetition
