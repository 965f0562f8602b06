import io
import json
from collections import Counter

import pytest
from PIL import Image

from dualread.models.prompts import shows_options
from dualread.training.writers.base import Hospital
from dualread.training.writers.rexvqa import official_files

HOSPITAL = Hospital(name="rex", seed=0, images={"test": 12}, size=32, questions_per_image=2)


@pytest.fixture(scope="module")
def files():
    return dict(official_files(HOSPITAL))


@pytest.fixture(scope="module")
def rows(files):
    return json.loads(files["metadata/test_vqa_data.json"])


def test_every_image_is_a_radiograph_of_one_channel(files):
    images = {name: content for name, content in files.items() if name.startswith("deid_png/")}
    assert len(images) == 12 + 6  # every other case has a second view
    assert len(set(images.values())) == 18
    for content in images.values():
        image = Image.open(io.BytesIO(content))
        assert (image.format, image.mode, image.size) == ("PNG", "L", (32, 32))


def test_paths_start_at_the_folder_of_the_table(files, rows):
    paths = [path for row in rows.values() for path in row["ImagePath"]]
    assert all(path.startswith("../deid_png/") for path in paths)
    assert {path.removeprefix("../") for path in paths} == set(files) - {"metadata/test_vqa_data.json"}
    views = Counter(len(row["ImagePath"]) for row in rows.values())
    assert views == {1: 12, 2: 12}
    assert all(len(row["ImageViewPosition"]) == len(row["ImagePath"]) for row in rows.values())


def test_options_have_letters_and_the_answer_is_one(rows):
    assert len(rows) == 24
    for row in rows.values():
        assert [option[:3] for option in row["options"]] == ["A. ", "B. ", "C. ", "D. "]
        assert row["correct_answer"] in "ABCD"
        assert "CT" not in row["question"]


def test_the_report_holds_the_answer(rows):
    for row in rows.values():
        answer = row["options"]["ABCD".index(row["correct_answer"])][3:]
        assert answer.lower() in row["Impression"]
        assert "x-ray chest" in row["Findings"]


def test_the_text_of_every_third_question_contains_the_options(rows):
    shown = [shows_options(row["question"], [option[3:] for option in row["options"]]) for row in rows.values()]
    assert shown == [k % 3 == 0 for k in range(24)]
