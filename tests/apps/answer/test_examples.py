"""Dicts, frames and files of examples: what becomes of them, and what is refused."""

import io
import json

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dualread.apps.answer.examples import numbered, read_examples, write
from dualread.data.datasets import table
from dualread.data.datasets.base import load
from dualread.errors import DataError
from tests.tiny import image


def png(seed):
    file = io.BytesIO()
    image(seed).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def rows(tmp_path):
    (tmp_path / "a.png").write_bytes(png(0))
    return [
        {"image": str(tmp_path / "a.png"), "question": "Is it?", "answer": "yes", "part": "fit", "patient": 7},
        {"image": png(1), "question": "What?", "reference_answer": ["lung", "lungs"], "part": "validation"},
        {"image": image(2), "question": "Where?", "sample_id": 12},
        {"image": np.asarray(image(3)), "question": "Which?", "options": ["CT", "MRI"], "reference_answers": "CT"},
    ]


def facts(example):
    record = example.record
    return example.part, record["question"], record["reference_answers"], record.get("options"), example.has_reference


EXPECTED = [
    ("fit", "Is it?", ["yes"], None, True),
    ("validation", "What?", ["lung", "lungs"], None, True),
    ("test", "Where?", [""], None, False),
    ("test", "Which?", ["CT"], ["CT", "MRI"], True),
]


def test_dicts_become_examples(rows):
    found = read_examples(rows, "examples")
    assert [facts(one) for one in found] == EXPECTED
    assert [dict(one.others) for one in found] == [{"patient": 7}, {}, {}, {}]
    assert found[2].sample_id == "12"  # the others have digests
    assert all(len(one.sample_id) == 16 for one in (found[0], found[1], found[3]))


def test_frames_of_polars_and_pandas_and_columns_are_the_same(rows):
    import pandas

    columns = dict.fromkeys(name for row in rows for name in row)
    whole = [{name: row.get(name) for name in columns} for row in rows]
    of_columns = {name: [row[name] for row in whole] for name in columns}
    objects = [pl.Series(name, values, dtype=pl.Object) for name, values in of_columns.items()]
    expected = [(one.sample_id, facts(one)) for one in read_examples(rows, "examples")]
    for given in (pandas.DataFrame(whole), pl.DataFrame(objects), of_columns, iter(rows)):
        assert [(one.sample_id, facts(one)) for one in read_examples(given, "examples")] == expected


def test_files_name_images_beside_them(tmp_path):
    (tmp_path / "a.png").write_bytes(png(0))
    (tmp_path / "q.jsonl").write_text(json.dumps({"image": "a.png", "question": "Is it?", "reference_answer": "no"}))
    (tmp_path / "q.csv").write_text("image,question,reference_answers,A,B\na.png,Is it?,no#none,yes,no\n")
    of_json, of_csv = (read_examples(tmp_path / name, "examples")[0] for name in ("q.jsonl", "q.csv"))
    assert of_json.record["reference_answers"] == ["no"]
    # A text is one answer, whatever signs it has; options of a .csv have a column each.
    assert (of_csv.record["reference_answers"], of_csv.record["options"]) == (["no#none"], ["yes", "no"])
    assert of_json.images == [tmp_path / "a.png"]


def test_neither_names_of_files_nor_the_order_of_rows_matter(rows, tmp_path):
    for name in ("b.png", "c.png"):
        (tmp_path / name).write_bytes(png(0))
    asked = [{"image": str(tmp_path / name), "question": text} for name in ("a.png", "b.png") for text in ("A?", "B?")]
    again = [{**row, "image": str(tmp_path / "c.png")} for row in reversed(asked)]
    one, other = (write(numbered(read_examples(given, "x")), tmp_path / "out") for given in (asked, again))
    assert one == other
    # Two pairs of rows ask the same about equal files: the second of each gets a number.
    ids = [json.loads(line)["id"] for line in (one / "rows.jsonl").read_text().splitlines()]
    assert len(set(ids)) == 4
    assert sorted(name.removesuffix("-2") for name in ids)[::2] == sorted({name.removesuffix("-2") for name in ids})


def test_the_loader_reads_what_is_written(rows, tmp_path):
    found = numbered(read_examples(rows, "examples"))
    written = write([one for one in found if one.part == "test"], tmp_path / "out")
    loaded = load(table, written, "test", {"files": {"rows": "rows.jsonl"}})
    by_question = {row.question: row for row in loaded.rows}
    assert by_question["Which?"].options == ("CT", "MRI")
    assert by_question["Which?"].reference_answers == ("CT",)
    assert by_question["Where?"].official_id == "12"
    assert by_question["Where?"].reference_answers == ("",)  # no answer equals it
    with Image.open(by_question["Where?"].images[0].source) as shown:
        assert np.array_equal(np.asarray(shown), np.asarray(image(2)))


def test_a_frame_of_a_stack_keeps_its_number(tmp_path):
    image(0).save(tmp_path / "s.tif", save_all=True, append_images=[image(1)])
    rows = [{"image": f"{tmp_path}/s.tif#{k}", "question": "?"} for k in (1, 2)]
    found = read_examples(rows, "examples")
    assert [name[-6:] for one in found for name in one.record["image"]] == [".tif#1", ".tif#2"]
    assert found[0].sample_id != found[1].sample_id


def test_several_images_keep_their_order(tmp_path):
    rows = [{"image": [png(1), png(2)], "question": "?"}, {"image": [png(2), png(1)], "question": "?"}]
    first, second = read_examples(rows, "examples")
    assert [first.images, second.images] == [[png(1), png(2)], [png(2), png(1)]]
    assert first.sample_id != second.sample_id
    columns = [{"image_1": png(1), "image_2": png(2), "question": "?"}]
    assert read_examples(columns, "examples")[0].sample_id == first.sample_id
    loaded = load(table, write([first], tmp_path), "test", {"files": {"rows": "rows.jsonl"}})
    assert [picture.source.read_bytes() for picture in loaded.rows[0].images] == [png(1), png(2)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": "Is it?"}, "row 0: image is missing"),
        ({"image": "no.png", "question": "Is it?"}, "row 0: image 'no.png': no such file"),
        ({"image": png(0), "question": " "}, "row 0: question is ' ', expected a text"),
        ({"image": png(0), "question": "Is it?", "part": "tset"}, "part is 'tset', .* Did you mean 'test'"),
        ({"image": np.zeros((4, 4)), "question": "Is it?"}, "array of float64"),
        ("Is it?", "row 0 is a str"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(row, said):
    with pytest.raises(DataError, match=said):
        read_examples([row], "examples")


def test_nothing_other_things_and_ids_that_occur_twice_are_refused():
    twice = [{"image": png(k), "question": "Is it?", "id": "q1"} for k in (0, 1)]
    wrong = {"no examples": [], "int": 3, "no lists of one length": {"image": [png(0)], "question": ["a", "b"]}}
    for said, given in {**wrong, "id 'q1' is that of another": twice}.items():
        with pytest.raises(DataError, match=said):
            numbered(read_examples(given, "examples"))
