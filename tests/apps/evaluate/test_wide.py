"""Tables with a column of confidences per method."""

import polars as pl
import pytest

import dualread
from dualread.errors import DataError

LONG = {
    "method": ["a"] * 4 + ["b"] * 4,
    "sample_id": list("wxyz") * 2,
    "correct": [1, 0, 1, 0] * 2,
    "confidence": [0.9, 0.1, 0.8, 0.3, 1, 0, 0, 1],
}
WIDE = {
    "sample_id": list("wxyz"),
    "correct": [1, 0, 1, 0],
    "confidence_a": [0.9, 0.1, 0.8, 0.3],
    "confidence_b": [1, 0, 0, 1],
}


def test_a_wide_table_is_the_long_one(tmp_path):
    expected = dualread.evaluate(LONG, replicates=0).metrics.drop("reason")  # which names the table
    pl.DataFrame(WIDE).write_csv(tmp_path / "wide.csv")
    pl.DataFrame(WIDE).write_parquet(tmp_path / "wide.parquet")
    for given in (WIDE, pl.DataFrame(WIDE), tmp_path / "wide.csv", tmp_path / "wide.parquet"):
        found = dualread.evaluate(given, replicates=0)
        assert found.metrics.drop("reason").equals(expected)
        assert "confidence_a, confidence_b" in found.notes[0]


def test_a_column_without_values_is_left_out_and_said():
    found = dualread.evaluate({**WIDE, "confidence_b": [None] * 4}, replicates=0)
    assert set(found.metrics["method"]) == {"a"}
    assert "left out: confidence_b" in found.notes[1]
    with pytest.raises(DataError, match="confidence_a are empty"):
        dualread.evaluate({"correct": [1, 0], "confidence_a": [None, None]}, replicates=0)


def test_a_missing_value_is_refused_as_anywhere():
    with pytest.raises(DataError, match="row 2: empty"):
        dualread.evaluate({**WIDE, "confidence_a": [0.9, None, 0.8, 0.3]}, replicates=0)


def test_beside_a_column_confidence_they_are_not_used():
    found = dualread.evaluate({**WIDE, "confidence": [0.5] * 4}, replicates=0)
    assert len(set(found.metrics["method"])) == 1
    assert "confidence_a" in found.unused[0]


def test_methods_may_have_scores_and_others_probabilities():
    found = dualread.evaluate({**WIDE, "score_c": [-3.0, -5.0, 0.0, 7.0]}, replicates=0)
    assert set(found.metrics["method"]) == {"a", "b", "c"}
    assert found.parts[0].ranked == {"c"}
    assert found.parts[0].methods["c"].answers["confidence"].to_list() == pytest.approx([2 / 5, 1 / 5, 3 / 5, 4 / 5])
    again = dualread.evaluate({**WIDE, "entropy": [3.0, 5.0, 0.0, -7.0]}, columns={"score_c": "-entropy"}, replicates=0)
    assert again.metrics.drop("reason").equals(found.metrics.drop("reason"))
