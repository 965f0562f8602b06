"""How many images certify a threshold, against simulations that are written here once more."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from dualread.errors import UndefinedMetricError
from dualread.evaluation import planning
from dualread.evaluation.metrics.risk_control import certified_threshold
from dualread.evaluation.planning import ENOUGH, REPETITIONS, Expected, _log_odds, images_needed, planned


@pytest.mark.parametrize(("accuracy", "auroc"), [(0.5, 0.6), (0.75, 0.8), (0.95, 0.9)])
def test_the_simulated_confidences_have_the_accuracy_and_the_auroc(accuracy, auroc):
    mean, deviation = _log_odds(accuracy, auroc)
    rng = np.random.default_rng(0)
    confidence = expit(mean + deviation * rng.standard_normal(200_000))
    correct = rng.random(200_000) < confidence
    assert correct.mean() == pytest.approx(accuracy, abs=0.005)
    assert roc_auc_score(correct, confidence) == pytest.approx(auroc, abs=0.008)


def certified_share(n_images, per_image, mean, deviation, target_risk):
    """Return how many of 100 new sets certify something; a quarter of each variance is the image's."""
    rng, found = np.random.default_rng([n_images, per_image]), 0
    for _ in range(100):
        own, luck = (
            0.5 * rng.standard_normal((n_images, 1)) + 0.75**0.5 * rng.standard_normal((n_images, per_image))
            for _ in range(2)
        )
        confidence = expit(mean + deviation * own).ravel()
        correct, images = norm.cdf(luck.ravel()) < confidence, np.repeat(np.arange(n_images), per_image)
        try:
            certified_threshold(confidence, correct, images, target_risk=target_risk)
            found += 1
        except UndefinedMetricError:
            pass
    return found / 100


def test_the_number_of_images_is_where_four_in_five_sets_certify_something():
    per_image = 4
    expected = Expected(accuracy=0.75, auroc=0.8, per_image=per_image, max_per_image=per_image)
    n = images_needed(expected, target_risk=0.2)
    mean, deviation = _log_odds(0.75, 0.8)
    assert certified_share(n, per_image, mean, deviation, 0.2) == pytest.approx(ENOUGH, abs=0.12)
    assert certified_share(n // 2, per_image, mean, deviation, 0.2) < 0.6
    rows = planned(expected, target_risk=0.2)
    assert [row.images for row in rows] == [round(n / 4), round(n / 2), n, 2 * n, 4 * n]
    assert [row.certified for row in rows] == sorted(row.certified for row in rows)
    assert [row.kept for row in rows] == sorted(row.kept for row in rows)


@pytest.mark.parametrize(("n_failed", "is_enough"), [(12, True), (13, False)])
def test_four_in_five_is_enough(monkeypatch, n_failed, is_enough):
    verdicts = iter([False] * n_failed + [True] * (REPETITIONS - n_failed))
    monkeypatch.setattr(planning, "certifies_any", lambda *answers, **risks: next(verdicts))
    assert planning._enough(Expected(accuracy=0.8, auroc=0.85), 10, 0.2, 0.1) is is_enough


def test_a_harder_demand_needs_more_images():
    easy = Expected(accuracy=0.8, auroc=0.85)
    n = images_needed(easy, target_risk=0.2)
    assert n < images_needed(easy, target_risk=0.1)
    assert n < images_needed(easy, target_risk=0.2, delta=0.02)
    assert n < images_needed(Expected(accuracy=0.7, auroc=0.75), target_risk=0.2)
    assert n < images_needed(Expected(accuracy=0.8, auroc=0.85, max_per_image=4), target_risk=0.2)


def test_no_number_of_images_is_enough_if_confidence_says_nothing():
    chance = Expected(accuracy=0.6, auroc=0.51)
    assert images_needed(chance, target_risk=0.1) is None
    assert planned(chance, target_risk=0.1) == []
