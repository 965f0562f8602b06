import json
import os
from pathlib import Path

import pytest

from dualread.data.datasets.vqa_rad import load_rows
from tests.data.datasets.tables import write_tables

SHARED = Path(os.environ.get("DUALREAD_SHARED", Path(__file__).resolve().parents[3] / ".." / "shared"))
REAL = SHARED / "data" / "vqa_rad"
LIST = "VQA_RAD Dataset Public.json"
IMAGES = "VQA_RAD Image Folder"


def _record(**changes):
    return {
        "qid": 1,
        "phrase_type": "freeform",
        "qid_linked_id": "03f451ca-de62-4617-9679-e836026a7642",
        "image_case_url": "https://medpix.nlm.nih.gov/case?id=48e1dd0e",
        "image_name": "synpic54610.jpg",
        "image_organ": "HEAD",
        "evaluation": "not evaluated",
        "question": "Are regions of the brain infarcted?",
        "question_rephrase": "NULL",
        "question_relation": "NULL",
        "question_frame": "NULL",
        "question_type": "PRES",
        "answer": "Yes",
        "answer_type": "CLOSED",
    } | changes


def _write(folder, records, name=LIST, images=IMAGES):
    (folder / name).write_text(json.dumps(records), encoding="utf-8")
    (folder / images).mkdir(exist_ok=True)


def _steps(loaded):
    return [(step.step, step.kept, step.dropped) for step in loaded.audit]


def test_fields_of_a_row(tmp_path):
    _write(tmp_path, [_record(qid="0"), _record(question="  What\torgan ? ", answer=" Liver")])
    loaded = load_rows(tmp_path, "test", {})
    first, row = loaded.rows
    assert loaded.file == tmp_path / LIST
    assert (first.official_id, row.official_id, row.source_row) == ("0", "1", 1)
    assert (row.question, row.reference_answers) == ("  What\torgan ? ", (" Liver",))  # verbatim
    assert (row.answer_type, row.content_family, row.location) == ("closed", "pres", "head")
    assert (row.modality, row.options) == (None, ())
    assert (row.image, row.image_name) == (tmp_path / IMAGES / "synpic54610.jpg", "synpic54610.jpg")


def test_defects_are_understood_and_counted(tmp_path):
    records = [
        _record(qid=1, answer_type="CLOSED ", question="a"),
        _record(qid=2, answer_type="OPEN", answer=4, question="How many gallstones are identified?"),
        _record(qid=3, answer_type="OPEN", answer="Heart \tlungs"),
        _record(qid=4, question="Are the liver \tspleen visible? ", answer=" No"),
        _record(qid=5, question_type="PRSE", question="b"),
        _record(qid=6, question_type=" ATRIB, PRES", question="c"),
        _record(qid=7, question_type="Other", question="d", image_organ=" "),
    ]
    _write(tmp_path, records)
    loaded = load_rows(tmp_path, "test", {})
    assert [row.answer_type for row in loaded.rows] == [
        "closed",
        "open",
        "open",
        "closed",
        "closed",
        "closed",
        "closed",
    ]
    assert [row.content_family for row in loaded.rows] == ["pres", "pres", "pres", "pres", "pres", "attrib", "other"]
    assert loaded.rows[1].reference_answers == ("4",)
    assert loaded.rows[2].reference_answers == ("Heart \tlungs", "Heart, lungs")  # the tab was a comma
    assert loaded.rows[6].location is None
    assert loaded.audit[0].reason == (
        "VQA_RAD Dataset Public.json: 1 answer types with white space around, 1 answers that are integers, "
        "2 questions or answers with a tab, 2 with white space around, 2 misspelled question types, "
        "1 rows with several question types (the first counts)"
    )


def test_repetitions_are_dropped_and_a_test_row_is_kept_before_a_train_row(tmp_path):
    records = [
        _record(qid=0),
        _record(qid=1, question_type="ABN"),  # repeats qid 0, with another type
        _record(qid=2, question="Where?", phrase_type="para"),
        _record(qid=3, question="Where?", phrase_type="test_para"),  # repeats qid 2 and belongs to the test split
        _record(qid=4, question="where?"),  # case counts
        _record(qid=5, image_name="synpic1.jpg", phrase_type="test_freeform"),
    ]
    _write(tmp_path, records)
    both = load_rows(tmp_path, "test", {})
    assert [row.official_id for row in both.rows] == ["0", "3", "4", "5"]
    assert _steps(both) == [("layout", 6, 0), ("exact repetitions", 4, 2), ("official splits", 4, 0)]
    test = load_rows(tmp_path, "test", {"official_splits": ["test"]})
    assert [row.official_id for row in test.rows] == ["3", "5"]
    assert _steps(test)[1:] == [("exact repetitions", 4, 2), ("official splits", 2, 2)]
    train = load_rows(tmp_path, "test", {"official_splits": ["train"]})
    assert [row.official_id for row in train.rows] == ["0", "4"]


@pytest.mark.parametrize("name", [LIST, "VQA_RAD_Dataset_Public.json"])
@pytest.mark.parametrize("images", [IMAGES, "VQA_RAD_Image_Folder", "images"])
def test_alternative_names_of_list_and_folder_are_found(tmp_path, name, images):
    _write(tmp_path, [_record()], name, images)
    assert load_rows(tmp_path, "test", {}).rows[0].image == tmp_path / images / "synpic54610.jpg"


def test_the_hubs_tables_are_read_if_the_list_is_missing(tmp_path):
    write_tables(tmp_path, "train", [(b"one", "is it?", "yes"), (b"one", "where?", "skull \tbase")])
    write_tables(tmp_path, "test", [(b"two", "what?", "cardia"), (b"one", "is it?", "yes")])
    loaded = load_rows(tmp_path, "test", {})
    assert [row.question for row in loaded.rows] == ["where?", "what?", "is it?"]  # the test row of "is it?" is kept
    assert [row.answer_type for row in loaded.rows] == ["open", "open", "closed"]
    assert loaded.rows[0].reference_answers == ("skull \tbase", "skull, base")
    assert [row.content_family for row in loaded.rows] == [None] * 3
    assert loaded.file == tmp_path / "data"
    assert _steps(loaded) == [("layout", 4, 0), ("exact repetitions", 3, 1), ("official splits", 3, 0)]
    assert "no ids and no answer types" in loaded.audit[0].reason
    train = load_rows(tmp_path, "test", {"official_splits": ["train"]})
    assert [row.question for row in train.rows] == ["where?"]
    _write(tmp_path, [_record()])
    assert [row.official_id for row in load_rows(tmp_path, "test", {}).rows] == ["1"]  # the list is preferred


@pytest.mark.skipif(not REAL.is_dir(), reason="the real VQA-RAD is not on this machine (DUALREAD_SHARED)")
@pytest.mark.parametrize(
    ("wanted", "n_rows", "n_images", "n_open"),
    [(["train", "test"], 2244, 314, 947), (["train"], 1793, 313, 768), (["test"], 451, 203, 179)],
)
def test_counts_of_the_real_data(wanted, n_rows, n_images, n_open):
    loaded = load_rows(REAL, "test", {"official_splits": wanted})
    assert len(loaded.rows) == n_rows
    assert len({row.image_name for row in loaded.rows}) == n_images
    assert sum(row.answer_type == "open" for row in loaded.rows) == n_open
    assert {row.location for row in loaded.rows} == {"head", "chest", "abd"}
    assert _steps(loaded)[:2] == [("layout", 2248, 0), ("exact repetitions", 2244, 4)]
    assert loaded.audit[0].reason.endswith(
        ": 2 answer types with white space around, 5 answers that are integers, 11 questions or answers with a tab, "
        "2 with white space around, 2 misspelled question types, 34 rows with several question types (the first counts)"
    )
