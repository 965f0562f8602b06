import hashlib
from dataclasses import replace
from pathlib import Path

import polars as pl

from dualread.data.datasets.base import AuditStep, Loaded, Picture, Row
from dualread.data.questions.audit import refuse_broken
from dualread.data.questions.build import build, digest
from dualread.data.questions.pictures import ImageFile

FILE = Path("/official/test.json")


def _row(number, *, name="i1", image=None, **changes):
    row = Row(
        official_id=str(number),
        question="What  is it?",
        reference_answers=("CT",),
        answer_type="open",
        content_family="modality",
        options=(),
        modality="ct",
        location="lung",
        images=(Picture(image or Path(f"/official/imgs/{name}.jpg"), name),),
        source_row=number,
    )
    return replace(row, **changes)


def _loaded(*rows):
    return Loaded(file=FILE, rows=rows, audit=[AuditStep(step="language", kept=len(rows), dropped=2, reason="r")])


def _images(**pixels):
    return {
        Path(f"/official/imgs/{name}.jpg"): ImageFile(file=f"images/{name}.jpg", pixel_sha256=digest, thumbnail=b"")
        for name, digest in pixels.items()
    }


def _build(loaded, images, roles="test"):
    return build(loaded, images, dataset="slake", split="test", roles=roles, seed=0)


def test_columns_of_a_row():
    manifest, _ = _build(_loaded(_row(5)), _images(i1="p"))
    assert manifest.rows(named=True) == [
        {
            "sample_id": "slake/test/5",
            "dataset": "slake",
            "split": "test",
            "role": "test",
            "question": "What  is it?",
            "question_key": "what is it",
            "reference_answers": ["CT"],
            "answer_type": "open",
            "content_family": "modality",
            "options": [],
            "modality": "ct",
            "location": "lung",
            "image_files": ["images/i1.jpg"],
            "image_roles": [],
            "pixel_sha256s": ["p"],
            "image_id": "i1",
            "cluster_id": "i1",
            "patient_id": None,
            "source_row": 5,
            "donor_sample_id": None,
        }
    ]


def test_a_named_donor_is_a_row_of_the_same_table():
    manifest, _ = _build(_loaded(_row(0, donor_id="1"), _row(1)), _images(i1="p"))
    assert manifest["donor_sample_id"].to_list() == ["slake/test/1", None]


def test_images_with_the_same_pixels_are_one_cluster_with_one_role():
    rows = [_row(i, name=f"i{i}") for i in range(20)]
    # i19 shows the same picture as i3; its name sorts first ("i19" < "i3").
    images = _images(**{f"i{i}": f"p{3 if i == 19 else i}" for i in range(20)})
    manifest, audit = _build(_loaded(*rows), images, roles={"fit": 0.5, "stop": 0.5})
    assert manifest["image_id"][3] == manifest["image_id"][19] == "i19"
    assert manifest["role"][3] == manifest["role"][19]
    assert "20 image names, 19 distinct pictures" in audit["reason"].to_list()


def test_empty_answers_and_repetitions_are_kept_and_counted():
    rows = [_row(0), _row(1), _row(2, reference_answers=("",)), _row(3, reference_answers=("MRI",))]
    manifest, audit = _build(_loaded(*rows), _images(i1="p"))
    assert manifest.height == 4
    reasons = dict(audit.select("step", "reason").iter_rows())
    assert reasons["empty answers"] == "1 rows with an empty answer are kept: 2"
    assert reasons["repetitions"].startswith("1 rows repeat")
    assert audit.row(0) == ("language", 4, 2, "r")
    assert audit.filter(audit["step"] == "role test")["kept"].to_list() == [4]


def test_rows_that_a_prompt_can_ask_and_an_answer_can_match_are_accepted():
    asked = _row(0, options=("liver", "lung"), reference_answers=("the Lung.", "right lung"))
    refuse_broken(_loaded(asked, _row(1, options=tuple(map(str, range(10))), reference_answers=("9",)), _row(2)), {})


MANIFEST = pl.DataFrame(
    {
        "sample_id": ["a", "b"],
        "reference_answers": [["é"], []],
        "modality": ["ct", None],
        "image_id": ["i", "i"],
        "cluster_id": ["i", "j"],
        "patient_id": [None, "p"],
        "image_files": [["images/ab.png"], ["images/cd.png"]],
        "image_roles": pl.Series([[], []], dtype=pl.List(pl.String)),
        "pixel_sha256s": [["p1"], ["p2"]],
    }
)


def test_the_digest_is_that_of_the_rows_as_json():
    lines = (
        '{"image_file":"images/ab.png","image_id":"i","image_sha256":"ab","modality":"ct","pixel_sha256":"p1",'
        '"reference_answers":["é"],"sample_id":"a"}\n'
        '{"cluster_id":"j","image_file":"images/cd.png","image_id":"i","image_sha256":"cd","modality":null,'
        '"patient_id":"p","pixel_sha256":"p2","reference_answers":[],"sample_id":"b"}\n'
    )
    assert digest(MANIFEST) == hashlib.sha256(lines.encode()).hexdigest()


def test_the_digest_of_several_images_has_their_lists():
    several = MANIFEST.head(1).with_columns(
        image_files=pl.lit(["images/ab.png", "images/cd.png"]),
        image_roles=pl.lit(["prior", "current"]),
        pixel_sha256s=pl.lit(["p1", "p2"]),
    )
    line = (
        '{"image_files":["images/ab.png","images/cd.png"],"image_id":"i","image_roles":["prior","current"],'
        '"modality":"ct","pixel_sha256s":["p1","p2"],"reference_answers":["é"],"sample_id":"a"}\n'
    )
    assert digest(several) == hashlib.sha256(line.encode()).hexdigest()
