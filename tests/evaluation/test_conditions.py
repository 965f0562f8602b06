"""Metrics of answers under conditions that are none of the paper's."""

import numpy as np
import polars as pl
import pytest

from dualread.evaluation.columns import Columns
from dualread.evaluation.conditions import CONDITION_METRICS, changed_row, condition_rows, family_rows, undefined_rows
from dualread.evaluation.pair_metrics import limits
from dualread.evaluation.side_by_side import conditions_of
from dualread.evaluation.statistics.bootstrap import ClusterDraws

# Six questions about three images. Under original: 4 right; under the other condition: 2 right.
ROWS = pl.DataFrame(
    {
        "sample_id": [f"q{i}" for i in range(6)],
        "answer_type": ["open"] * 6,
        "source_cluster_id": ["a", "a", "b", "b", "c", "c"],
        "other_cluster_id": [f"black of {image}" for image in "aabbcc"],
        "correct_real": [True, True, True, True, False, False],
        "confidence_real": [0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
        "correct_other": [True, False, False, False, True, False],
        "confidence_other": [0.9, 0.4, 0.8, 0.6, 0.6, 0.3],
    }
)
DRAWS = ClusterDraws(names=("test",), cluster_ids=("a", "b", "c"), replicates=200)


def found(name: str = "black", draws: ClusterDraws = DRAWS) -> dict[str, dict]:
    return {row["metric"]: row for row in condition_rows({name: ROWS}, draws)}


def test_by_hand():
    values = {metric: row["estimate"] for metric, row in found().items()}
    assert values == pytest.approx(
        {
            "accuracy": 2 / 6,
            "mean_confidence": 3.6 / 6,
            # Right: .9, .6; wrong: .4, .8, .6, .3. .9 wins 4; .6 wins 2 and ties once: 6.5 of 8.
            "auroc": 6.5 / 8,
            # .01 + .16 + .64 + .36 + .16 + .09 = 1.42
            "brier": 1.42 / 6,
            "accuracy_drop": 2 / 6,
            "confidence_drop": (3.9 - 3.6) / 6,
            # Right on its own image and wrong here: q1 (.8 > .4), q2 (.7 < .8), q3 (.6 = .6): 1.5 of 3.
            "ccg_auc": 0.5,
            "decisive_pairs": 3.0,
            "ccg_few_sources": 1.0,
        }
    )
    assert {row["subset"] for row in found().values()} == {"condition:black"}
    assert found()["ccg_auc"]["n"] == 3
    assert found()["accuracy"]["n_clusters"] == 3


def test_intervals_contain_their_estimates_and_are_those_over_images():
    for name, row in found().items():
        if name in ("decisive_pairs", "ccg_few_sources"):
            assert row["low"] is None
            continue
        assert row["low"] <= row["estimate"] <= row["high"]
        if of := CONDITION_METRICS[name].of_pairs:  # what its interval is made of
            mean = np.nanmean(of.values(Columns.of(ROWS)))
            assert row["estimate"] == pytest.approx(of.low + (of.high - of.low) * mean, abs=1e-12)
    assert all(row["low"] is None for row in found(draws=ClusterDraws(names=(), cluster_ids=(), replicates=0)).values())


def test_a_changed_picture_is_an_image_of_its_own():
    """If the two images of each pair were one, most of the variance would count as that of pairs, and be taken off."""
    rows = Columns.of(ROWS)
    mean = CONDITION_METRICS["mean_confidence"].of_pairs
    variance = mean.shifts(rows).variance()
    # Leaving out an image leaves the mean of the others: a .575, b .55, c .675; shifts -.025, -.05, .075.
    shifts = np.array([0.6 - 0.575, 0.6 - 0.55, 0.6 - 0.675])
    # Six images, each picture and what became of it, and three pairs: 5/6 of twice the sum, minus 2/3 of it.
    assert variance.value == pytest.approx((shifts**2).sum())
    assert limits(mean, rows, 0.6)[0] < 0.6


def test_the_original_itself_has_no_drop():
    assert list(found("original")) == ["accuracy", "mean_confidence", "auroc", "brier"]


def test_a_condition_without_confidences_says_why():
    why = "this method has no confidence under condition black"
    rows = list(condition_rows({"original": ROWS, "black": why}, DRAWS))
    assert {row["subset"]: row["reason"] for row in rows} == {"condition:original": None, "condition:black": why}
    assert [row["metric"] for row in undefined_rows(["black"], "why")] == list(CONDITION_METRICS)


def test_the_papers_conditions_alone_get_no_rows():
    assert conditions_of(["original", "donor", "shuffled_image", "donor_fixed_prefix"]) == []
    assert conditions_of(["donor", "noisy", "original"]) == ["original", "donor", "noisy"]
    assert list(condition_rows({}, DRAWS)) == []


def test_answers_that_changed_are_counted_whatever_is_missing():
    def graded(answers):
        images = {"image_id": ["i", "i", "j", "k"], "canonical_answer": answers}
        return pl.DataFrame({"sample_id": list("abcd"), **images}, schema_overrides={"canonical_answer": pl.String})

    own, other = graded(["lung", None, "left", None]), graded(["lung", None, "right", "yes"])
    row = changed_row(own, other, {"i": "p", "j": "q", "k": "q"}, "slake/test")
    assert (row["metric"], row["estimate"], row["n"], row["n_clusters"]) == ("answers_changed", 0.5, 4, 2)
    assert row["low"] < 0.5 < row["high"]
    assert changed_row(own, own, {"i": "p", "j": "q", "k": "q"}, "slake/test")["estimate"] == 0.0


FAMILIES = pl.DataFrame(
    [("a", "i", True, 0.75), ("b", "i", False, 0.25), ("c", "j", True, 0.5), ("d", "j", False, 0.5)],
    schema=["sample_id", "cluster_id", "correct", "confidence"],
    orient="row",
)
OF_FAMILIES = ClusterDraws(names=("study", "slake", "test"), cluster_ids=("i", "j"), replicates=0)


def families(*names):
    return pl.DataFrame({"sample_id": FAMILIES["sample_id"], "content_family": pl.Series(names, dtype=pl.String)})


def test_families_by_hand():
    rows = family_rows(FAMILIES, families("organ", "organ", "color", None), OF_FAMILIES)
    found = {(row["subset"], row["metric"]): row for row in rows}
    assert [subset for subset, metric in found if metric == "brier"] == ["family:color", "family:organ"]
    organ = {metric: found["family:organ", metric]["estimate"] for metric in ("accuracy", "auroc", "brier")}
    assert organ == {"accuracy": 0.5, "auroc": 1.0, "brier": 0.0625}  # (.25^2 + .25^2) / 2
    assert (found["family:organ", "ece15"]["n"], found["family:organ", "ece15"]["n_clusters"]) == (2, 1)
    color = found["family:color", "auroc"]
    assert (color["estimate"], color["n"]) == (None, 1)
    assert color["reason"].startswith("one class only")
    assert found["family:color", "brier"]["estimate"] == 0.25
    # Both answers about organs are of one image, whose sign changes nothing.
    assert found["family:organ", "ece15_noise_floor"]["reason"] == "all rows are of one image"


def test_a_data_set_without_families_has_no_rows():
    assert family_rows(FAMILIES, families(None, None, None, None), OF_FAMILIES) == []
