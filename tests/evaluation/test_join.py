import polars as pl
import pytest

from dualread.errors import ArtifactError
from dualread.evaluation.join import evaluate
from tests.evaluation.cells import cell


def joined(**changes):
    questions, donors, grades, predictions = cell()
    tables = {"manifest": questions, "pairs": donors, "graded": grades, "predictions": predictions}
    return evaluate(where="slake/test", **{**tables, **changes})


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


def test_row_order_of_the_inputs_does_not_matter():
    questions, donors, grades, _ = cell()
    found = joined(
        manifest=questions.reverse(),
        pairs=donors.reverse(),
        graded={name: frame.reverse() for name, frame in grades.items()},
    )
    assert found.answers.equals(joined().answers)
    assert found.pairs.equals(joined().pairs)


def test_no_pairs():
    _, donors, grades, predictions = cell()
    assert joined(pairs=None).pairs is None
    assert joined(pairs=donors.clear()).pairs is None
    assert joined(pairs=None, predictions={"original": predictions["original"]}, graded=grades).pairs is None


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
    with pytest.raises(ArtifactError, match="donor: predictions without graded answers"):
        joined(graded={"original": grades["original"]})


def test_two_rows_of_one_question_are_refused():
    grades = cell()[2]
    doubled = {**grades, "original": pl.concat([grades["original"], grades["original"][:1]])}
    with pytest.raises(ArtifactError, match="more than one row of: slake/test/000"):
        joined(graded=doubled)


def test_an_answer_on_another_donor_is_refused():
    grades = cell()[2]
    swapped = grades["donor"].with_columns(image_id=pl.lit("elsewhere"))
    with pytest.raises(ArtifactError, match="another image than the pair's donor"):
        joined(graded={**grades, "donor": swapped})
