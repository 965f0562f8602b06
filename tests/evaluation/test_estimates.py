import numpy as np
import polars as pl
import pytest

from dualread.evaluation import controls, estimates
from dualread.evaluation.answer_metrics import ANSWER_METRICS, FURTHER_METRICS, NOISE_FLOOR, WITH_PERCENTILES
from dualread.evaluation.columns import CellColumns
from dualread.evaluation.conditions import family_rows
from dualread.evaluation.controls import SHUFFLED_AUROC
from dualread.evaluation.join import Joined
from dualread.evaluation.metrics.calibration_chance import ece_noise_floor
from dualread.evaluation.metrics.discrimination import auroc
from dualread.evaluation.metrics.grounding import decisive
from dualread.evaluation.pair_metrics import PAIR_METRICS
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.proportion import share_interval
from dualread.evaluation.thresholds import choose, threshold_rows
from dualread.evaluation.without_confidences import without_confidences
from tests.evaluation.cells import manifest
from tests.evaluation.metrics import literal
from tests.evaluation.spread import spread_as_t


def draws_of(evaluated, replicates=200):
    images = tuple(sorted(set(evaluated.answers["cluster_id"])))
    return ClusterDraws(names=("study", "slake", "test"), cluster_ids=images, replicates=replicates)


@pytest.fixture(scope="module")
def rows(evaluated):
    return {
        (row["subset"], row["metric"]): row
        for row in estimates.estimate(CellColumns.of(evaluated), draws_of(evaluated))[0]
    }


def test_every_subset_has_every_metric(rows):
    names = {
        *ANSWER_METRICS,
        NOISE_FLOOR,
        *PAIR_METRICS,
        *controls.FIXED_METRICS,
        *controls.SHUFFLED_METRICS,
    }
    names |= {
        f"{name}_undefined_replicates"
        for name in (*WITH_PERCENTILES, SHUFFLED_AUROC.name)
        if name not in FURTHER_METRICS
    }
    assert set(rows) == {(subset, name) for subset in ("all", "open", "closed") for name in names}


def test_values_are_those_of_the_metrics(rows, evaluated):
    answers, pairs = evaluated.answers, evaluated.pairs
    assert rows["all", "accuracy"]["estimate"] == answers["correct"].mean()
    assert rows["all", "imputed_share"]["estimate"] == 0.1  # every tenth of 40
    closed = answers.filter(answers["answer_type"] == "closed")
    expected = literal.auroc(closed["confidence"].to_list(), closed["correct"].to_list())
    assert rows["closed", "auroc"]["estimate"] == pytest.approx(expected, abs=1e-15)
    columns = ["confidence_real", "confidence_donor", "correct_real", "correct_donor"]
    columns += ["canonical_answer_real", "canonical_answer_donor"]
    for name, strict in (("natural_ccg_auc", False), ("strict_ccg_auc", True)):
        expected = literal.ccg_auc(pairs.select(columns).rows(), strict=strict)
        assert rows["all", name]["estimate"] == pytest.approx(expected, abs=1e-15)


def test_counts_of_what_a_value_rests_on(rows, evaluated):
    pairs = evaluated.pairs
    chosen = pairs.filter(decisive(pairs["correct_real"].to_numpy(), pairs["correct_donor"].to_numpy()))
    natural = rows["all", "natural_ccg_auc"]
    assert natural["n"] == rows["all", "decisive_pairs"]["estimate"] == len(chosen)
    assert natural["n_clusters"] == rows["all", "source_images"]["estimate"] == chosen["source_cluster_id"].n_unique()
    assert rows["all", "donor_images"]["estimate"] == chosen["donor_cluster_id"].n_unique()
    assert rows["all", "natural_few_sources"]["estimate"] == 1.0  # 12 images are fewer than 30
    assert rows["all", "natural_few_donors"]["estimate"] == 1.0
    ties = (chosen["confidence_real"] == chosen["confidence_donor"]).sum()
    assert rows["all", "natural_ties"]["estimate"] == ties / len(chosen)
    assert (rows["all", "vrs"]["n"], rows["all", "auroc"]["n"], rows["all", "auroc"]["n_clusters"]) == (32, 40, 12)


def test_rates_have_the_interval_of_shares_and_the_ece_has_none(rows, evaluated):
    answers = evaluated.answers
    image = answers["cluster_id"].cast(pl.Categorical).to_physical().to_numpy()
    correct, confidence = answers["correct"].to_numpy(), answers["confidence"].to_numpy()
    for metric, positive in (("accuracy", correct), ("hce90", (confidence >= 0.9) & ~correct)):
        found = rows["all", metric]
        assert (found["low"], found["high"]) == share_interval(positive, image)
        assert ("all", f"{metric}_undefined_replicates") not in rows
    assert (rows["all", "ece15"]["low"], rows["all", "ece15"]["high"]) == (None, None)


def test_every_interval_contains_its_estimate(evaluated):
    for replicates in (1, 2, 3, 200):
        for row in estimates.estimate(CellColumns.of(evaluated), draws_of(evaluated, replicates))[0]:
            if row["low"] is not None:
                assert row["low"] <= row["estimate"] <= row["high"], row


def test_the_noise_floor_is_that_of_the_study_and_the_subset(rows, evaluated):
    draws = draws_of(evaluated)
    for subset in ("all", "open"):
        chosen = evaluated.answers.filter((pl.col("answer_type") == subset) | pl.lit(subset == "all"))
        images = np.array([draws.cluster_ids.index(image) for image in chosen["cluster_id"]])
        columns = chosen["confidence"].to_numpy(), chosen["correct"].to_numpy(), images
        assert rows[subset, "ece15_noise_floor"]["estimate"] == ece_noise_floor(*columns, 12, draws.names)


def test_an_empty_subset_and_one_class_are_reasons(evaluated):
    answers = evaluated.answers.filter(evaluated.answers["answer_type"] == "closed").filter(
        evaluated.answers.filter(evaluated.answers["answer_type"] == "closed")["correct"]
    )
    found = Joined(answers=answers, pairs="none", fixed="none", shuffled="none")
    rows = {
        (row["subset"], row["metric"]): row for row in estimates.estimate(CellColumns.of(found), draws_of(found))[0]
    }
    assert rows["open", "accuracy"]["reason"] == "no rows"
    assert rows["open", "imputed_share"]["reason"] == "no rows"
    assert rows["closed", "auroc"]["reason"].startswith("one class only")
    assert rows["closed", "auroc"]["low"] is None
    assert rows["closed", "auroc_undefined_replicates"]["estimate"] == 200.0
    assert rows["closed", "accuracy"]["estimate"] == 1.0
    for row in rows.values():
        assert (row["estimate"] is None) == (row["reason"] is not None)


def test_without_replicates_there_are_no_percentile_intervals(evaluated):
    found, kept = estimates.estimate(CellColumns.of(evaluated), draws_of(evaluated, 0))
    rows = {(row["subset"], row["metric"]): row for row in found}
    assert {len(values) for values in kept.replicates.values()} == {0}
    assert rows["all", "auroc"]["low"] is None
    assert rows["all", "accuracy"]["low"] is None
    assert rows["all", "auroc"]["estimate"] is not None
    assert rows["all", "auroc_undefined_replicates"]["reason"] == "no replicates were asked for"


def test_intervals_are_those_of_a_literal_bootstrap(rows, evaluated):
    answers, draws = evaluated.answers, draws_of(evaluated)
    rows_of = {image: np.flatnonzero(answers["cluster_id"].to_numpy() == image) for image in draws.cluster_ids}
    confidence, correct = answers["confidence"].to_numpy(), answers["correct"].to_numpy()
    values = []
    for weights in np.concatenate([chunk.T for chunk in draws.weights()]):
        drawn = np.concatenate(
            [np.tile(rows_of[i], int(w)) for i, w in zip(draws.cluster_ids, weights, strict=True) if w]
        )
        values.append(auroc(confidence[drawn], correct[drawn]))
    found = rows["all", "auroc"]
    fewer = min(len(set(answers.filter(kind)["cluster_id"])) for kind in (answers["correct"], ~answers["correct"]))
    expected = np.percentile(spread_as_t(values, found["estimate"], fewer, 12), [2.5, 97.5])
    assert (found["low"], found["high"]) == pytest.approx(tuple(expected), abs=1e-12)
    assert found["low"] <= found["estimate"] <= found["high"]
    assert rows["all", "auroc_undefined_replicates"]["estimate"] == 0.0


def test_a_method_without_confidences_has_the_rows_of_others(evaluated):
    questions, cell, draws, further = manifest(), CellColumns.of(evaluated), draws_of(evaluated, 10), ("log_loss",)
    rows = [*estimates.estimate(cell, draws, further)[0], *family_rows(evaluated.answers, questions, draws)]
    rows += threshold_rows(cell.answers, choose(cell.answers, [10]))
    none = [*without_confidences(questions, [10], "why", [], further, of_claims=False)]
    names, expected = (sorted((row["subset"], row["metric"]) for row in of) for of in (none, rows))
    assert names == expected
