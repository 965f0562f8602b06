import polars as pl
import pytest

from dualread.errors import ArtifactError
from dualread.evaluation.join import join
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


def test_no_pairs():
    _, donors, grades, predictions = cell()
    none = "no same-question donors"
    assert joined(pairs=None).pairs == joined(pairs=None).fixed == none
    assert joined(pairs=donors.clear()).pairs == none
    assert joined(pairs=None, predictions={"original": predictions["original"]}, graded=grades).pairs == none


def test_a_prediction_that_is_missing_is_named():
    with pytest.raises(ArtifactError, match=r"slake/test/original: .*only in graded answers: slake/test/000"):
        joined(predictions=without(cell()[3], "original"))


def test_a_grade_that_is_missing_is_named():
    with pytest.raises(ArtifactError, match=r"slake/test/donor: .*Only in predictions: slake/test/000"):
        joined(graded=without(cell()[2], "donor"))


def test_questions_that_were_never_answered_are_named():
    grades, predictions = cell()[2:]
    with pytest.raises(ArtifactError, match=r"only in manifest: .*\(6 in all\)"):
        joined(graded=without(grades, "original", 6), predictions=without(predictions, "original", 6))


def test_a_condition_that_is_missing_is_named():
    grades, predictions = cell()[2:]
    with pytest.raises(ArtifactError, match="no predictions under condition 'donor', found: original"):
        joined(predictions={"original": predictions["original"]})
    with pytest.raises(ArtifactError, match="donor: there are predictions but no graded answers"):
        joined(graded={"original": grades["original"]})


def test_two_rows_of_one_question_are_refused():
    grades = cell()[2]
    doubled = {**grades, "original": pl.concat([grades["original"], grades["original"][:1]])}
    with pytest.raises(ArtifactError, match="more than one row of: slake/test/000"):
        joined(graded=doubled)


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
    assert row["source_image_id"] == own != row["shuffled_image_id"]


def test_a_control_that_was_not_answered_or_not_scored_is_a_reason():
    found = joined()
    assert found.fixed == "no answers under condition donor_fixed_prefix"
    assert found.shuffled == "no answers under condition shuffled_image"
    grades, predictions = control_cell()[2:]
    found = joined(graded=grades, predictions={name: predictions[name] for name in ("original", "donor")})
    assert found.fixed == "this method has no confidence under condition donor_fixed_prefix"
    assert found.shuffled == "this method has no confidence under condition shuffled_image"


@pytest.mark.parametrize(
    ("condition", "change", "message"),
    [
        ("donor", {"image_id": pl.lit("elsewhere")}, "another image than the pair's donor"),
        ("donor_fixed_prefix", {"image_id": pl.lit("elsewhere")}, "another image than the pair's donor"),
        (
            "donor_fixed_prefix",
            {"canonical_answer": pl.lit("other")},
            "the forced answer is not the one on the source's",
        ),
        ("shuffled_image", {"image_id": pl.lit("slake-image-00")}, "the question's own image: slake/test/000"),
    ],
)
def test_an_answer_that_its_condition_cannot_give_is_refused(condition, change, message):
    grades = control_cell()[2]
    with pytest.raises(ArtifactError, match=f"slake/test/{condition}: .*{message}"):
        joined(control_cell, graded={**grades, condition: grades[condition].with_columns(**change)})


@pytest.mark.parametrize("condition", ["donor_fixed_prefix", "shuffled_image"])
def test_a_control_of_fewer_rows_is_refused(condition):
    grades, predictions = control_cell()[2:]
    few = {"graded": without(grades, condition), "predictions": without(predictions, condition)}
    with pytest.raises(ArtifactError, match=f"slake/test/{condition}: .*: slake/test/000"):
        joined(control_cell, **few)


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
    assert (rows["other_image_id"] == pl.select(pl.format("noisy of {}", rows["source_image_id"])).to_series()).all()
    own = found["original"]
    assert (own["correct_other"] == own["correct_real"]).all()
    # On a donor's image, the other image is the donor's.
    pairs = joined().pairs.sort("sample_id")
    assert found["donor"]["other_image_id"].to_list() == pairs["donor_image_id"].to_list()
    without = joined(graded=grades | {"noisy": noisy}).conditions["noisy"]
    assert without == "this method has no confidence under condition noisy"


def test_answers_to_questions_that_are_not_in_the_manifest_are_refused_under_any_condition():
    _, _, grades, predictions = cell()
    strange = pl.col("sample_id") + "x"
    graded, stated = (tables["original"].with_columns(strange) for tables in (grades, predictions))
    with pytest.raises(ArtifactError, match=r"slake/test/noisy: answers and manifest must hold the same questions"):
        joined(graded=grades | {"noisy": graded}, predictions=predictions | {"noisy": stated})
