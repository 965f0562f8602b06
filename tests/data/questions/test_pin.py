import hashlib

import polars as pl

from dualread.data.questions.build import digest

MANIFEST = pl.DataFrame(
    {"sample_id": ["a", "b"], "reference_answers": [["é"], []], "modality": ["ct", None], "image_id": ["i", "i"]}
)


def test_the_digest_is_that_of_the_rows_as_json():
    lines = (
        '{"image_id":"i","modality":"ct","reference_answers":["é"],"sample_id":"a"}\n'
        '{"image_id":"i","modality":null,"reference_answers":[],"sample_id":"b"}\n'
    )
    assert digest(MANIFEST) == hashlib.sha256(lines.encode()).hexdigest()


def test_the_digest_sees_every_value_and_the_order_of_rows_but_not_the_order_of_columns():
    assert digest(MANIFEST.select(sorted(MANIFEST.columns))) == digest(MANIFEST)
    assert digest(MANIFEST.reverse()) != digest(MANIFEST)
    for column in MANIFEST.columns:
        assert digest(MANIFEST.with_columns(MANIFEST[column].reverse())) != digest(MANIFEST) or column == "image_id"
        assert digest(MANIFEST.drop(column)) != digest(MANIFEST)
