"""Roles of clusters, and what is counted of them."""

import hashlib
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.data.questions.roles import account, assign_roles, summarize

FRACTIONS = {"fit": 0.7, "stop": 0.1, "calibration": 0.2}


@given(st.sets(st.text(max_size=5), min_size=10), st.integers(0, 100), st.randoms())
def test_partition_covers_each_image_once_and_ignores_order(names, seed, random):
    shuffled = [*names, *names]
    random.shuffle(shuffled)
    reordered = dict(reversed(FRACTIONS.items()))
    roles = assign_roles(shuffled, reordered, seed)
    assert roles == assign_roles(sorted(names), FRACTIONS, seed)
    assert set(roles) == names
    for role, fraction in FRACTIONS.items():
        # Each size is a difference of two rounded cumulative counts, so it is off by less than 1.
        assert abs(Counter(roles.values())[role] - fraction * len(names)) < 1 + 1e-9


def test_sizes_and_order_by_hand():
    # Five images: cuts after round(.6 * 5) = 3 and 5; ordered by sha256("3\x1f" + name).
    names = ["a", "b", "c", "d", "e"]
    ordered = sorted(names, key=lambda name: hashlib.sha256(b"3\x1f" + name.encode()).hexdigest())
    roles = assign_roles(names, {"stop": 0.4, "fit": 0.6}, 3)
    assert [name for name in ordered if roles[name] == "fit"] == ordered[:3]
    assert [name for name in ordered if roles[name] == "stop"] == ordered[3:]


def test_a_half_is_rounded_up():
    assert Counter(assign_roles("abcde", {"fit": 0.5, "stop": 0.5}, 0).values()) == {"fit": 3, "stop": 2}


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
