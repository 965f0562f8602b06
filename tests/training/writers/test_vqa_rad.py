import io
import json
from collections import Counter
from dataclasses import replace

import pytest
from PIL import Image
from tests.training.writers.donors import n_pairs

from dualread.training.writers._medpix import TWINS
from dualread.training.writers.base import Hospital
from dualread.training.writers.vqa_rad import official_files

HOSPITAL = Hospital(name="rad", seed=0, images={"train": 8, "test": 12}, size=32, questions_per_image=6)
KEYS = (
    *("qid", "phrase_type", "qid_linked_id", "image_case_url", "image_name", "image_organ", "evaluation", "question"),
    *("question_rephrase", "question_relation", "question_frame", "question_type", "answer", "answer_type"),
)


@pytest.fixture(scope="module")
def files():
    return dict(official_files(HOSPITAL))


@pytest.fixture(scope="module")
def rows(files):
    return json.loads(files["VQA_RAD Dataset Public.json"])


def _is_test(row):
    return row["phrase_type"].startswith("test_")


def test_images_are_named_by_the_rows(files, rows):
    images = {name: content for name, content in files.items() if name.endswith(".jpg")}
    assert len(images) == 24 == len(set(images.values()))  # 8 + 12, and four twins
    assert {f"VQA_RAD Image Folder/{row['image_name']}" for row in rows} == set(images)
    sizes = {name: Image.open(io.BytesIO(content)).size for name, content in images.items()}
    twins = {f"VQA_RAD Image Folder/synpic{number}.jpg" for number in TWINS}
    assert {name for name, size in sizes.items() if size == (64, 64)} == twins
    assert {size for name, size in sizes.items() if name not in twins} == {(32, 32)}


def test_rows_have_the_official_keys_and_unique_ids(rows):
    assert all(tuple(row) == KEYS for row in rows)
    assert [row["qid"] for row in rows] == [str(i) for i in range(len(rows))]
    assert {row["phrase_type"] for row in rows} == {"freeform", "para", "test_freeform", "test_para"}
    assert {row["image_organ"] for row in rows} == {"HEAD", "CHEST", "ABD"}


def test_a_question_and_not_an_image_belongs_to_a_split(rows):
    tested = {row["image_name"] for row in rows if _is_test(row)}
    trained = {row["image_name"] for row in rows if not _is_test(row)}
    assert len(tested) == 16  # 12, and four twins
    assert len(tested & trained) == 12
    # Of six questions about an image of test, the third and the last are in train; about a twin none.
    freeform = Counter(row["image_name"] for row in rows if row["phrase_type"] == "test_freeform")
    assert Counter(freeform.values()) == {4: 12, 6: 4}


def test_without_a_train_split_every_row_is_tested():
    only = dict(official_files(replace(HOSPITAL, images={"test": 3})))["VQA_RAD Dataset Public.json"]
    assert all(_is_test(row) for row in json.loads(only))


def test_a_paraphrase_asks_the_same(rows):
    linked = {}
    for row in rows:
        if row["phrase_type"].endswith("freeform"):
            linked[row["qid_linked_id"]] = row
    paraphrases = [row for row in rows if row["phrase_type"].endswith("para")]
    assert paraphrases
    for row in paraphrases:
        original = linked[row["qid_linked_id"]]
        assert str(row["answer"]).strip() == str(original["answer"]).strip()
        assert row["image_name"] == original["image_name"]
        assert row["question"] != original["question"]


def test_the_defects_are_there(rows):
    assert Counter(row["answer_type"] for row in rows)["CLOSED "] == 1
    assert {row["answer_type"] for row in rows} == {"OPEN", "CLOSED", "CLOSED "}
    answers = [row["answer"] for row in rows]
    assert any(type(answer) is int for answer in answers)
    assert any(isinstance(answer, str) and answer.isdigit() for answer in answers)
    assert sum(isinstance(answer, str) and answer.endswith("\t") for answer in answers) == 1
    assert sum(row["question"].endswith("\t") for row in rows) == 1
    types = Counter(row["question_type"] for row in rows)
    assert (types["ATRIB"], types["PRSE"], types["Color"]) == (1, 1, 1)
    *others, last = rows
    assert last["phrase_type"] == "freeform"
    same = ("image_name", "question", "answer")
    repeated = [row for row in others if all(row[key] == last[key] for key in same)]
    assert [row["phrase_type"] for row in repeated] == ["test_freeform"]


def test_answers_are_written_in_many_ways(rows):
    answers = {row["answer"] for row in rows if isinstance(row["answer"], str)}
    assert {"Yes", "No"} <= answers
    assert not {"yes", "no"} & answers
    assert any(answer.islower() for answer in answers)


def test_donors_exist(rows):
    assert n_pairs([(row["image_name"], row["question"], row["answer"]) for row in rows if _is_test(row)]) > 10
