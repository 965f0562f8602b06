import io

import numpy as np
import pytest
from PIL import Image
from tests.training.writers.donors import n_pairs

from dualread.data.images import open_image
from dualread.training.writers import vqa_rad
from dualread.training.writers._medpix import TWINS, cases_of, picture_of
from dualread.training.writers.base import Hospital
from dualread.training.writers.vqa_med_2019 import official_files

HOSPITAL = Hospital(name="med", seed=0, images={"test": 40}, size=32, questions_per_image=1)
ANSWERED = "VQAMed2019_Test_Questions_w_Ref_Answers.txt"


@pytest.fixture(scope="module")
def files():
    return dict(official_files(HOSPITAL))


@pytest.fixture(scope="module")
def rows(files):
    return [line.split("|") for line in files[ANSWERED].decode().splitlines()]


def test_every_image_has_one_question(files, rows):
    images = {name for name in files if name.endswith(".jpg")}
    assert len(rows) == 44 == len(images)  # 40, and four twins
    assert {f"VQAMed2019_Test_Images/{image}.jpg" for image, *_ in rows} == images
    asked = [line.split("|") for line in files["VQAMed2019_Test_Questions.txt"].decode().splitlines()]
    assert asked == [[image, question] for image, _, question, _ in rows]


def test_rows_are_in_lower_case_and_of_four_categories(rows):
    assert all(text == text.lower() for row in rows for text in row)
    assert {category for _, category, _, _ in rows} == {"modality", "plane", "organ", "abnormality"}


def test_half_of_the_rows_are_closed_as_many_yes_as_no(rows):
    answers = [answer for *_, answer in rows]
    assert answers.count("yes") == answers.count("no") == 11  # of 44


def test_alternatives_and_optional_parts(rows):
    answers = [answer for *_, answer in rows]
    assert "lung#chest" in answers
    assert any(answer.endswith(" (imaging)") for answer in answers)


@pytest.mark.parametrize("n", range(1, 12))
def test_the_balance_holds_for_any_number_of_images(n):
    small = Hospital(name="med", seed=n, images={"test": n}, size=16, questions_per_image=1)
    answers = [line.split("|")[-1] for line in dict(official_files(small))[ANSWERED].decode().splitlines()]
    assert answers.count("yes") == answers.count("no")


def test_rotated_images_are_upright_once_opened(files):
    drawn = {case.image_id: np.asarray(picture_of(case, HOSPITAL), float) for case in cases_of(HOSPITAL, 60000)}
    turned = 0
    for number, pixels in drawn.items():
        content = files[f"VQAMed2019_Test_Images/synpic{number}.jpg"]
        assert np.abs(np.asarray(open_image(content), float) - pixels).mean() < 5  # JPEG
        turned += Image.open(io.BytesIO(content)).getexif().get(0x0112) == 6
    assert turned == 6  # of 60000 to 60039: 60004 = 7 * 8572, 60011, ..., 60039


def test_twins_are_the_same_files_in_vqa_rad(files):
    other = Hospital(name="rad", seed=5, images={"test": 3}, size=48, questions_per_image=1)
    rad = dict(vqa_rad.official_files(other))
    for number in TWINS:
        twin = files[f"VQAMed2019_Test_Images/synpic{number}.jpg"]
        assert twin == rad[f"VQA_RAD Image Folder/synpic{number}.jpg"]
    shared = set(files.values()) & set(rad.values())
    assert len(shared) == 4


def test_donors_exist_among_the_closed_rows(rows):
    assert n_pairs([(row[0], row[2], row[3]) for row in rows if row[3] in ("yes", "no")]) > 5
