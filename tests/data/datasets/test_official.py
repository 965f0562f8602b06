"""What loaders make of official files: official.txt has, per case, the rows with all their fields, and the audit."""

import hashlib
import os
from pathlib import Path

import pytest

from dualread.data.datasets import slake, vqa_med_2019, vqa_rad
from dualread.data.datasets._hub_tables import read_rows
from dualread.data.datasets.base import load
from dualread.data.tables import parquet
from tests import golden
from tests.data.datasets.official import (
    IMAGES_2019,
    OF_2019,
    RAD,
    RAD_IMAGES,
    record,
    rows_or_refusal,
    write,
    write_rows,
    write_tables,
)

SHARED = Path(os.environ.get("DUALREAD_SHARED", Path(__file__).resolve().parents[3] / ".." / "shared")) / "data"


def choices(*texts):
    return {f"Choice {letter}": text for letter, text in zip("ABCD", texts, strict=True)}


def records(loader, *changes):
    return [record(loader, **of) for of in changes]


# By loader: rows of the split test. What a row shows is said beside it where the change does not.
ROWS = {
    "slake": records(
        "slake", {"q_lang": "zh"}, {"content_type": "KG", "answer": "  two  words "}, {"modality": " ", "qid": 8}
    ),
    "vqa_rad": records(
        "vqa_rad",
        {"qid": "0"},
        {"qid": 1, "question_type": "ABN"},  # repeats 0, with another type
        {"qid": 2, "question": "Where?", "phrase_type": "para"},
        {"qid": 3, "question": "Where?", "phrase_type": "test_para"},  # repeats 2, and belongs to the test split
        {"qid": 4, "question": "where?"},
        {"qid": 5, "image_name": "synpic1.jpg", "phrase_type": "test_freeform"},
        {"qid": 6, "answer_type": "CLOSED ", "question": "a"},
        {"qid": 7, "answer_type": "OPEN", "answer": 4, "question": "How many gallstones are identified?"},
        {"qid": 8, "answer_type": "OPEN", "answer": "Heart \tlungs"},  # the tab was a comma
        {"qid": 9, "question": "Are the liver \tspleen visible? ", "answer": " No"},
        {"qid": 10, "question_type": "PRSE", "question": "b"},
        {"qid": 11, "question_type": " ATRIB, PRES", "question": "c"},
        {"qid": 12, "question_type": "Other", "question": "d", "image_organ": " "},
    ),
    "pmc_vqa": records(
        "pmc_vqa",
        {"Question": 'Where, "exactly"?\nHere?'},
        {"Answer": "NA", "Answer_label": " B ", **choices("A:1", "B:NA", "C:None", "D:3.0")},
        # Its own label, that of another option, and none.
        {"Answer": "B: right lung.", **choices("A: Left lung", "C : Right lung", "C. difficile", " Heart")},
        {"Answer": "Yes", "Answer_label": "A", **choices("A:Yes", "B:left", "C:right", "D:both")},
        {"Answer": "Yes, with fever", "Answer_label": "A", **choices("A:Yes, with fever", "B:b", "C:c", "D:d")},
        {"Choice D": " D: "},
        {"Choice D": "D:the focal uptakes."},  # as B
        {"Answer": "No uptake"},  # the text of C, but the label says B
        {"Answer_label": "E"},
        {"Answer_label": "", "Answer": ""},
        {"Answer_label": "C", "Answer": "no uptake."},
    ),
    "omnimedvqa": records(
        "omnimedvqa",
        {},
        {"question_id": "case", "gt_answer": "fundus imaging .", "option_D": " FUNDUS imaging."},
        {
            "question_id": "two",
            "option_A": "Yes",
            "option_B": "No",
            "gt_answer": "No",
            "option_C": ...,
            "option_D": ...,
        },
        {"question_id": "null", "option_A": None},
        {"question_id": "blank", "option_A": " "},
        {"question_id": "same", "option_A": "the ct scans"},
        {"question_id": "no gold", "gt_answer": "Fundus"},
        {"question_id": "letter", "gt_answer": "D"},
        # One official row has its modality under another key.
        {"question_id": "1", "modality": "CT(Computed Tomography)", "modality_type": ..., "question_type": ...},
        {"question_id": "2", "modality_type": ...},
    ),
    "rexvqa": records(
        "rexvqa",
        {},
        {"task_name": None, "correct_answer": " D "},
        *(
            {"options": options}
            for options in (
                *(["A) w", "B) x", "C) y", "D) z"], ["(A) w", "(B) x", "(C) y", "(D) z"]),
                *(["A: w ", " B:x", "C:y", "D: z"], ["w", "x", "y", "z"], ["w", "x", "C. difficile", "z"]),
                *(["B. w", "A. x", "C. y", "D. z"], ["A. w", "B. x", "C. y"], [], ["A. w", "B. x", "C.", "D. z"]),
                *(["A. w", "B. x", " - ", "z"], ["A. Pneumonia", "B. the pneumonia", "C. y", "D. z"]),
                ["A. w", "B. ", "C. y", "D. z", "E. v"],
            )
        ),
        {"correct_answer": "E"},
        {"correct_answer": "Pneumonia"},
        {"correct_answer": ""},
    ),
    "path_vqa": [
        (b"one", "Is it necrosis?", "yes"),
        (b"one", "is it necrosis?", " Yes"),
        (b"one", "Is it necrosis?", "no."),
        (b"one", "Is it necrosis?", "yes"),  # repeats the first
        (b"two", "Is it necrosis?", "yes"),
        (b"two", "What does the x-ray show?", "Ulcer"),
        (b"two", "Is the electron microscopic appearance present?", "left"),  # the first family in the list decides
        (b"two", "Where are liver stem cells (oval cells) located?", "x"),
        (b"two", "What shows positive tumour cells in perivascular location?", "x"),
        (b"two", "Does it show minimal variation in nuclear size?", "x"),
        (b"two", "Are abscesses PRESENT in the putamen?", "x"),
        (b"two", "Is it representative of oversized directories?", "x"),  # whole words only
    ],
    "vqa_med_2019": [
        "\ufeffsynpic54082|modality|what modality is shown?|cta - ct angiography\r",
        *("   ", " synpic1 | Plane |which  plane? | Axial ", "a|organ|q1?|yes\r", "b|plane|q2?|ap|lateral"),
        *(
            f"c{k}|organ|q?|{answer}"
            for k, answer in enumerate(
                (
                    *("ct w/contrast (iv)", "dermoid tumor (inclusion cyst) of cns", "(p) q (r)", "a (b)#c", "(all)"),
                    *("face, sinuses, and neck#skull and contents", "#", "open ( bracket", "x " + "(y) " * 40),
                    *("mass (left)", "mass (Bilateral) (old)"),  # a side is never optional
                )
            )
        ),
    ],
}
BOTH_2020 = "VQA-Med-2020-Task1-VQAnswering-TrainVal-Sets"
TRAIN, VAL = (f"{BOTH_2020}/VQAMed2020-VQAnswering-{of}Set" for of in ("Training", "Validation"))
TEST_2020 = "VQA-TestSet-ReferenceAnswers-VQAMed2020-Task1"
VAL_2021 = "VQA-Med-2021-Tasks-1-2-NewValidationSets"
TEST_2021 = "Task1-VQA-2021-TestSet-w-GroundTruth"
# No header, no category, questions and answers of a test set apart; as they were released.
LATER = {
    f"{TRAIN}/VQAnswering_2020_Train_QA_pairs.txt": (
        "synpic25788|is this a normal gastrointestinal image?|yes\r\n"
        "synpic16170|what abnormality is seen in the image?|pulmonary arteriovenous malformation (pavm)\r\n"
    ),
    f"{VAL}/VQAnswering_2020_Val_QA_Pairs.txt": "synpic54542|is this a normal nuclear medicine image?|no",
    f"{TEST_2020}/VQAMed2020-Task1-VQAnswering-Test-Questions.txt": (
        "synpic26840|are there abnormalities in this mri?\nsynpic20553|what is abnormal in the ct scan?\n"
    ),
    f"{TEST_2020}/VQAMed2020-Task1-VQAnswering-Test-ReferenceAnswers.txt": (
        "synpic20553| Interstitial thickening in reticulonodular pattern\r\nsynpic26840|no"
    ),
    f"{VAL_2021}/VQA-Med-2021-VQAnswering-Task1-New-ValidationSet.txt": "".join(
        f"synpic{k}|what?|{answers}\n"
        for k, answers in enumerate(
            (
                *("a#b", "a|b#c", "a||#a", " a |b ", "|", '"a ""drowned"" lobe, seen here"', '"drowned" and "wet"'),
                *('a "drowned" lobe', '"'),
            )
        )
    ),
    f"{VAL_2021}/VQA-Med-2021-VQGeneration-Task2-New-ValidationSet.txt": "synpic1|another task?",
    f"{TEST_2021}/Task1-VQA-2021-TestSet-Questions.txt": "synpic42072|q1?\nsynpic37231|q2?\nsynpic25210|q3?",
    f"{TEST_2021}/Task1-VQA-2021-TestSet-ReferenceAnswers.txt": (
        "synpic42072|avascular necrosis|extensive degenerative changes.|Avascular Necrosis of femoral heads\n"
        "synpic37231|pulmonary embolism\n"
        "synpic25210|nodular sclerosing hodgkin’s lymphoma|an anterior mediastinal mass"
    ),
    f"{TEST_2021}/__MACOSX/._Task1-VQA-2021-TestSet-Questions.txt": b"\0\5\26\7",
    f"__MACOSX/{TEST_2021}/Task1-VQA-2021-TestSet-Questions.txt": b"\0\5\26\7",
    **dict.fromkeys(
        (
            f"{TRAIN}/VQAnswering_2020_Train_images/a",
            f"{VAL}/VQAnswering_2020_Val_images/a",
            f"{TEST_2020}/Task1-2020-VQAnswering-Test-Images/a",
            f"{VAL_2021}/ImageCLEF-2021-VQA-Med-New-Validation-Images/a",
            f"{TEST_2021}/images/VQA-500-Images/a",
            f"__MACOSX/{TEST_2021}/images/VQA-500-Images/a",
        ),
        "",
    ),
}
FLAT = {Path(name).name: text for name, text in LATER.items() if name.startswith(f"{TEST_2021}/Task1")}
DEEP = {f"1/2/3/4/{name}": text for name, text in {**FLAT, "VQA-500-Images/a": ""}.items()}


def tables_of_the_hub(folder):
    write_tables(folder, "train", [(b"one", "is it?", "yes"), (b"one", "where?", "skull \tbase")])
    write_tables(folder, "test", [(b"two", "what?", "cardia"), (b"one", "is it?", "yes")])


def tables_and_the_list(folder):
    tables_of_the_hub(folder)
    write_rows(folder, "vqa_rad", record("vqa_rad"))


SLAKE, RAD_ROW, OMNI, REX = [record("slake")], [record("vqa_rad")], record("omnimedvqa"), {"q": record("rexvqa")}
OPEN = "QA_information/Open-access"
SEVERAL = {
    f"{OPEN}/b.json": [OMNI | {"question_id": "b0"}],
    f"{OPEN}/a.json": [OMNI | {"question_id": "a0"}],
    "QA_information/Restricted-access/AIDA.json": [OMNI],
}
LINE = "synpic54082|modality|what?|ct\n"
AGAIN = {**LATER, "again/VQAnswering_2020_Val_QA_Pairs.txt": ""}
TEST = "metadata/test_vqa_data.json"
# Further cases: files or who writes them, the loader, its split and settings.
CASES = {
    "validation.json": ({"validation.json": SLAKE}, "slake", "validation", {}),
    "validate.json": ({"validate.json": SLAKE}, "slake", "validation", {}),
    "equal files": ({"validate.json": SLAKE, "validation.json": SLAKE}, "slake", "validation", {}),
    "two files": ({"validate.json": SLAKE, "validation.json": []}, "slake", "validation", {}),
    "train alone": (ROWS["vqa_rad"][:6], "vqa_rad", "test", {"official_splits": ["train"]}),
    "test alone": (ROWS["vqa_rad"][:6], "vqa_rad", "test", {"official_splits": ["test"]}),
    "underscores": ({"VQA_RAD_Dataset_Public.json": RAD_ROW, "VQA_RAD_Image_Folder/a": ""}, "vqa_rad", "test", {}),
    "a folder images": ({RAD: RAD_ROW, "images/a": ""}, "vqa_rad", "test", {}),
    "a byte order mark": ({RAD: b"\xef\xbb\xbf[]", f"{RAD_IMAGES}/a": ""}, "vqa_rad", "test", {}),
    "tables of the hub": (tables_of_the_hub, "vqa_rad", "test", {}),
    "tables of the hub, train": (tables_of_the_hub, "vqa_rad", "test", {"official_splits": ["train"]}),
    "tables and the list": (tables_and_the_list, "vqa_rad", "test", {}),
    "an index column": ([{"index": "7", **record("pmc_vqa")}], "pmc_vqa", "train", {}),
    "several files": (SEVERAL, "omnimedvqa", "test", {}),
    "a folder of the archive": ({f"OmniMedVQA/{OPEN}/a.json": [OMNI]}, "omnimedvqa", "test", {}),
    "train": ({"metadata/train_vqa_data.json": REX}, "rexvqa", "train", {}),
    "validation": ({"metadata/valid_vqa_data.json": REX}, "rexvqa", "validation", {}),
    "images": ({TEST: REX}, "rexvqa", "test", {"images": "unpacked/images"}),
    **{f"images in {of!r}": ({TEST: REX}, "rexvqa", "test", {"images": of}) for of in ("../images", "/images", "")},
    "the validation split": (ROWS["path_vqa"][:1], "path_vqa", "validation", {}),
    "archive": ({f"VQAMed2019Test/{OF_2019}": LINE, f"VQAMed2019Test/{IMAGES_2019}/a": ""}, "vqa_med_2019", "test", {}),
    **{f"2020, {split}": (LATER, "vqa_med_2020", split, {}) for split in ("train", "validation", "test")},
    **{f"2021, {split}": (LATER, "vqa_med_2021", split, {}) for split in ("train", "validation", "test")},
    "a flat folder": ({**FLAT, "VQA-500-Images/a": ""}, "vqa_med_2021", "test", {}),
    "an archive of four folders": (DEEP, "vqa_med_2021", "test", {}),
    "two folders": (AGAIN, "vqa_med_2020", "validation", {}),
}


def made(folder, content, loader, split):
    folder.mkdir()
    if callable(content):
        content(folder)
    elif isinstance(content, dict):
        write(folder, content)
    else:
        name = {("pmc_vqa", "train"): "train.csv", ("path_vqa", "validation"): split}.get((loader, split))
        write_rows(folder, loader, *content, name=name)
    return folder


def test_rows_of_official_files(tmp_path):
    every = {f"{loader}: the rows of the test split": (rows, loader, "test", {}) for loader, rows in ROWS.items()}
    every |= {f"{case[1]}: {name}": case for name, case in CASES.items()}
    found = {}
    for k, (name, (content, loader, split, settings)) in enumerate(every.items()):
        folder = made(tmp_path / str(k), content, loader, split)
        found[name] = rows_or_refusal(loader, folder, split, settings)
    golden.check(Path(__file__).with_name("official.txt"), found)


def test_rows_are_numbered_through_all_tables_and_equal_images_are_one_object(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_BATCH", 2)
    write_tables(tmp_path, "train", [(b"one", f"q{i}", "x") for i in range(5)], [(b"two", "q5", "x")])
    write_tables(tmp_path, "test", [(b"one", "q6", "x"), (b"two", "q7", "x")])
    rows = read_rows(tmp_path, ["train", "test"])
    assert [split for split, _ in rows] == ["train"] * 6 + ["test"] * 2
    assert [row.source_row for _, row in rows] == list(range(8))
    assert [row.question for _, row in rows] == [f"q{i}" for i in range(8)]
    assert len({id(row.images[0].source) for _, row in rows}) == 2


def test_images_of_vqa_rad_are_recognized_by_content(tmp_path, monkeypatch):
    monkeypatch.setitem(vqa_med_2019._IN_VQA_RAD, hashlib.sha256(b"shared").hexdigest(), "synpic9")
    names = ("renamed", "synpic35155", "absent")
    write_rows(tmp_path, "vqa_med_2019", *(f"{name}|organ|what?|heart" for name in names))
    write(tmp_path / IMAGES_2019, {"renamed.jpg": b"shared", "synpic35155.jpg": b"another image under that name"})
    loaded = load(vqa_med_2019, tmp_path, "test", {})
    assert [row.official_id for row in loaded.rows] == ["synpic35155", "absent"]
    (step,) = loaded.audit
    assert (step.step, step.kept, step.dropped) == ("images of VQA-RAD", 2, 1)


def _real(name):
    return pytest.mark.skipif(not (SHARED / name).is_dir(), reason=f"{name} is not on this machine (DUALREAD_SHARED)")


REAL = [
    pytest.param(loader, split, settings, counts, marks=_real(loader.__name__.rpartition(".")[2]))
    for loader, split, settings, counts in (
        (slake, "train", {"language": "en"}, (4919, 450, 2976)),
        (slake, "validation", {"language": "en"}, (1053, 96, 631)),
        (slake, "test", {"language": "en"}, (1061, 96, 645)),
        (vqa_rad, "test", {"official_splits": ["train", "test"]}, (2244, 314, 947)),
        (vqa_rad, "test", {"official_splits": ["train"]}, (1793, 313, 768)),
        (vqa_rad, "test", {"official_splits": ["test"]}, (451, 203, 179)),
        (vqa_med_2019, "test", {}, (496, 496, 432)),
    )
]


@pytest.mark.parametrize(("loader", "split", "settings", "counts"), REAL)
def test_counts_of_the_real_data(loader, split, settings, counts):
    loaded = load(loader, SHARED / loader.__name__.rpartition(".")[2], split, settings)
    images = {row.image_name for row in loaded.rows}
    assert (len(loaded.rows), len(images), sum(row.answer_type == "open" for row in loaded.rows)) == counts
    if loader is vqa_rad:
        assert [step.kept for step in loaded.audit][:2] == [2248, 2244]
        assert loaded.audit[0].reason.endswith(
            ": 2 answer types with white space around, 5 answers that are integers, 11 questions or answers with a "
            "tab, 2 with white space around, 2 misspelled question types, 34 rows with several question types (the "
            "first counts)"
        )
    if loader is vqa_med_2019:
        assert not images & {"synpic35155", "synpic39301", "synpic43433", "synpic47964"}
        golds = {row.official_id: row.reference_answers for row in loaded.rows}
        assert golds["synpic54143"][1:] == ("anaplastic oligodendroglioma", "multi-cystic complex mass", "neoplasm")
        assert golds["synpic33518"] == ("noncontrast (mri)", "noncontrast mri", "noncontrast")
        assert sum(len(answers) > 1 for answers in golds.values()) == 31
