import polars as pl
import pytest

from dualread.data.questions.roles import account, summarize

AUDIT = pl.DataFrame({"step": ["language", "draw"], "kept": [9, 5], "dropped": [3, 4], "reason": ["a", "b"]})


def _manifest(*rows):
    """Return the columns that are counted, given (role, answer type, question, image)."""
    frame = pl.DataFrame(rows, schema=["role", "answer_type", "question_key", "image_id"], orient="row")
    names = [pl.lit("slake").alias("dataset"), pl.lit("train").alias("split")]
    return frame.with_row_index("sample_id").with_columns(
        pl.col("sample_id").cast(pl.String), *names, cluster_id="image_id"
    )


def _pairs(*sources):
    return pl.DataFrame({"sample_id": list(sources)}, schema={"sample_id": pl.String})


def _pair_audit(n_pairs, mean=None):
    return pl.DataFrame(
        {
            "rule": ["match on modality", "match on nothing"],
            "n_questions": [5, 5],
            "n_eligible": [4, 5],
            "n_pairs": [n_pairs, 3],
            "mean_candidates": [mean, 1.26],
        },
        schema_overrides={"mean_candidates": pl.Float64},
    )


MANIFEST = _manifest(
    ("stop", "open", "what", "i1"),
    ("fit", "open", "what", "i2"),
    ("fit", "closed", "is it", "i2"),
    ("fit", "open", "where", "i3"),
    ("calibration", "closed", "is this", "i4"),
)


def test_patients_are_counted_where_a_split_names_them():
    patient = pl.col("image_id").replace("i3", "i2")
    of_patients = MANIFEST.with_columns(cluster_id=patient, patient_id=patient)
    data = summarize(of_patients, AUDIT, _pairs("1"), _pair_audit(1, 2.0), manifest_sha256="f" * 64)
    assert data.select("role", "images", "clusters").rows() == [("fit", 2, 1), ("stop", 1, 1), ("calibration", 1, 1)]


def test_roles_are_counted_in_their_order():
    data = summarize(MANIFEST, AUDIT, _pairs("1"), _pair_audit(1, 2.0), manifest_sha256="f" * 64)
    counts = data.select("role", "source_rows", "questions", "images", "open", "closed", "pairs").rows()
    assert data["clusters"].to_list() == [None] * 3
    # 9 + 3 = 12 rows of the official file
    assert counts == [("fit", 12, 3, 2, 2, 1, 1), ("stop", 12, 1, 1, 1, 0, 0), ("calibration", 12, 1, 1, 0, 1, 0)]
    assert data["reason"].to_list() == [
        None,
        "1 questions are asked about several images, none with another gold answer (match on modality)",
        "no question is asked about two images",
    ]
    assert set(data["manifest_sha256"]) == {"f" * 64}


def test_a_split_without_donors_has_no_number_of_pairs_and_says_why():
    data = summarize(MANIFEST, AUDIT, None, None, manifest_sha256="f" * 64)
    assert data["pairs"].to_list() == [None] * 3
    assert set(data["reason"]) == {"the study pairs no questions of this split"}


@pytest.mark.parametrize(("mean", "said"), [(2.04, "2.0"), (None, "no")])
def test_the_account_has_every_step_and_both_rules_of_the_pairs(mean, said):
    steps = account(MANIFEST, AUDIT, _pair_audit(2, mean))
    assert steps.columns == ["dataset", "split", "step", "kept", "dropped", "reason"]
    assert steps.drop("dataset", "split").rows() == [
        ("language", 9, 3, "a"),
        ("draw", 5, 4, "b"),
        ("donors", 2, 3, f"match on modality; 4 questions were eligible, {said} candidates per pair"),
        ("donors", 3, 2, "match on nothing; 5 questions were eligible, 1.3 candidates per pair"),
    ]
    assert steps.select("dataset", "split").unique().rows() == [("slake", "train")]
    assert account(MANIFEST, AUDIT, None).height == 2
