import hashlib
from pathlib import Path

import polars as pl
import pytest

from dualread.data.questions.build import digest, refuse_another
from dualread.errors import DataError

MANIFEST = pl.DataFrame(
    {
        "sample_id": ["a", "b"],
        "reference_answers": [["é"], []],
        "modality": ["ct", None],
        "image_id": ["i", "i"],
        "cluster_id": ["i", "j"],
        "patient_id": [None, "p"],
    }
)


def test_the_digest_is_that_of_the_rows_as_json():
    lines = (
        '{"image_id":"i","modality":"ct","reference_answers":["é"],"sample_id":"a"}\n'
        '{"cluster_id":"j","image_id":"i","modality":null,"patient_id":"p","reference_answers":[],"sample_id":"b"}\n'
    )
    assert digest(MANIFEST) == hashlib.sha256(lines.encode()).hexdigest()


def test_the_digest_sees_every_value_and_the_order_of_rows_but_not_the_order_of_columns():
    assert digest(MANIFEST.select(sorted(MANIFEST.columns))) == digest(MANIFEST)
    assert digest(MANIFEST.reverse()) != digest(MANIFEST)
    for column in MANIFEST.columns:
        assert digest(MANIFEST.with_columns(MANIFEST[column].reverse())) != digest(MANIFEST) or column == "image_id"
        if column not in ("image_id", "cluster_id", "patient_id"):  # the digest reads the last two beside the first
            assert digest(MANIFEST.drop(column)) != digest(MANIFEST)


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
    refuse_another(MANIFEST, expected, file=Path("/official/test.json"), dataset="vqa_rad", split="test")
