"""The files are written as VLMEvalKit writes them (`dump` in vlmeval/smp/file.py, commit e8e78f05), but not by it."""

import csv
import json

import pandas
import pytest

from dualread.data.logs.vlmevalkit import read_log
from dualread.errors import DataError

COLUMNS = ["index", "question", "answer", "A", "B", "category", "image_path", "prediction", "hit", "log"]
ROWS = [
    [1, "Which organ?", "A", "liver", "spleen", "organ", "1.jpg", "A. liver", 1, "matched"],
    [2, "Is there a lesion?", "B", "yes", "no", "lesion", "1.jpg", "yes", 0, "matched"],
    [3, "Where?", "A", "left", "right", "place", "['2a.jpg', '2b.jpg']", "Failed to obtain answer via API.", 0, ""],
    [4, "Why?", "B", "x", "y", "place", "3.jpg", None, 0, ""],
]


def write_tsv(data, path):
    data.to_csv(path, sep="\t", index=False, encoding="utf-8", quoting=csv.QUOTE_ALL)


def write_xlsx(data, path):
    options = {"options": {"strings_to_formulas": False}}
    with pandas.ExcelWriter(path, engine="xlsxwriter", engine_kwargs=options) as writer:
        data.to_excel(writer, index=False)


def write_json(data, path):
    path.write_text(json.dumps(data.to_dict("records"), indent=4))


WRITE = {".xlsx": write_xlsx, ".tsv": write_tsv, ".json": write_json}


@pytest.mark.parametrize("suffix", WRITE)
def test_judged_predictions_are_read(tmp_path, suffix):
    path = tmp_path / f"model_data_exact_matching_result{suffix}"
    WRITE[suffix](pandas.DataFrame(ROWS, columns=COLUMNS), path)
    log = read_log(path)
    assert log.left_out == {"the model gave no answer ('Failed to obtain answer')": 1, "no prediction": 1}
    first, second = log.samples
    assert (first.sample_id, first.question, first.completions) == ("1", "Which organ?", ("A. liver",))
    assert first.references == ("A", "liver")
    assert str(first.scores["hit"].value) == "1"
    assert str(second.scores["hit"].value) == "0"
    assert [first.image, second.image] == ["1.jpg", "1.jpg"]
    assert first.others["category"] == "organ"


def test_the_answer_that_was_extracted_is_the_one_that_is_judged(tmp_path):
    data = pandas.DataFrame({"index": ["a"], "prediction": ["Yes, sure"], "extracted": ["Yes"], "score": [True]})
    write_tsv(data, tmp_path / "a.tsv")
    (sample,) = read_log(tmp_path / "a.tsv").samples
    assert (sample.scores["score"].value, sample.scores["score"].answer) == ("True", "Yes")
    assert (sample.image, sample.references) == (None, ())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pkl", b"x", r"expected predictions of VLMEvalKit as \.xlsx.*PRED_FORMAT=tsv"),
        ("a.xlsx", b"PK\x03\x04 half a file", r"a\.xlsx: cannot be read \(.*Copy it again"),
        ("a.json", b'[{"index": 1', r"a\.json: cannot be read"),
        ("a.json", b"{}", "it holds no list of rows"),
        ("a.tsv", b"index\tprediction\n", "has no rows"),
        ("a.tsv", b"id\tprediction\n1\tyes\n", "1 of 1 rows have no 'index', which VLMEvalKit writes"),
        ("a.tsv", b"index\tprediction\n1\tyes\n1\tno\n", "1 id occurs more than once"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_log(tmp_path / name)
