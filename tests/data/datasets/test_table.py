import hashlib
import json

import polars as pl
import pytest

from dualread import plugins
from dualread.data.datasets.base import AuditStep
from dualread.data.datasets.own_tables import SPLITS
from dualread.data.datasets.table import load_rows
from dualread.errors import ConfigError, DataError


def _record(**changes):
    return {"question": "What is it?", "reference_answers": ["CT", "CT scan"], "image": "img/a.png"} | changes


def _lines(folder, *records, name="test.jsonl"):
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _load(folder, *records):
    _lines(folder, *records)
    return load_rows(folder, "test", {})


def test_a_row_with_the_required_columns(tmp_path):
    assert "table" in plugins.known("datasets")
    loaded = _load(tmp_path, _record())
    (row,) = loaded.rows
    assert loaded.file == tmp_path / "test.jsonl"
    assert (row.question, row.reference_answers, row.answer_type) == ("What is it?", ("CT", "CT scan"), "open")
    assert (row.options, row.modality, row.location, row.content_family, row.donor_id) == ((), None, None, None, None)
    assert (row.image, row.image_name, row.source_row) == (tmp_path / "img" / "a.png", "img/a.png", 0)
    content = json.dumps(["What is it?", ["CT", "CT scan"], [], "img/a.png"])
    assert row.official_id == hashlib.sha256(content.encode()).hexdigest()[:16]
    assert loaded.audit == [AuditStep(step="split", kept=1, dropped=0, reason="rows of test.jsonl for test")]


def test_a_row_with_every_column(tmp_path):
    more = {
        "id": 7,
        "answer_type": "closed",
        "options": ["a", "b", "c", "d"],
        "modality": " MRI",
        "location": "Brain",
        "content_family": "Organ ",
        "image_id": "scan 3",
        "donor_id": 8,
    }
    (row,) = _load(tmp_path, _record(reference_answers="b", **more)).rows
    assert (row.official_id, row.donor_id, row.image_name) == ("7", "8", "scan 3")
    assert (row.reference_answers, row.options, row.answer_type) == (("b",), ("a", "b", "c", "d"), "closed")
    assert (row.modality, row.location, row.content_family) == ("mri", "brain", "organ")


def test_a_null_means_the_same_as_a_missing_column(tmp_path):
    names = ("id", "answer_type", "options", "modality", "location", "content_family", "image_id", "donor_id")
    assert _load(tmp_path, _record(**dict.fromkeys(names))).rows == _load(tmp_path, _record()).rows


@pytest.mark.parametrize(
    ("answers", "kind"), [("Yes", "closed"), (["no."], "closed"), (["yes", "Yes!"], "closed"), (["yes", "CT"], "open")]
)
def test_yes_and_no_are_closed_unless_the_row_says_otherwise(tmp_path, answers, kind):
    assert _load(tmp_path, _record(reference_answers=answers)).rows[0].answer_type == kind
    assert _load(tmp_path, _record(reference_answers=answers, answer_type="open")).rows[0].answer_type == "open"


def test_a_computed_id_depends_on_the_content_only(tmp_path):
    records = [
        _record(),
        _record(question="What?"),
        _record(reference_answers="MRI"),
        _record(image="b.png"),
        _record(options=["CT", "MRI"]),
    ]
    ids = [row.official_id for row in _load(tmp_path, *records).rows]
    assert len(set(ids)) == 5
    again = _load(tmp_path, *[record | {"modality": "ct"} for record in reversed(records)]).rows
    assert [row.official_id for row in again] == ids[::-1]
    assert (
        _load(tmp_path, _record(image="./img//a.png")).rows[0].official_id == ids[0]
    )  # the same path, spelled differently


def test_parquet_holds_paths_bytes_or_both(tmp_path):
    def images(values, schema):
        table = pl.DataFrame({"image": values}, schema={"image": schema})
        table = table.with_columns(
            question=pl.lit("Is it?"), reference_answers=pl.lit("yes"), id=pl.int_range(pl.len())
        )
        table.write_parquet(tmp_path / "test.parquet")
        return [(row.official_id, row.image, row.image_name) for row in load_rows(tmp_path, "test", {}).rows]

    digest = hashlib.sha256(b"x").hexdigest()
    assert images(["a.png"], pl.String) == [("0", tmp_path / "a.png", "a.png")]
    found = images([b"x", b"y", b"x"], pl.Binary)
    assert [image for _, image, _ in found] == [b"x", b"y", b"x"]
    assert found[0][1] is found[2][1]  # equal bytes are one object
    assert found[0][2] == digest
    both = pl.Struct({"bytes": pl.Binary, "path": pl.String})
    assert images([{"bytes": b"x", "path": "/any/name"}, {"bytes": None, "path": "b.png"}], both) == [
        ("0", b"x", digest),
        ("1", tmp_path / "b.png", "b.png"),
    ]


def test_one_table_for_all_splits(tmp_path):
    records = [_record(id="a", split="train"), _record(id="b", split="test"), _record(id="c", split="test")]
    _lines(tmp_path, *records, name="rows.jsonl")
    loaded = load_rows(tmp_path, "test", {})
    assert [(row.official_id, row.source_row) for row in loaded.rows] == [("b", 1), ("c", 2)]
    assert [(step.step, step.kept, step.dropped) for step in loaded.audit] == [("split", 2, 1)]
    with pytest.raises(DataError, match=r"rows\.jsonl: no row of the split 'validation'"):
        load_rows(tmp_path, "validation", {})
    (tmp_path / "rows.jsonl").unlink()
    pl.DataFrame(records).write_parquet(tmp_path / "rows.parquet")
    assert [row.official_id for row in load_rows(tmp_path, "train", {}).rows] == ["a"]


EXCEL = (
    "\ufeffBild;Frage;Antwort;Abteilung\r\n"
    "img\\1.png;Was ist gezeigt?;Röntgen#X-ray;A\r\n"
    '"img/2.png";"Liegt eine Läsion vor,\r\nund ""wo""?";ja;\r\n'
    ";;;\r\n"
)
NAMES = {"image": "Bild", "question": "Frage", "reference_answers": "Antwort"}


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_csv_as_excel_saves_it(tmp_path, encoding):
    text = EXCEL.removeprefix("\ufeff") if encoding == "cp1252" else EXCEL
    (tmp_path / "test.csv").write_bytes(text.encode(encoding))
    first, second = load_rows(tmp_path, "test", {"columns": NAMES, "alternatives": "#"}).rows
    assert (first.question, first.reference_answers) == ("Was ist gezeigt?", ("Röntgen", "X-ray"))
    assert (first.image, first.image_name) == (tmp_path / "img/1.png", "img/1.png")
    assert second.question == 'Liegt eine Läsion vor,\r\nund "wo"?'
    assert second.reference_answers == ("ja",)


def test_columns_may_be_named_and_exchanged(tmp_path):
    record = {"question": "liver", "answer": "Which organ?", "picture": "a.png", "note": "unused"}
    _lines(tmp_path, record)
    names = {"question": "answer", "reference_answers": "question", "image": "picture"}
    (row,) = load_rows(tmp_path, "test", {"columns": names}).rows
    assert (row.question, row.reference_answers, row.image_name) == ("Which organ?", ("liver",), "a.png")
    with pytest.raises(DataError, match=r"no column 'pictur', which settings\.columns\.image.*Did you mean 'picture'"):
        load_rows(tmp_path, "test", {"columns": {**names, "image": "pictur"}})
    with pytest.raises(ConfigError, match=r"settings\.columns\.images: no such column\. Known: .*Did you mean 'image'"):
        load_rows(tmp_path, "test", {"columns": {"images": "picture"}})


def test_files_may_be_named_by_patterns(tmp_path):
    (tmp_path / "data").mkdir()
    for k in range(2):
        pl.DataFrame([_record(id=k)]).write_parquet(tmp_path / f"data/test-0000{k}-of-00002.parquet")
    loaded = load_rows(tmp_path, "test", {"files": {"test": "data/test-*.parquet"}})
    assert [(row.official_id, row.source_row) for row in loaded.rows] == [("0", 0), ("1", 1)]
    with pytest.raises(DataError, match=r"settings\.files names no table for train: None"):
        load_rows(tmp_path, "train", {"files": {"test": "data/test-*.parquet"}})
    with pytest.raises(DataError, match=r"names no table for test: \.\./\*"):
        load_rows(tmp_path, "test", {"files": {"test": "../*"}})


def test_shares_split_by_image(tmp_path):
    records = [_record(id=str(k), image=f"{k // 2}.png") for k in range(20)]  # ten images, two questions each
    _lines(tmp_path, *records, name="mine.jsonl")
    settings = {"files": {"rows": "mine.jsonl"}, "shares": {"train": 0.6, "validation": 0.2, "test": 0.2}}
    images = {split: [row.image_name for row in load_rows(tmp_path, split, settings).rows] for split in SPLITS}
    assert {split: len(set(names)) for split, names in images.items()} == {"train": 6, "validation": 2, "test": 2}
    assert all(names.count(name) == 2 for names in images.values() for name in names)
    assert set().union(*images.values()) == {f"{k}.png" for k in range(10)}
    _lines(tmp_path, *reversed(records), name="mine.jsonl")
    assert {row.image_name for row in load_rows(tmp_path, "test", settings).rows} == set(images["test"])
    audit = load_rows(tmp_path, "test", settings).audit
    assert audit == [AuditStep(step="split", kept=4, dropped=16, reason="rows of mine.jsonl for test")]


def test_shares_split_by_patient(tmp_path):
    # Five patients with four images each. Of images, three fifths would be cut through a patient.
    records = [_record(id=str(k), image=f"{k}.png", patient=f"p{k // 4}") for k in range(20)]
    _lines(tmp_path, *records, name="mine.jsonl")
    shares = {"train": 0.6, "validation": 0.2, "test": 0.2}
    settings = {"files": {"rows": "mine.jsonl"}, "columns": {"group": "patient"}, "shares": shares}
    ids = {split: {int(row.official_id) for row in load_rows(tmp_path, split, settings).rows} for split in SPLITS}
    patients = {split: {k // 4 for k in found} for split, found in ids.items()}
    assert {split: len(found) for split, found in patients.items()} == {"train": 3, "validation": 1, "test": 1}
    assert {split: len(found) for split, found in ids.items()} == {"train": 12, "validation": 4, "test": 4}
    assert sorted(k for found in patients.values() for k in found) == [0, 1, 2, 3, 4]


_OF_PATIENTS = {"columns": {"group": "patient"}}


def _table_of_patients(folder, patients, *, splits=("train", "test"), name="rows.csv"):
    rows = zip(range(len(patients)), patients, splits, strict=True)
    lines = ["id,question,reference_answers,image,patient,split", *(f"{k},q?,yes,{k}.png,{p},{s}" for k, p, s in rows)]
    (folder / name).write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("patients", "said"),
    [
        (("p1", " p1 "), "the group 'p1' has rows of train and of test"),
        (("1", "1.0"), "the groups '1' and '1.0' are one number"),  # a column that became floats, in part
        (("007", "7"), "the groups '007' and '7' are one number"),  # a spreadsheet took the zeros
        (("7", "007.0"), "the groups '7' and '007.0' are one number"),
        (("a", ""), r"line 3: group is missing \(None\)"),
        (("", ""), "line 2: group is missing"),
        (("a", "  "), "line 3: group is missing"),
        (("a", "NaN"), r"line 3: group is missing \('NaN'\)"),
        (("1e+20", "100000000000000000000"), r"line 2: group is '1e\+20': expected an id with all its digits"),
    ],
)
def test_groups_that_may_be_one_and_missing_ones_are_refused(tmp_path, patients, said):
    _table_of_patients(tmp_path, patients)
    with pytest.raises(DataError, match=said):
        load_rows(tmp_path, "test", _OF_PATIENTS)


@pytest.mark.parametrize(
    "patients", [("0", "00A"), ("1", "10"), ("1.0", "1.5"), ("007", "008"), ("p1", "P1"), ("1", "-1")]
)
def test_groups_that_differ_stay_apart(tmp_path, patients):
    _table_of_patients(tmp_path, patients)
    assert [row.official_id for row in load_rows(tmp_path, "test", _OF_PATIENTS).rows] == ["1"]


def test_a_patient_is_one_whether_its_number_is_a_number_a_float_or_text(tmp_path):
    records = [_record(id=str(k), image="same.png", group=group, split="test") for k, group in enumerate((7, "7", 7.0))]
    _lines(tmp_path, *records, name="rows.jsonl")
    assert len(load_rows(tmp_path, "test", {}).rows) == 3


@pytest.mark.parametrize(("patient", "shared"), [("p1", True), ("p2", False)])
def test_patients_are_compared_across_tables_of_splits(tmp_path, patient, shared):
    _lines(tmp_path, _record(id="a", image="a.png", group="p1"), name="train.jsonl")
    _lines(tmp_path, _record(id="b", image="b.png", group=patient), name="test.jsonl")
    for split, other in (("test", "train"), ("train", "test")):
        if shared:
            with pytest.raises(DataError, match=f"the group 'p1' has rows of {split} and of {other}"):
                load_rows(tmp_path, split, {})
        else:
            assert len(load_rows(tmp_path, split, {}).rows) == 1
    named = {"files": {"train": "train.jsonl", "test": "test.jsonl"}}
    _lines(tmp_path, _record(id="b", image="b.png", group="007"), name="test.jsonl")
    _lines(tmp_path, _record(id="a", image="a.png", group=7), name="train.jsonl")
    with pytest.raises(DataError, match="the groups '007' and '7' are one number"):
        load_rows(tmp_path, "test", named)
