import csv

from dualread import plugins
from dualread.data.datasets.pmc_vqa import load_rows

COLUMNS = ["Figure_path", "Question", "Answer", "Choice A", "Choice B", "Choice C", "Choice D", "Answer_label"]


def _record(**changes):
    return {
        "Figure_path": "PMC1064097_F1.jpg",
        "Question": "What is the uptake pattern in the breast?",
        "Answer": "Focal uptake ",
        "Choice A": " A:Diffuse uptake ",
        "Choice B": " B:Focal uptake ",
        "Choice C": " C:No uptake ",
        "Choice D": " D:Cannot be told",
        "Answer_label": "B",
    } | changes


def _write(folder, records, name="test_clean.csv", columns=COLUMNS):
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(records)


def _load(folder, *records):
    _write(folder, records)
    return load_rows(folder, "test", {})


def _choices(*texts):
    return dict(zip(COLUMNS[3:7], texts, strict=True))


def test_fields_of_a_row(tmp_path):
    assert plugins.declared("datasets", "pmc_vqa", "HUB_FILES")["test"] == ("test_clean.csv", "images.zip")
    loaded = _load(tmp_path, _record(), _record(Question='Where, "exactly"?\nHere?'))
    row, other = loaded.rows
    assert loaded.file == tmp_path / "test_clean.csv"
    assert (row.official_id, row.source_row, row.question) == ("0", 0, "What is the uptake pattern in the breast?")
    assert row.options == ("Diffuse uptake", "Focal uptake", "No uptake", "Cannot be told")
    assert (row.reference_answers, row.answer_type) == (("Focal uptake",), "open")
    assert (row.modality, row.location, row.content_family, row.donor_id) == (None, None, None, None)
    assert row.image == tmp_path / "images" / "PMC1064097_F1.jpg"
    assert row.image_name == "PMC1064097_F1.jpg"
    assert (other.official_id, other.question) == ("1", 'Where, "exactly"?\nHere?')
    assert [(step.step, step.kept, step.dropped) for step in loaded.audit] == [
        ("option labels", 2, 0),
        ("four options", 2, 0),
        ("distinct options", 2, 0),
        ("gold option", 2, 0),
    ]


def test_the_training_split_has_its_own_file_and_an_index_column_is_ignored(tmp_path):
    _write(tmp_path, [{"index": "7", **_record()}], "train.csv", ["index", *COLUMNS])
    (row,) = load_rows(tmp_path, "train", {}).rows
    assert (row.official_id, row.options[1]) == ("0", "Focal uptake")


def test_every_field_is_read_as_text(tmp_path):
    choices = _choices("A:1", "B:NA", "C:None", "D:3.0")
    (row,) = _load(tmp_path, _record(Answer="NA", Answer_label=" B ", **choices)).rows
    assert row.options == ("1", "NA", "None", "3.0")
    assert row.reference_answers == ("NA",)


def test_wrong_and_missing_labels_are_removed_and_counted(tmp_path):
    choices = _choices(
        "A: Left lung", "C : Right lung", "C. difficile", " Heart"
    )  # its own label, another option's, none, none
    loaded = _load(tmp_path, _record(Answer="B: right lung.", Answer_label="B", **choices))
    assert loaded.rows[0].options == ("Left lung", "Right lung", "C. difficile", "Heart")
    assert loaded.rows[0].reference_answers == ("Right lung",)
    reason = "labels are removed; 1 options have that of another option, 2 have none"
    assert (loaded.audit[0].step, loaded.audit[0].reason) == ("option labels", reason)


def test_rows_that_cannot_be_asked_are_dropped_and_counted(tmp_path):
    loaded = _load(
        tmp_path,
        _record(),
        _record(**{"Choice D": " D: "}),  # three options
        _record(**{"Choice D": "D:the focal uptakes."}),  # the same answer as B
        _record(Answer="No uptake"),  # the text of C, but the label says B
        _record(Answer_label="E"),
        _record(Answer_label="", Answer=""),
        _record(Answer_label="C", Answer="no uptake."),  # equal in canonical form
    )
    assert [row.official_id for row in loaded.rows] == ["0", "6"]
    assert [(step.step, step.kept, step.dropped) for step in loaded.audit[1:]] == [
        ("four options", 6, 1),
        ("distinct options", 5, 1),
        ("gold option", 2, 3),
    ]
