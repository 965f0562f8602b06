import io
import json

import numpy as np
import pytest
from PIL import Image

from dualread.data.images import open_image
from dualread.training.writers.base import Hospital
from dualread.training.writers.omnimedvqa import official_files

HOSPITAL = Hospital(name="omni", seed=0, images={"test": 60}, size=32, questions_per_image=1)
MODES = {"Phantom CT": "I;16", "Phantom MR": "RGB", "Phantom X-ray": "L"}
KEYS = {"dataset", "question_id", "question_type", "question", "gt_answer", "image_path", "option_A", "option_B"}


@pytest.fixture(scope="module")
def files():
    return dict(official_files(HOSPITAL))


@pytest.fixture(scope="module")
def sets(files):
    tables = {name: content for name, content in files.items() if name.endswith(".json")}
    return {name.split("/")[-1].removesuffix(".json"): json.loads(content) for name, content in tables.items()}


def _options(row):
    return [row[key] for key in ("option_A", "option_B", "option_C", "option_D") if key in row]


def _plain(text):
    return text.lower().removesuffix(".")


def test_there_is_one_file_per_data_set_of_the_collection(files, sets):
    assert set(sets) == set(MODES)
    assert all(name.startswith(("QA_information/Open-access/", "Images/")) for name in files)
    for name, rows in sets.items():
        assert [row["question_id"] for row in rows] == [f"{name}_{k:04d}" for k in range(len(rows))]
        for row in rows:
            assert set(row) >= KEYS
            assert row["dataset"] == name
            assert row["image_path"] in files


def test_modes_of_the_images(files):
    for name, content in files.items():
        if name.startswith("Images/"):
            image = Image.open(io.BytesIO(content))
            assert (image.format, image.mode, image.size) == ("PNG", MODES[name.split("/")[1]], (32, 32))


def test_sixteen_bits_decode_to_the_same_gray_levels(files):
    for name, content in files.items():
        if name.startswith("Images/Phantom CT/"):
            raw = np.asarray(Image.open(io.BytesIO(content)))
            assert raw.max() > 255
            assert np.array_equal(np.asarray(open_image(content))[..., 0], raw // 257)  # 65535 / 255 = 257


def test_answers_differ_from_their_option_in_case_or_a_dot_and_a_few_are_no_option(sets):
    for rows in sets.values():
        unmatched = [k for k, row in enumerate(rows) if _plain(row["gt_answer"]) not in map(_plain, _options(row))]
        assert unmatched == [k for k in range(len(rows)) if k % 9 == 4]
    everything = [row for rows in sets.values() for row in rows]
    verbatim = sum(row["gt_answer"] in _options(row) for row in everything)
    assert 0 < verbatim < 60
    assert any(row["gt_answer"].endswith(".") for row in everything)
    assert any(option.endswith(".") for row in everything for option in _options(row))


def test_closed_questions_have_two_options(sets):
    everything = [row for rows in sets.values() for row in rows]
    two = [row for row in everything if len(_options(row)) == 2]
    assert two
    assert all({_plain(option) for option in _options(row)} == {"yes", "no"} for row in two)
    assert all(len(_options(row)) == 4 for row in everything if row not in two)


def test_one_row_has_another_key_for_its_modality(sets):
    assert [k for k, row in enumerate(sets["Phantom CT"]) if "modality_type" not in row] == [0]
    assert sets["Phantom CT"][0]["modality"] == "CT(Computed Tomography)"
    assert {row["modality_type"] for row in sets["Phantom MR"]} == {"MR (Mag-netic Resonance Imaging)"}
    assert {row["modality_type"] for row in sets["Phantom X-ray"]} == {"X-Ray"}
