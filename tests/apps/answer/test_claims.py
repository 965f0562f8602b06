"""`dualread.confidences` with `spans`: a row per claim, labels that people fill in, and readers fitted on them."""

import polars as pl
import pytest

import dualread
from dualread.errors import DataError
from tests.tiny import image

N = 40
QUICK = {"max_completion_tokens": 12, "batch_size": 20, "spans": "sentences"}


def examples(numbers, part="test"):
    return [{"id": f"r{k}", "image": image(k), "question": "Write a report.", "part": part} for k in numbers]


def test_claims_are_labeled_by_people_and_judged_by_what_is_fitted_on_them(study, tmp_path):
    where = {**QUICK, "folder": tmp_path}
    found = dualread.confidences(study.tiny.checkpoint, examples(range(N)), "sequence_likelihood", **where)
    assert found.columns[:8] == ["report", "claim", "part", "image_id", "start", "end", "text", "correct"]
    assert found["score_sequence_likelihood"].null_count() == 0
    assert found["correct"].null_count() == len(found) > 0  # nobody knows
    reports = found.partition_by("report")
    assert len(reports) > 1
    for claims in reports:
        assert claims["claim"].to_list() == list(range(len(claims)))
        assert (claims["start"] >= claims["end"].shift(1).fill_null(0)).all()
    # As if a person had said that claims with an even number of characters are supported, but not of the last one.
    supported = pl.when(pl.int_range(pl.len()) < pl.len() - 1).then(pl.col("text").str.len_chars() % 2 == 0)
    labels = found.with_columns(correct=supported)
    given = [*examples(range(N, N + 20)), *examples(range(N), "fit")]
    judged = dualread.confidences(study.tiny.checkpoint, given, "p_state", labels=labels, **where)
    assert {int(report[1:]) for report in judged["report"]} <= set(range(N, N + 20))
    assert judged["confidence_p_state"].is_between(0, 1).all()
    assert judged["correct"].null_count() == len(judged) > 0
    # The claims of both calls, with a label or not, are a table that is evaluated; scores are ranked.
    judged_too = dualread.evaluate(labels, replicates=0)
    assert judged_too.claim_filter is not None
    assert judged_too.metrics.filter(metric="accuracy", subset="all")["n"].to_list() == [len(labels) - 1]
    with pytest.raises(DataError, match="no column correct"):
        dualread.confidences(study.tiny.checkpoint, given, "p_state", labels=labels.drop("correct"), **where)
