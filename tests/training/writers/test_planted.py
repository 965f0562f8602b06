"""What writers plant that the official files have, too: images that decode in odd ways, and rows that share images."""

import io
import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from PIL import Image
from tests import specs
from tests.training.writers.test_contract import tables_and_images

from dualread.data.donors import pair
from dualread.data.images import open_image
from dualread.grading.claim_labels.attributes import is_supported, sentences_of
from dualread.stages import build_manifest
from dualread.training.phantoms.scene import Style
from dualread.training.writers import follow_ups, omnimedvqa, path_vqa, pmc_vqa, slake, table, vqa_med_2019, vqa_rad
from dualread.training.writers.base import TWINS, Hospital, cases_of, picture_of


def hospital(size=32, questions=1, seed=0, style=None, **images):
    return Hospital(
        name="x", seed=seed, images=images, size=size, questions_per_image=questions, style=style or Style()
    )


def test_sixteen_bits_decode_to_the_same_gray_levels():
    for name, content in omnimedvqa.official_files(hospital(test=60)):
        if name.startswith("Images/Phantom CT/"):
            raw = np.asarray(Image.open(io.BytesIO(content)))
            assert raw.max() > 255
            assert np.array_equal(np.asarray(open_image(content))[..., 0], raw // 257)  # 65535 / 255 = 257


def test_images_of_pathology_are_pink_in_either_mode():
    pink = hospital(questions=2, style=Style(tint=(1.0, 0.7, 0.9)), test=16)
    for content in tables_and_images(dict(path_vqa.official_files(pink)))[1]:
        red, green, blue = (sum(band.tobytes()) for band in open_image(content).split())
        assert red > blue > green


def test_a_figure_has_a_white_margin():
    """Of 3 and 1 sixteenths."""
    for name, content in pmc_vqa.official_files(hospital(size=64, test=12)):
        if name.startswith("images/"):
            image = Image.open(io.BytesIO(content))
            assert image.size == (64 + 2 * 12, 64 + 2 * 4)
            assert min(image.getpixel((2, 36))) > 240


def test_rotated_images_are_upright_once_opened():
    made = hospital(test=40)
    files = dict(vqa_med_2019.official_files(made))
    for case in cases_of(made, 60000):
        opened = open_image(files[f"VQAMed2019_Test_Images/synpic{case.image_id}.jpg"])
        assert np.abs(np.asarray(opened, float) - np.asarray(picture_of(case, made), float)).mean() < 5  # JPEG


def test_twins_are_the_same_files_in_vqa_rad():
    files = dict(vqa_med_2019.official_files(hospital(test=40)))
    rad = dict(vqa_rad.official_files(hospital(size=48, seed=5, test=3)))
    for number in TWINS:
        twin = files[f"VQAMed2019_Test_Images/synpic{number}.jpg"]
        assert twin == rad[f"VQA_RAD Image Folder/synpic{number}.jpg"]
    assert len(set(files.values()) & set(rad.values())) == 4


@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_as_many_answers_are_yes_as_no_for_any_number_of_images(n):
    files = dict(vqa_med_2019.official_files(hospital(size=16, seed=n, test=n)))
    answered = files["VQAMed2019_Test_Questions_w_Ref_Answers.txt"].decode().splitlines()
    answers = [line.split("|")[-1] for line in answered]
    assert answers.count("yes") == answers.count("no")


def test_of_vqa_rad_a_question_and_not_an_image_belongs_to_a_split():
    files = dict(vqa_rad.official_files(hospital(questions=6, train=8, test=12)))
    rows = json.loads(files["VQA_RAD Dataset Public.json"])
    tested = {row["image_name"] for row in rows if row["phrase_type"].startswith("test_")}
    trained = {row["image_name"] for row in rows if not row["phrase_type"].startswith("test_")}
    assert (len(tested), len(tested & trained)) == (16, 12)  # 12, and four twins
    # Of six questions about an image of test, the third and the last are in train; about a twin none.
    freeform = Counter(row["image_name"] for row in rows if row["phrase_type"] == "test_freeform")
    assert Counter(freeform.values()) == {4: 12, 6: 4}
    # The last row of train repeats one of test; without a train split, there is none.
    tested_first = next(row for row in rows if row["phrase_type"] == "test_freeform")
    assert {**rows[-1], "phrase_type": "test_freeform", "qid": tested_first["qid"]} == tested_first
    alone = json.loads(dict(vqa_rad.official_files(hospital(questions=6, test=2)))["VQA_RAD Dataset Public.json"])
    assert all(row["phrase_type"].startswith("test_") for row in alone)


def test_of_slake_english_rows_do_not_share_images_across_splits_and_chinese_rows_do():
    files = dict(slake.official_files(hospital(questions=8, train=24, validation=4, test=8)))
    names = {"train": "train.json", "validation": "validate.json", "test": "test.json"}
    rows = {split: json.loads(files[name]) for split, name in names.items()}
    english = {split: {row["img_id"] for row in of if row["q_lang"] == "en"} for split, of in rows.items()}
    anything = {split: {row["img_id"] for row in of} for split, of in rows.items()}
    assert len(set.union(*english.values())) == sum(map(len, english.values())) == 36
    assert anything["train"] & english["test"]
    assert anything["test"] & (english["train"] | english["validation"])
    train = [row for row in rows["train"] if row["q_lang"] == "en"]
    assert len(train) == 24 * 8 + 7  # seven rows repeat
    assert [row["answer"] for row in train].count("") == 1


def test_the_twin_of_an_image_is_the_same_without_its_lesions():
    files = dict(table.official_files(hospital(size=64, test=24)))
    rows = {row["id"]: row for row in map(json.loads, files["test.jsonl"].splitlines())}
    twins = [(row, rows[row["donor_id"]]) for row in rows.values() if "donor_id" in row]
    assert len(rows) == 24 + len(twins)
    for row, twin in twins:
        pictures = [np.asarray(Image.open(io.BytesIO(files[of["image"]])), int) for of in (row, twin)]
        differs = (pictures[0] != pictures[1]).any(axis=2)
        assert 0.005 < differs.mean() < 0.25  # the quadrant of the lesions; all else is equal, to the noise of a pixel
        labels = [is_supported(s, [twin["reference_answers"]]) for s in sentences_of(row["reference_answers"])]
        assert labels == [True, True, *[False] * (len(labels) - 2)]  # what the image is stays true, no lesion does


def test_follow_ups_have_donors_that_exchange_the_current_image_alone(tmp_path):
    files = dict(follow_ups.official_files(hospital(size=64, questions=3, test=24)))
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (out := tmp_path / "manifest").mkdir()
    spec = specs.manifest("table", settings={"image_roles": ["prior", "current"]})
    build_manifest.compute(spec, {"source": tmp_path}, out)
    manifest = pl.read_parquet(out / "manifest.parquet")
    rows = {row["sample_id"]: row for row in manifest.to_dicts()}
    pairs, _ = pair(manifest, [], "current")
    bodies = len({name.split("_")[0] for name in files if name.endswith("_changed.png")})
    assert 10 < bodies < manifest["cluster_id"].n_unique() == 24  # others have no lesion
    asked = Counter(rows[name]["question"] for name in pairs["sample_id"])
    # The organ is the same at both visits; each of the other questions is asked about both.
    assert asked == {follow_ups.CHANGE: 2 * bodies, "What is the size of the lesion?": 2 * bodies}
    answers = Counter()
    for source, donor in pairs.select("sample_id", "donor_sample_id").iter_rows():
        (prior, own), (same_prior, other) = (rows[name]["image_files"] for name in (source, donor))
        assert prior == same_prior
        pictures = [np.asarray(Image.open(out / file), int) for file in (prior, own, other)]
        differs = (pictures[1] != pictures[2]).any(axis=2)
        assert 0.001 < differs.mean() < 0.25  # the quadrant of the lesion; all else is equal, to the noise of a pixel
        if rows[source]["question"] == follow_ups.CHANGE:
            answers[rows[source]["reference_answers"][0]] += 1
            # Beyond noise, the image that is said to be the same is like the prior one, and the other is not.
            far = np.abs(pictures[1] - pictures[0])[differs].mean() > np.abs(pictures[2] - pictures[0])[differs].mean()
            assert far == (rows[source]["reference_answers"] != ["It is the same"])
    assert answers["It is the same"] == bodies == answers["It has grown"] + answers["It has shrunk"]
    assert min(answers.values()) > 3  # no answer can be guessed from the question
