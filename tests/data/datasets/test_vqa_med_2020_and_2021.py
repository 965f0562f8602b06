"""The files are as they were released: no header, no category, questions and answers of a test set apart."""

import pytest

from dualread.data.datasets import vqa_med_2020, vqa_med_2021
from dualread.grading.canonical import is_correct

TRAINVAL = "VQA-Med-2020-Task1-VQAnswering-TrainVal-Sets"
TRAIN = f"{TRAINVAL}/VQAMed2020-VQAnswering-TrainingSet"
VAL = f"{TRAINVAL}/VQAMed2020-VQAnswering-ValidationSet"
TEST_2020 = "VQA-TestSet-ReferenceAnswers-VQAMed2020-Task1"
VAL_2021 = "VQA-Med-2021-Tasks-1-2-NewValidationSets"
TEST_2021 = "Task1-VQA-2021-TestSet-w-GroundTruth"

FILES = {
    f"{TRAIN}/VQAnswering_2020_Train_QA_pairs.txt": (
        b"synpic25788|is this a normal gastrointestinal image?|yes\r\n"
        b"synpic16170|what abnormality is seen in the image?|pulmonary arteriovenous malformation (pavm)\r\n"
    ),
    f"{VAL}/VQAnswering_2020_Val_QA_Pairs.txt": b"synpic54542|is this a normal nuclear medicine image?|no",
    f"{TEST_2020}/VQAMed2020-Task1-VQAnswering-Test-Questions.txt": (
        b"synpic26840|are there abnormalities in this mri?\nsynpic20553|what is abnormal in the ct scan?\n"
    ),
    f"{TEST_2020}/VQAMed2020-Task1-VQAnswering-Test-ReferenceAnswers.txt": (
        b"synpic26840|no\nsynpic20553| Interstitial thickening in reticulonodular pattern\n"
    ),
    f"{VAL_2021}/VQA-Med-2021-VQAnswering-Task1-New-ValidationSet.txt": (
        b"synpic31928|what is the primary abnormality in this image?|dermoid cyst\n"
    ),
    f"{VAL_2021}/VQA-Med-2021-VQGeneration-Task2-New-ValidationSet.txt": b"synpic1|another task?",
    f"{TEST_2021}/Task1-VQA-2021-TestSet-Questions.txt": (
        b"synpic42072|what abnormality is seen in the image?\n"
        b"synpic37231|what is the primary abnormality in this image?\n"
        b"synpic25210|what is abnormal in the x-ray?"
    ),
    f"{TEST_2021}/Task1-VQA-2021-TestSet-ReferenceAnswers.txt": (
        "synpic42072|avascular necrosis|extensive degenerative changes.|Avascular Necrosis of femoral heads\n"
        "synpic37231|pulmonary embolism\n"
        "synpic25210|nodular sclerosing hodgkin’s lymphoma|an anterior mediastinal mass"  # no line end
    ).encode(),
    f"{TEST_2021}/__MACOSX/._Task1-VQA-2021-TestSet-Questions.txt": b"\0\5\26\7",
    f"__MACOSX/{TEST_2021}/Task1-VQA-2021-TestSet-Questions.txt": b"\0\5\26\7",
}
FOLDERS = (
    f"{TRAIN}/VQAnswering_2020_Train_images",
    f"{VAL}/VQAnswering_2020_Val_images",
    f"{TEST_2020}/Task1-2020-VQAnswering-Test-Images",
    f"{VAL_2021}/ImageCLEF-2021-VQA-Med-New-Validation-Images",
    f"{TEST_2021}/images/VQA-500-Images",
    f"__MACOSX/{TEST_2021}/images/VQA-500-Images",
)


@pytest.fixture
def official(tmp_path):
    for name in FOLDERS:
        (tmp_path / name).mkdir(parents=True)
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_fields_of_a_row(official):
    closed, row = vqa_med_2020.load_rows(official, "train", {}).rows
    assert (closed.official_id, closed.answer_type, closed.reference_answers) == ("synpic25788", "closed", ("yes",))
    assert (row.official_id, row.image_name, row.source_row) == ("synpic16170", "synpic16170", 1)
    assert (row.question, row.answer_type) == ("what abnormality is seen in the image?", "open")
    assert (row.content_family, row.options, row.modality, row.location) == ("abnormality", (), None, None)
    assert row.image == official / TRAIN / "VQAnswering_2020_Train_images" / "synpic16170.jpg"


def test_brackets_are_a_part_of_an_answer(official):
    golds = vqa_med_2020.load_rows(official, "train", {}).rows[1].reference_answers
    assert golds == ("pulmonary arteriovenous malformation (pavm)",)
    assert is_correct("Pulmonary arteriovenous malformation (PAVM)", golds)
    assert not is_correct("pulmonary arteriovenous malformation", golds)  # the official accuracy is an exact match


def test_questions_and_answers_of_a_test_set_belong_together_by_the_image(official):
    file = official / TEST_2020 / "VQAMed2020-Task1-VQAnswering-Test-ReferenceAnswers.txt"
    before = vqa_med_2020.load_rows(official, "test", {})
    assert [row.answer_type for row in before.rows] == ["closed", "open"]
    assert before.rows[1].reference_answers == (" Interstitial thickening in reticulonodular pattern",)
    file.write_bytes(b"\r\n".join(reversed(file.read_bytes().split(b"\n"))))
    assert vqa_med_2020.load_rows(official, "test", {}).rows == before.rows


def test_each_of_several_answers_is_right(official):
    first, second, third = vqa_med_2021.load_rows(official, "test", {}).rows
    assert first.reference_answers == (
        "avascular necrosis",
        "extensive degenerative changes.",
        "Avascular Necrosis of femoral heads",
    )
    assert is_correct("Avascular necrosis", first.reference_answers)
    assert is_correct("extensive degenerative changes", first.reference_answers)
    assert not is_correct("avascular necrosis|extensive degenerative changes.", first.reference_answers)
    assert second.reference_answers == ("pulmonary embolism",)
    assert third.reference_answers[0] == "nodular sclerosing hodgkin’s lymphoma"
    assert first.image == official / TEST_2021 / "images" / "VQA-500-Images" / "synpic42072.jpg"


@pytest.mark.parametrize(
    ("answers", "golds"),
    [("a#b", ("a", "b")), ("a|b#c", ("a", "b", "c")), ("a||#a", ("a",)), (" a |b ", (" a ", "b ")), ("|", ("",))],
)
def test_bars_and_hashes_separate_answers(official, answers, golds):
    file = official / VAL_2021 / "VQA-Med-2021-VQAnswering-Task1-New-ValidationSet.txt"
    file.write_text(f"synpic1|what?|{answers}\n")
    assert vqa_med_2021.load_rows(official, "validation", {}).rows[0].reference_answers == golds


def test_the_training_set_of_2021_is_that_of_2020_with_its_validation_set(official):
    earlier = [vqa_med_2020.load_rows(official, split, {}).rows for split in ("train", "validation")]
    later = vqa_med_2021.load_rows(official, "train", {}).rows
    assert [row.official_id for row in later] == [row.official_id for rows in earlier for row in rows]
    assert [row.source_row for row in later] == [0, 1, 2]
    assert later[2].image == official / VAL / "VQAnswering_2020_Val_images" / "synpic54542.jpg"


def test_a_flat_folder_is_read_too(tmp_path):
    (tmp_path / "VQA-500-Images").mkdir()
    for name in ("Questions", "ReferenceAnswers"):
        file = f"Task1-VQA-2021-TestSet-{name}.txt"
        (tmp_path / file).write_bytes(FILES[f"{TEST_2021}/{file}"])
    assert len(vqa_med_2021.load_rows(tmp_path, "test", {}).rows) == 3


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ('"a ""drowned"" lobe, seen here"', 'a "drowned" lobe, seen here'),  # as in one line of the released file
        ('"drowned" and "wet"', '"drowned" and "wet"'),
        ('a "drowned" lobe', 'a "drowned" lobe'),
        ('"', '"'),
    ],
)
def test_quotes_of_a_spreadsheet_are_no_part_of_an_answer(official, answer, gold):
    file = official / VAL_2021 / "VQA-Med-2021-VQAnswering-Task1-New-ValidationSet.txt"
    file.write_text(f"synpic1|what?|{answer}\n")
    assert vqa_med_2021.load_rows(official, "validation", {}).rows[0].reference_answers == (gold,)
