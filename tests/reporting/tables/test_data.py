import polars as pl
import pytest

from dualread.reporting.tables import data
from dualread.schema.tables import LabeledDataset
from dualread.stages import build_table
from tests.reporting.tables.layouts import data_rows, layout
from tests.specs import changed

PMC = ("pmc_vqa", "test", "ood", 2000, 1000, 1000, 994, 6, 0, "no question is asked of two images", "f" * 64)
DATASETS = [
    LabeledDataset(name="slake", label="SLAKE-test", id=True),
    LabeledDataset(name="pmc_vqa", label="PMC_VQA", id=False),
]


@pytest.fixture(scope="module")
def table():
    return build_table.build(data, data_rows(PMC), changed(layout([]), datasets=DATASETS))


def test_lines_as_in_the_paper_with_our_columns(table):
    lines = [line for line in table.tex.splitlines() if line.endswith(r"\\")]
    assert lines == [
        r"Dataset & Role & Official rows & QA & Images & Open & Closed & Pairs & Manifest \\",
        # 3419 + 500 + 1000 = 4919 questions on 315 + 45 + 90 = 450 images
        r"SLAKE-train & fit, stop, calibration & 14028 & 4919 & 450 & 2976 & 1943 & --- & \texttt{aaaaaaaaaaaa} \\",
        r" & \quad fit &  & 3419 & 315 & 2069 & 1350 & --- &  \\",
        r" & \quad stop &  & 500 & 45 & 300 & 200 & --- &  \\",
        r" & \quad calibration &  & 1000 & 90 & 607 & 393 & --- &  \\",
        r"SLAKE-test & test & 2094 & 1061 & 96 & 645 & 416 & 442 & \texttt{0123456789ab} \\",
        r"PMC\_VQA & ood & 2000 & 1000 & 1000 & 994 & 6 & 0 & \texttt{ffffffffffff} \\",
    ]
    assert "study embedded \\& small" in table.tex
    assert "---: the study pairs no questions of this split." in table.tex


def test_the_csv_has_the_whole_digest_and_the_reasons(table):
    cells = table.cells
    digest = cells.filter(dataset="slake", split="test", column="manifest_sha256").row(0, named=True)
    assert (digest["value"], digest["printed"]) == ("0123456789abcdef" * 4, "0123456789ab")
    pairs = cells.filter(column="pairs").select("dataset", "role", "value", "printed", "reason").rows()
    assert pairs[0] == ("slake", "fit, stop, calibration", None, "---", "the study pairs no questions")
    assert pairs[-2:] == [
        ("slake", "test", "442", "442", None),
        ("pmc_vqa", "ood", "0", "0", "no question is asked of two images"),
    ]
    # Seven columns of three splits, five of three roles.
    assert cells.height == 3 * 7 + 3 * 5


def test_only_data_sets_of_the_layout_are_shown(table):
    tex = build_table.build(data, data_rows(PMC), layout([])).tex
    assert "PMC" not in tex
    assert "SLAKE-train" in tex


def test_a_caption_says_what_is_resampled():
    shown = changed(layout([]), units={"SLAKE-test": "image", "Frames": "patient", "Clinic": "patient"})
    text = "Over other {units}, each {unit} at once."
    of_which = "Resampled are images of SLAKE-test; patients of Frames, Clinic."
    assert shown.in_units(text) == f"Over other images or patients, each image or patient at once. {of_which}"
    assert shown.in_units("a {unit}-cluster") == f"a image or patient-cluster. {of_which}"  # no sentence, in a table
    assert [shown.units_of(label) for label in ("SLAKE-test", "Clinic", "another")] == ["images", "patients", "images"]
    alone = changed(shown, units={"Frames": "patient"})
    assert alone.in_units(text) == "Over other patients, each patient at once."
    assert layout([]).in_units(text) == "Over other images, each image at once."


def test_patients_are_counted_where_intervals_go_by_them():
    rows = data_rows(PMC).with_columns(clusters=pl.when(pl.col("dataset") == "slake").then(pl.col("images") // 3))
    table = build_table.build(data, rows, changed(layout([]), datasets=DATASETS))
    lines = [line for line in table.tex.splitlines() if line.endswith(r"\\")]
    assert lines[0] == r"Dataset & Role & Official rows & QA & Images & Patients & Open & Closed & Pairs & Manifest \\"
    assert lines[1].startswith(r"SLAKE-train & fit, stop, calibration & 14028 & 4919 & 450 & 150 & 2976")
    assert lines[-1].startswith(r"PMC\_VQA & ood & 2000 & 1000 & 1000 & --- & 994")
    assert "Patients: what roles, donors and all intervals go by where this table counts them" in table.tex
