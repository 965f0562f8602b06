import hashlib
import os
from pathlib import Path

import pytest

from dualread.data.datasets import vqa_med_2019
from dualread.data.datasets.vqa_med_2019 import load_rows
from dualread.grading.canonical import canonical, is_correct

SHARED = Path(os.environ.get("DUALREAD_SHARED", Path(__file__).resolve().parents[3] / ".." / "shared"))
REAL = SHARED / "data" / "vqa_med_2019"
FILE = "VQAMed2019_Test_Questions_w_Ref_Answers.txt"
IMAGES = "VQAMed2019_Test_Images"
LINE = "synpic54082|modality|what modality is shown?|cta - ct angiography\n"


def _write(folder, content, images=()):
    (folder / IMAGES).mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(content if isinstance(content, bytes) else content.encode())
    for name, image in images:
        (folder / IMAGES / f"{name}.jpg").write_bytes(image)


def _accepted(folder, answer):
    _write(folder, f"synpic1|organ|what?|{answer}\n")
    return load_rows(folder, "test", {}).rows[0].reference_answers


def test_fields_of_a_row(tmp_path):
    _write(tmp_path, LINE + " synpic1 | Plane |which  plane? | Axial ")
    first, row = load_rows(tmp_path, "test", {}).rows
    assert (first.official_id, first.image_name, first.source_row) == ("synpic54082", "synpic54082", 0)
    assert first.reference_answers == ("cta - ct angiography",)
    assert (first.answer_type, first.content_family, first.options) == ("open", "modality", ())
    assert (first.modality, first.location) == (None, None)
    assert first.image == tmp_path / IMAGES / "synpic54082.jpg"
    assert (row.official_id, row.content_family, row.source_row) == ("synpic1", "plane", 1)
    assert (row.question, row.reference_answers[0]) == ("which  plane? ", " Axial ")  # verbatim


def test_line_ends_byte_order_marks_blank_lines_and_bars_are_understood(tmp_path):
    _write(tmp_path, b"\xef\xbb\xbfa|organ|q1?|yes\r\n\r\n   \nb|plane|q2?|ap|lateral\r\nc|organ|q3?|NO \n")
    rows = load_rows(tmp_path, "test", {}).rows
    assert [row.official_id for row in rows] == ["a", "b", "c"]
    assert [row.source_row for row in rows] == [0, 3, 4]
    assert [row.reference_answers[0] for row in rows] == ["yes", "ap|lateral", "NO "]
    assert [row.answer_type for row in rows] == ["closed", "open", "closed"]


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ("ct w/contrast (iv)", ["ct w/contrast iv", "ct w/contrast"]),
        ("dermoid tumor (inclusion cyst) of cns", ["dermoid tumor inclusion cyst of cns", "dermoid tumor of cns"]),
        ("face, sinuses, and neck#skull and contents", ["face, sinuses, and neck", "skull and contents"]),
        ("(p) q (r)", ["p q r", "p q", "q r", "q"]),  # 2 ** 2 variants
        ("a (b)#c", ["a b", "a", "c"]),
        ("mass (left)", ["mass left"]),  # a side is never optional
        ("mass (Bilateral) (old)", ["mass Bilateral old", "mass Bilateral"]),
        ("(all)", ["all"]),
        ("#", []),
        ("open ( bracket", []),
    ],
)
def test_the_notation_of_an_answer_gives_its_variants(tmp_path, answer, accepted):
    assert _accepted(tmp_path, answer) == (answer, *accepted)


def test_many_optional_parts_do_not_explode(tmp_path):
    _, kept, dropped = _accepted(tmp_path, "x " + "(y) " * 40)
    assert (kept, dropped) == ("x" + " y" * 40, "x")


def test_each_alternative_is_graded_by_itself(tmp_path):
    golds = _accepted(tmp_path, "gastrointestinal#lung, mediastinum, pleura")
    assert is_correct("pleura, lung and mediastinum", golds)
    assert is_correct("Gastrointestinal", golds)
    assert not is_correct("lung", golds)
    golds = _accepted(tmp_path, "(seronegative) spondylarthropathies")
    assert {"spondylarthropathy", "seronegative spondylarthropathy"} <= {canonical(gold) for gold in golds}
    assert not is_correct("mass", _accepted(tmp_path, "mass (left)"))


def test_images_of_vqa_rad_are_recognized_by_content(tmp_path, monkeypatch):
    monkeypatch.setitem(vqa_med_2019._IN_VQA_RAD, hashlib.sha256(b"shared").hexdigest(), "synpic9")
    lines = "".join(f"{name}|organ|what?|heart\n" for name in ("renamed", "synpic35155", "absent"))
    _write(tmp_path, lines, [("renamed", b"shared"), ("synpic35155", b"another image under that name")])
    loaded = load_rows(tmp_path, "test", {})
    assert [row.official_id for row in loaded.rows] == ["synpic35155", "absent"]
    (step,) = loaded.audit
    assert (step.step, step.kept, step.dropped) == ("images of VQA-RAD", 2, 1)
    assert "synpic43433" in step.reason


def test_the_folder_of_the_official_archive_is_entered(tmp_path):
    _write(tmp_path / "VQAMed2019Test", LINE)
    loaded = load_rows(tmp_path, "test", {})
    assert loaded.file == tmp_path / "VQAMed2019Test" / FILE
    assert loaded.rows[0].image == tmp_path / "VQAMed2019Test" / IMAGES / "synpic54082.jpg"


@pytest.mark.skipif(not REAL.is_dir(), reason="the real VQA-Med 2019 is not on this machine (DUALREAD_SHARED)")
def test_counts_of_the_real_data():
    loaded = load_rows(REAL, "test", {})
    assert [(step.kept, step.dropped) for step in loaded.audit] == [(496, 4)]
    names = {row.image_name for row in loaded.rows}
    assert len(names) == 496
    assert not names & {"synpic35155", "synpic39301", "synpic43433", "synpic47964"}
    closed = [row for row in loaded.rows if row.answer_type == "closed"]
    assert sorted(row.reference_answers for row in closed) == [("no",)] * 32 + [("yes",)] * 32
    by_id = {row.official_id: row.reference_answers for row in loaded.rows}
    assert by_id["synpic54143"][1:] == ("anaplastic oligodendroglioma", "multi-cystic complex mass", "neoplasm")
    assert by_id["synpic33518"] == ("noncontrast (mri)", "noncontrast mri", "noncontrast")
    assert (
        sum(len(answers) > 1 for answers in by_id.values()) == 31
    )  # of 32 answers with the notation, one is about a dropped image
