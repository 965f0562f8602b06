from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dualread.evaluation.join import join
from dualread.evaluation.statistics.jackknife import pair_shifts
from tests import golden
from tests.evaluation.cells import cell, control_cell


def joined(cell=cell, **changes):
    questions, donors, grades, predictions = cell()
    tables = {"manifest": questions, "pairs": donors, "graded": grades, "predictions": predictions}
    return join(where="slake/test", **{**tables, **changes})


def without(tables, condition, n=1):
    return {**tables, condition: tables[condition][n:]}


def test_every_question_and_every_pair_is_there_once():
    questions, donors, grades, predictions = cell()
    found = joined()
    assert found.answers["sample_id"].to_list() == sorted(questions["sample_id"])
    assert found.pairs["sample_id"].to_list() == sorted(donors["sample_id"])
    row = found.pairs.row(3, named=True)
    for suffix, condition in (("real", "original"), ("donor", "donor")):
        chosen = pl.col("sample_id") == row["sample_id"]
        assert row[f"correct_{suffix}"] == grades[condition].filter(chosen)["correct"][0]
        assert row[f"canonical_answer_{suffix}"] == grades[condition].filter(chosen)["canonical_answer"][0]
        assert row[f"confidence_{suffix}"] == predictions[condition].filter(chosen)["confidence"][0]


def test_images_of_a_patient_are_one():
    questions, *_ = control_cell()
    first = [f"slake-image-{int(image[-2:]) // 2 * 2:02}" for image in questions["image_id"]]
    found = joined(control_cell, manifest=questions.with_columns(cluster_id=pl.Series(first)))
    alone = joined(control_cell)
    for rows, of_image in (
        (found.answers, alone.answers),
        (found.pairs, alone.pairs),
        (found.shuffled, alone.shuffled),
    ):
        names = [name for name in rows.columns if name.endswith("cluster_id")]
        assert names
        for name in names:
            first = of_image[name].str.slice(-2).cast(pl.Int64) // 2 * 2
            assert rows[name].to_list() == [f"slake-image-{k:02}" for k in first], name
        assert rows.drop(names).equals(of_image.drop(names))


def test_a_cluster_that_lends_itself_an_image_counts_once_on_each_side():
    # The donor of question i is i + 8, about image (i + 8) % 12. With every fourth image in one cluster, it is within.
    questions, *_ = cell()
    clusters = pl.Series([f"body {int(image[-2:]) % 4}" for image in questions["image_id"]])
    pairs = joined(manifest=questions.with_columns(cluster_id=clusters)).pairs
    assert pairs["source_cluster_id"].n_unique() == 4
    assert pairs["donor_cluster_id"].to_list() == [f"donor of {name}" for name in pairs["source_cluster_id"]]
    # So the variance is that of leaving out each of the four bodies, with all its pairs.
    values = (pairs["correct_real"].cast(pl.Float64) - pairs["correct_donor"]).to_numpy() / 2 + 0.5
    numbers = pl.concat([pairs["source_cluster_id"], pairs["donor_cluster_id"]]).rank("dense").to_numpy() - 1
    found = pair_shifts(values, *np.split(numbers, 2)).variance()
    bodies = pairs["source_cluster_id"].to_numpy()
    shifts = [values[bodies != body].mean() - values.mean() for body in sorted(set(bodies))]
    # Eight clusters move the mean, each body twice: 7/8 x 2 S; four couples, 3/4 x S. The difference is S.
    assert found.value == pytest.approx(sum(shift**2 for shift in shifts))
    assert (found.df, found.n) == pytest.approx((3.0, 4.0))  # 8 pairs of each


def test_no_pairs():
    _, donors, grades, predictions = cell()
    none = "no same-question donors"
    assert joined(pairs=None).pairs == joined(pairs=None).fixed == none
    assert joined(pairs=donors.clear()).pairs == none
    assert joined(pairs=None, predictions={"original": predictions["original"]}, graded=grades).pairs == none


def test_controls_are_joined_beside_the_answers_that_they_control():
    questions, _, grades, predictions = control_cell()
    found = joined(control_cell)
    assert found.fixed.select(found.pairs.columns).equals(found.pairs)
    assert found.shuffled["sample_id"].to_list() == sorted(questions["sample_id"])
    for frame, suffix, condition in (
        (found.fixed, "fixed", "donor_fixed_prefix"),
        (found.shuffled, "shuffled", "shuffled_image"),
    ):
        row = frame.row(5, named=True)
        chosen = pl.col("sample_id") == row["sample_id"]
        assert row[f"correct_{suffix}"] == grades[condition].filter(chosen)["correct"][0]
        assert row[f"confidence_{suffix}"] == predictions[condition].filter(chosen)["confidence"][0]
        assert row["confidence_real"] == predictions["original"].filter(chosen)["confidence"][0]
    own = questions.filter(sample_id=row["sample_id"])["image_id"][0]
    assert row["source_cluster_id"] == own != row["shuffled_cluster_id"]


def test_a_control_that_was_not_answered_or_not_scored_is_a_reason():
    found = joined()
    assert found.fixed == "no answers under condition donor_fixed_prefix"
    assert found.shuffled == "no answers under condition shuffled_image"
    grades, predictions = control_cell()[2:]
    found = joined(graded=grades, predictions={name: predictions[name] for name in ("original", "donor")})
    assert found.fixed == "this method has no confidence under condition donor_fixed_prefix"
    assert found.shuffled == "this method has no confidence under condition shuffled_image"


def test_any_other_condition_is_beside_the_original():
    _, _, grades, predictions = cell()
    chosen = grades["original"].head(5)
    noisy = chosen.with_columns(correct=~pl.col("correct"))
    stated = predictions["original"].join(chosen.select("sample_id"), on="sample_id", how="semi")
    noisy_stated = stated.with_columns(confidence=pl.lit(0.25))
    found = joined(graded=grades | {"noisy": noisy}, predictions=predictions | {"noisy": noisy_stated}).conditions
    assert list(found) == ["original", "donor", "noisy"]
    assert joined().conditions == {}
    rows = found["noisy"].sort("sample_id")
    assert rows["sample_id"].to_list() == sorted(chosen["sample_id"])
    assert (rows["correct_other"] == ~rows["correct_real"]).all()
    assert rows["confidence_other"].to_list() == [0.25] * 5
    assert (
        rows["other_cluster_id"] == pl.select(pl.format("noisy of {}", rows["source_cluster_id"])).to_series()
    ).all()
    own = found["original"]
    assert (own["correct_other"] == own["correct_real"]).all()
    # On a donor's image, the other image is the donor's.
    pairs = joined().pairs.sort("sample_id")
    assert found["donor"]["other_cluster_id"].to_list() == pairs["donor_cluster_id"].to_list()
    without = joined(graded=grades | {"noisy": noisy}).conditions["noisy"]
    assert without == "this method has no confidence under condition noisy"


QUESTIONS, _, GRADES, PREDICTIONS = control_cell()
ORIGINAL = {name: tables["original"] for name, tables in (("graded", GRADES), ("predictions", PREDICTIONS))}
STRANGE = {name: frame.with_columns(pl.col("sample_id") + "x") for name, frame in ORIGINAL.items()}
# What is wrong in a cell with all controls.
REFUSED = {
    "a prediction": {"predictions": without(PREDICTIONS, "original")},
    "a grade": {"graded": without(GRADES, "donor")},
    "six answers": {"graded": without(GRADES, "original", 6), "predictions": without(PREDICTIONS, "original", 6)},
    "predictions of donors": {"predictions": {"original": ORIGINAL["predictions"]}},
    "grades of donors": {"graded": {"original": ORIGINAL["graded"]}},
    "two grades of an answer": {
        "graded": {**GRADES, "original": pl.concat([GRADES["original"], GRADES["original"][:1]])}
    },
    **{
        f"{condition}, {of} {value}": {
            "graded": {**GRADES, condition: GRADES[condition].with_columns(**{of: pl.lit(value, dtype=pl.String)})}
        }
        for condition, of, value in (
            ("donor", "image_id", "elsewhere"),
            ("donor_fixed_prefix", "image_id", "elsewhere"),
            ("donor_fixed_prefix", "canonical_answer", "other"),
            ("donor_fixed_prefix", "canonical_answer", None),
            ("shuffled_image", "image_id", "slake-image-00"),
        )
    },
    **{
        f"a row of {of}": {"graded": without(GRADES, of), "predictions": without(PREDICTIONS, of)}
        for of in ("donor_fixed_prefix", "shuffled_image")
    },
    "answers to other questions": {
        "graded": GRADES | {"noisy": STRANGE["graded"]},
        "predictions": PREDICTIONS | {"noisy": STRANGE["predictions"]},
    },
}


def test_what_does_not_fit_together_is_refused():
    found = {name: golden.message_of(lambda of=of: joined(control_cell, **of)) for name, of in REFUSED.items()}
    golden.check(Path(__file__).with_name("join.txt"), found)
