import hashlib
from pathlib import Path

import polars as pl
import pytest

from dualread.data.questions.build import check_digest, digest
from dualread.errors import DataError

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


def test_another_table_of_questions_is_refused_with_what_to_do():
    _refuse(None)
    _refuse(digest(MANIFEST))
    with pytest.raises(DataError) as error:
        _refuse("0" * 64)
    message = str(error.value)
    assert message.startswith(
        f"/official/test.json: the table of questions of vqa_rad/test (2 rows on 1 images) has the digest"
        f" {digest(MANIFEST)}, expected {'0' * 64}."
    )
    assert "set datasets.vqa_rad.expect_sha256.test to its digest" in message


def _refuse(expected):
    check_digest(MANIFEST, expected, file=Path("/official/test.json"), dataset="vqa_rad", split="test")
