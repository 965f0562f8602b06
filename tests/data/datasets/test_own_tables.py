"""The forms in which people have their rows: what can mean one thing is read, and what cannot is refused by name."""

import base64
import json

import polars as pl
import pytest

from dualread.data.datasets.table import load_rows
from dualread.errors import DataError

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")


def _rows(folder, *records, **settings):
    (folder / "test.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    return load_rows(folder, "test", settings).rows


def _row(folder, **changes):
    return _rows(folder, {"question": "What is it?", "reference_answers": "CT", "image": "a.png"} | changes)[0]


def _turns(*said, image="a.png"):
    speakers = ("human", "gpt") * len(said)
    turns = [{"from": speaker, "value": text} for speaker, text in zip(speakers, said, strict=False)]
    return {"id": "7", "image": image, "conversations": turns}


@pytest.mark.parametrize("asked", ["<image>\nIs it?", "Is it?\n<image>", "<image> Is it?"])
def test_a_conversation_of_llava_is_a_question_and_its_answer(tmp_path, asked):
    (tmp_path / "test.jsonl").write_text(json.dumps(_turns(asked, "Yes")) + "\n")
    loaded = load_rows(tmp_path, "test", {})
    (row,) = loaded.rows
    assert (row.official_id, row.question, row.reference_answers) == ("7", "Is it?", ("Yes",))
    assert loaded.audit[1].reason == "1 rows: a marker <image> beside the question is taken off"


def test_messages_are_a_conversation_as_well(tmp_path):
    turns = [{"role": "user", "content": "Is it?"}, {"role": "assistant", "content": "No"}]
    (row,) = _rows(tmp_path, {"image": "a.png", "messages": turns})
    assert (row.question, row.reference_answers, row.answer_type) == ("Is it?", ("No",), "closed")


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (["b.png"], "b.png"),
        ([{"bytes": None, "path": "b.png"}], "b.png"),
        ("img\\b.png", "img/b.png"),
        (base64.b64encode(PNG).decode(), PNG),
        (f"data:image/png;base64,{base64.b64encode(PNG).decode()}", PNG),
        (base64.b64encode(b"\xff\xd8\xff\xe0" + b"x" * 900).decode(), b"\xff\xd8\xff\xe0" + b"x" * 900),
    ],
)
def test_forms_of_images(tmp_path, image, expected):
    found = _row(tmp_path, image=image).image
    assert found == (expected if isinstance(expected, bytes) else tmp_path / expected)


@pytest.mark.parametrize(
    "image", [["a.png", "b.png"], [], "https://example.com/a.png", "data:image/png;base64,?", "?" * 5000, "/etc/a.png"]
)
def test_what_is_no_image_of_the_folder_is_refused_in_a_short_sentence(tmp_path, image):
    with pytest.raises(DataError, match=r"line 1: image is .*, expected a path inside the folder") as error:
        _row(tmp_path, image=image)
    assert len(str(error.value)) < 400


def test_a_list_of_one_struct_in_parquet(tmp_path):
    frame = pl.DataFrame({"question": ["?"], "reference_answers": ["a"], "pics": [[{"bytes": PNG, "path": None}]]})
    frame.write_parquet(tmp_path / "test.parquet")
    assert load_rows(tmp_path, "test", {"columns": {"image": "pics"}}).rows[0].image == PNG


@pytest.mark.parametrize(
    ("given", "expected"), [(2, "2"), (2.0, "2"), (2.5, "2.5"), ([1, 2.0], "1"), ("2.5", "2.5"), (-3.0, "-3")]
)
def test_whole_numbers_are_answers(tmp_path, given, expected):
    assert _row(tmp_path, reference_answers=given).reference_answers[0] == expected


def test_texts_are_as_they_are_written(tmp_path):
    (tmp_path / "test.csv").write_text(
        "id,question,reference_answers,image,donor_id\n3.0,How many?,2.0,a.png,4.0\n4.0,How many?,1.0,b.png,\n"
    )
    rows = load_rows(tmp_path, "test", {}).rows
    assert [(row.official_id, row.reference_answers, row.donor_id) for row in rows] == [
        ("3.0", ("2.0",), "4.0"),
        ("4.0", ("1.0",), None),
    ]


def test_ids_that_are_whole_numbers_are_the_same_as_numbers_and_floats(tmp_path):
    records = [{"question": "?", "reference_answers": "a", "image": "a.png", "id": one} for one in (3.0, 4, "007", "7")]
    assert [row.official_id for row in _rows(tmp_path, *records)] == ["3", "4", "007", "7"]
    assert _row(tmp_path, image_id=12.0).image_name == "12"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("CLOSED", "closed"),
        ("Open ", "open"),
        ("yes/no", "closed"),
        ("number", "open"),
        ("other", "open"),
        (" ", "open"),
    ],
)
def test_types_of_answers(tmp_path, given, expected):
    assert _row(tmp_path, answer_type=given).answer_type == expected


@pytest.mark.parametrize(
    ("given", "expected"), [("val", "validation"), ("Valid", "validation"), ("DEV", "validation"), ("Train ", "train")]
)
def test_names_of_splits(tmp_path, given, expected):
    record = {"question": "?", "reference_answers": "a", "image": "a.png", "split": given}
    (tmp_path / "rows.jsonl").write_text(json.dumps(record) + "\n")
    assert len(load_rows(tmp_path, expected, {}).rows) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"A": "CT", "B": "MRI"}, ("CT", "MRI")),
        ({"A": "CT", "B": "MRI", "C": None}, ("CT", "MRI")),
        (["(A) CT", "(B) MRI"], ("CT", "MRI")),
        (["A. CT", "C. difficile"], ("A. CT", "C. difficile")),
        (["CT", 2.0], ("CT", "2")),
        ([], ()),
        (None, ()),
    ],
)
def test_forms_of_options(tmp_path, given, expected):
    gold = expected[0] if expected else "CT"
    assert _row(tmp_path, options=given, reference_answers=gold).options == expected


def test_several_answers_in_a_text_are_what_the_setting_says_and_are_counted(tmp_path):
    (tmp_path / "test.csv").write_text("question,reference_answers,image\n?,tooth #3,a.png\n?,tooth,b.png\n")
    assert load_rows(tmp_path, "test", {}).rows[0].reference_answers == ("tooth #3",)
    loaded = load_rows(tmp_path, "test", {"alternatives": "#"})
    assert loaded.rows[0].reference_answers == ("tooth", "3")
    assert loaded.audit[1].reason == "1 rows: the gold answers are several, separated by #"


@pytest.mark.parametrize(
    "names", [("A", "B", "C"), ("option_a", "option_b", "option_c"), ("Choice A", "Choice B", "Choice C")]
)
def test_a_column_per_option(tmp_path, names):
    texts = [("CT", "MRI", "X-ray"), ("yes", "no", None), (None, None, None)]
    golds = ("B", "A", "CT")
    records = [
        {"question": f"What {k}?", "reference_answers": golds[k], "image": "a.png"}
        | dict(zip(names, texts[k], strict=True))
        for k in range(3)
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    loaded = load_rows(tmp_path, "test", {})
    assert [row.options for row in loaded.rows] == [("CT", "MRI", "X-ray"), ("yes", "no"), ()]
    assert [row.reference_answers for row in loaded.rows] == [("MRI",), ("yes",), ("CT",)]
    assert f"2 rows: options are those of the columns {', '.join(names)}" in [step.reason for step in loaded.audit]
