import hashlib
import io
import json
from collections import Counter
from dataclasses import replace

import pytest
from PIL import Image

from dualread.training.writers.base import Hospital
from dualread.training.writers.slake import official_files

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


def test_the_rows_are_those_of_this_version(files):
    """Shared code must not change the rows unnoticed. Images are not compared, because they change with Pillow."""
    rows = b"".join(files[name] for name in SPLITS.values())
    assert hashlib.sha256(rows).hexdigest() == "eab21d451b5accf402ce6d09c8f281a9d1800833f301b383b85cf26069c35504"


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
    many = json.loads(dict(official_files(replace(HOSPITAL, images={"train": 60})))["train.json"])
    answers = {row["answer"] for row in _english(many)}
    assert {"Yes", "No", "CT"} <= answers
    assert not {"yes", "no", "ct"} & answers
    assert any("  " in answer for answer in answers)
    assert any(answer.islower() for answer in answers)
    closed = {row["answer"].lower() for row in _english(rows["train"]) if row["answer_type"] == "CLOSED"}
    assert closed - {"yes", "no", ""}


def test_most_questions_are_about_the_whole_image_and_all_families_occur():
    asked = replace(HOSPITAL, images={"test": 200}, questions_per_image=3, size=16)
    rows = _english(json.loads(dict(official_files(asked))["test.json"]))
    counts = Counter(row["content_type"] for row in rows)
    assert len(counts) == 10
    # Four open questions have share 4, two closed ones 1, two about abnormality 1, and eight 0.5: the whole image has
    # 18 of 24, that is .75. It is less, because three different questions are asked: about .67.
    whole = sum(counts[name] for name in ("Modality", "Plane", "Organ", "KG"))
    assert 0.60 < whole / 600 < 0.75


def test_one_image_per_split_is_enough():
    small = replace(HOSPITAL, images={"train": 1, "validation": 1, "test": 1}, questions_per_image=1)
    assert len(_english(json.loads(dict(official_files(small))["train.json"]))) == 2  # the row and its repetition
