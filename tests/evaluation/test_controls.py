from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.controls import FIXED_METRICS, SHUFFLED_METRICS, report_pairs
from dualread.evaluation.estimates import estimate
from dualread.evaluation.join import Joined
from dualread.evaluation.pair_metrics import PAIR_METRICS, PairValues
from dualread.evaluation.samples import mean_sample
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.jackknife import pair_shifts

# correct on the source, on the donor, of the source's answer on the donor; canonical answer on both; confidences
PAIRS = [
    (1, 0, 0, "yes", "yes", 0.9, 0.1, 0.4),
    (1, 0, 0, "yes", "no", 0.6, 0.9, 0.5),
    (1, 1, 0, "yes", "no", 0.3, 0.9, 0.3),
    (1, 0, 1, "yes", "no", 0.8, 0.2, 0.1),  # the donor's gold admits the source's answer too
    (0, 0, 0, "no", "no", 0.9, 0.1, 0.1),
    (1, 0, 0, "yes", "yes", 0.2, 0.1, 0.5),
    (1, 0, 0, "yes", "yes", 0.7, 0.6, 0.2),
]
# correct and confidence on the own image, correct and confidence on the shuffled one
QUESTIONS = [(1, 0.9, 0, 0.2), (1, 0.5, 0, 0.4), (1, 0.4, 1, 0.6), (0, 0.3, 0, 0.7), (1, 0.2, 0, 0.8), (0, 0.1, 1, 0.9)]


def rows_on(other, names, rows):
    """A table of rows with images of their own, which end in their number."""
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.col("^correct_.*$").cast(pl.Boolean))
    numbers = [f"{i:02d}" for i in range(len(rows))]
    images = {f"{kind}_cluster_id": pl.Series([f"{kind} {i}" for i in numbers]) for kind in ("source", other)}
    return frame.with_columns(sample_id=pl.Series(numbers), answer_type=pl.lit("open"), **images)


def fixed_rows(rows=PAIRS):
    names = ("correct_real", "correct_donor", "correct_fixed", "canonical_answer_real", "canonical_answer_donor",
             "confidence_real", "confidence_donor", "confidence_fixed")  # fmt: skip
    return rows_on("donor", names, rows)


def shuffled_rows(rows=QUESTIONS):
    return rows_on("shuffled", ("correct_real", "confidence_real", "correct_shuffled", "confidence_shuffled"), rows)


def cell(fixed=None, shuffled=None):
    fixed, shuffled = fixed_rows() if fixed is None else fixed, shuffled_rows() if shuffled is None else shuffled
    answers = pl.DataFrame(
        {
            "sample_id": shuffled["sample_id"],
            "question_key": "q",
            "answer_type": "open",
            "cluster_id": shuffled["source_cluster_id"],
            "correct": shuffled["correct_real"],
            "confidence": shuffled["confidence_real"],
            "imputed": False,
        }
    )
    return Joined(answers=answers, pairs=fixed, fixed=fixed, shuffled=shuffled)


def rows_of(evaluated, subset="all", replicates=0):
    images = {*evaluated.answers["cluster_id"]}
    images |= {image for rows in (evaluated.pairs, evaluated.shuffled) if not isinstance(rows, str)
               for column in {"source_cluster_id", "donor_cluster_id"} & set(rows.columns)
               for image in rows[column]}  # fmt: skip
    draws = ClusterDraws(names=("s", "d", "test"), cluster_ids=tuple(sorted(images)), replicates=replicates)
    return {row["metric"]: row for row in estimate(CellColumns.of(evaluated), draws)[0] if row["subset"] == subset}


def test_values_by_hand():
    found = {name: row["estimate"] for name, row in rows_of(cell()).items()}
    # Right on the source, wrong when forced: rows 0, 1, 2, 5, 6. Wins 1, 1, 1/2 (tie), 0, 1.
    assert found["fixed_prefix_ccg_auc"] == 3.5 / 5
    assert found["fixed_prefix_decisive_pairs"] == 5.0
    # The donor's answer is wrong and the same: rows 0, 5, 6. Wins 1, 0, 1, against the forced answer's confidence.
    assert found["strict_same_answer_ccg_auc"] == pytest.approx(2 / 3)
    assert found["strict_same_answer_decisive_pairs"] == 3.0
    assert found["strict_ccg_auc"] == 1.0  # against the confidence of the donor's own answer
    assert found["natural_ccg_auc"] == 4 / 5  # rows 0, 1, 3, 5, 6: 1, 0, 1, 1, 1
    # 2 of 6 right on the shuffled image, 4 of 6 on the own one.
    assert found["shuffled_accuracy"] == pytest.approx(2 / 6)
    assert found["shuffled_accuracy_drop"] == pytest.approx(4 / 6 - 2 / 6)
    # .6 beats .2 and .4 but not .7 and .8, .9 beats all four: 6 of 8.
    assert found["shuffled_auroc"] == 6 / 8
    # Right on the own image and wrong on the shuffled one: .9 > .2, .5 > .4, .2 < .8.
    assert found["shuffled_ccg_auc"] == pytest.approx(2 / 3)
    assert found["shuffled_decisive_pairs"] == 3.0


@pytest.mark.parametrize(("images", "weak"), [(29, 1.0), (30, 0.0)])
def test_a_set_on_few_images_is_underpowered(images, weak):
    fixed = fixed_rows([PAIRS[0]] * 40).with_columns(
        donor_cluster_id=pl.Series([f"donor {i % images}" for i in range(40)])
    )
    shuffled = shuffled_rows([QUESTIONS[0]] * 40).with_columns(
        shuffled_cluster_id=pl.Series([f"image {i % images}" for i in range(40)])
    )
    found = rows_of(cell(fixed, shuffled))
    for name in ("fixed_prefix", "strict_same_answer", "shuffled"):
        assert found[f"{name}_few_donors"]["estimate"] == weak


CCG = {"fixed_prefix_ccg_auc": "fixed", "strict_same_answer_ccg_auc": "fixed", "shuffled_ccg_auc": "shuffled"}


def test_every_control_with_an_interval_has_one():
    found = rows_of(cell(), replicates=200)
    for name in (*CCG, "shuffled_auroc", "shuffled_accuracy_drop"):
        row = found[name]
        assert row["low"] <= row["estimate"] <= row["high"], name
    assert found["shuffled_auroc_undefined_replicates"]["estimate"] is not None
    for name in ("shuffled_accuracy", "fixed_prefix_decisive_pairs"):
        assert found[name]["low"] is None


def test_without_a_condition_every_value_is_a_reason():
    found = rows_of(replace(cell(), pairs="no donors", fixed="why not", shuffled="nor this"), replicates=50)
    for metrics, reason in ((PAIR_METRICS, "no donors"), (FIXED_METRICS, "why not"), (SHUFFLED_METRICS, "nor this")):
        for row in (found[name] for name in metrics):
            assert (row["estimate"], row["low"], row["n"], row["reason"]) == (None, None, 0, reason), row
    assert found["shuffled_auroc_undefined_replicates"]["reason"] == "nor this"


def test_without_a_decisive_row_the_preference_is_undefined_and_the_rest_is_not():
    wrong = cell(fixed_rows([PAIRS[4]]), shuffled_rows([QUESTIONS[3]]))
    found = rows_of(wrong, replicates=50)
    assert found["fixed_prefix_ccg_auc"]["reason"] == "no decisive pair among 1 pairs"
    assert found["strict_same_answer_ccg_auc"]["reason"] == "no strictly decisive pair among 1 pairs"
    assert found["shuffled_ccg_auc"]["estimate"] is None
    assert found["shuffled_auroc"]["reason"].startswith("one class only")
    assert found["fixed_prefix_decisive_pairs"]["estimate"] == 0.0
    assert found["shuffled_accuracy"]["estimate"] == 0.0
    assert found["fixed_prefix_ccg_auc"]["low"] is None
    assert rows_of(wrong, subset="closed")["shuffled_accuracy"]["reason"] == "no rows"


def test_claims_are_compared_report_by_report():
    """One report has two decisive claims and one that both images support, one has a decisive claim, and one none."""
    asked = pl.DataFrame({"sample_id": ["q1", "q2", "q3"], "source_cluster_id": ["a", "b", "c"]})
    asked = asked.with_columns(donor_cluster_id=pl.Series(["b", "c", "a"]))
    # (report, confidence on the source, on the donor, right on the source, on the donor)
    rows = [("q2", 0.9, 0.9, 1, 0), ("q1", 0.8, 0.3, 1, 0), ("q1", 0.2, 0.3, 1, 0), ("q1", 0.7, 0.5, 1, 1)]
    names = ("sample_id", "confidence_real", "confidence_fixed", "correct_real", "correct_fixed")
    claims = pl.DataFrame(rows, schema=names, orient="row").join(asked, on="sample_id", maintain_order="left")
    pairs = report_pairs(Columns.of(claims), claims["sample_id"], asked)
    forced, both = pairs["fixed_prefix_ccg_auc"], pairs["supported_on_both_ccg_auc"]
    np.testing.assert_array_equal(forced.values, [1.0, 0.5, np.nan])  # q1: a win and a loss; q2: a tie
    np.testing.assert_array_equal(forced.counts, [2, 1, 0])
    np.testing.assert_array_equal(both.values, [1.0, np.nan, np.nan])
    # The images that move the mean of 1.5 / 3 are those that move the mean of single claims.
    single = pair_shifts(np.array([0.5, 1.0, 0.0]), np.array([1, 0, 0]), np.array([2, 1, 1]))
    summed = pair_shifts(forced.values, forced.source, forced.donor, forced.counts)
    np.testing.assert_allclose(summed.images, single.images)
    assert summed.variance() == single.variance()
    # Another actor's reports on the same images have other claims: one that is lost on q1, and two ties on q3.
    values, counts = np.array([0.0, np.nan, 1.0]), np.array([1.0, 0.0, 2.0])
    other = PairValues(values=values, source=forced.source, donor=forced.donor, counts=counts)
    difference = mean_sample([[forced]], n_images=0).minus(mean_sample([[other]], n_images=0))
    # Image a is in q1 and q3, b in q1 and q2, c in q2 and q3. Without a, b or c, q2, q3 or q1 is left: of `forced`, the
    # means 1/2, none and 1/2, of `other` none, 1/2 and 0. All have the means 1/2 and 1/3, and none left moves nothing.
    # Without the pair of q1, q2 or q3, the means are 1/2, 1/2 and as before, and 1/2, as before, and 0.
    shifts = np.array([0.5 - 0.5, 0.0, 0.5 - 0.5]) - np.array([0.0, 0.5 - 1 / 3, 0.0 - 1 / 3])
    of_pairs = np.array([0.5 - 0.5, 0.5 - 0.5, 0.0]) - np.array([0.5 - 1 / 3, 0.0, 0.0 - 1 / 3])
    expected = (shifts**2).sum() * 2 / 3 - (of_pairs**2).sum() * 2 / 3
    assert difference.variance().value == pytest.approx(max(expected, (of_pairs**2).sum() / 3))
