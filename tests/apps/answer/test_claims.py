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
    place = ["report", "claim", "part", "image_id", "cluster_id", "start", "end", "text", "correct"]
    assert found.columns == [*place, "score_sequence_likelihood"]
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
    # Two reports of each patient are to be judged, of whom each has a site.
    pairs = [{"group": f"p{k // 2}", "site": f"s{k // 2}"} for k in range(20)]
    new = [example | more for example, more in zip(examples(range(N, N + 20)), pairs, strict=True)]
    given = [*new, *(example | {"group": example["id"]} for example in examples(range(N), "fit"))]
    judged = dualread.confidences(study.tiny.checkpoint, given, "p_state", labels=labels, **where)
    assert {int(report[1:]) for report in judged["report"]} <= set(range(N, N + 20))
    assert judged["confidence_p_state"].is_between(0, 1).all()
    assert judged["correct"].null_count() == len(judged) > 0
    assert judged.columns == [*place, "confidence_p_state", "site"]
    assert judged["site"].to_list() == [f"s{(int(report[1:]) - N) // 2}" for report in judged["report"]]
    assert {judged[name].n_unique() for name in ("site", "cluster_id")} == {judged.n_unique(["site", "cluster_id"])}
    # The claims of both calls, with a label or not, are a table that is evaluated; scores are ranked.
    judged_too = dualread.evaluate(labels, replicates=0)
    assert judged_too.claim_filter is not None
    assert judged_too.metrics.filter(metric="accuracy", subset="all")["n"].to_list() == [len(labels) - 1]
    # A table with empty cells has numbers with a point, and the same labels; what cannot be read is refused.
    numbers = labels.with_columns(pl.col("correct").cast(pl.Float64))
    assert dualread.confidences(study.tiny.checkpoint, given, "p_state", labels=numbers, **where).equals(judged)
    twice = pl.concat([labels, labels[:1].with_columns(correct=~pl.col("correct"))])
    nothing = labels.with_columns(correct=pl.lit(None))
    for wrong, said in ((labels.drop("correct"), "no column correct"), (twice, "two labels"), (nothing, "no row")):
        with pytest.raises(DataError, match=said):
            dualread.confidences(study.tiny.checkpoint, given, "p_state", labels=wrong, **where)
