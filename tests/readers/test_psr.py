import numpy as np
import pytest

from dualread.readers import psr
from dualread.readers.base import Examples
from tests.readers import synthetic


def fit(examples: Examples, seed: int = 17, **changes):
    return psr.fit(examples, psr.Settings(**{**synthetic.PSR, **changes}), {}, seed)


def test_log_odds_equal_a_literal_network_in_float64():
    examples = synthetic.examples()
    weights = fit(examples)
    t = {name: array.astype(np.float64) for name, array in weights.tensors.items()}
    scores = psr.score(synthetic.reader("readers.psr", weights), examples.answers)
    for row in (0, 5, 11):
        x = (examples.answers.features("h_pre")[row].astype(np.float64) - t["mean"]) / t["scale"]
        x = np.maximum(t["weight_0"] @ x + t["bias_0"], 0)
        x = np.maximum(t["weight_1"] @ x + t["bias_1"], 0)
        expected = (t["weight_2"] @ x + t["bias_2"])[0]
        assert scores.score[row] == pytest.approx(expected, abs=1e-12)
        assert scores.confidence[row] == pytest.approx(
            1 / (1 + np.exp(-expected / weights.notes["temperature"])), abs=1e-12
        )


def test_standardization_and_class_weight_come_from_the_fit_partition():
    examples = synthetic.examples()
    weights, fitted = fit(examples, max_epochs=1), examples.partition("fit")
    states = fitted.answers.features("h_pre").astype(np.float64)
    np.testing.assert_allclose(weights.tensors["mean"], states.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights.tensors["scale"], states.std(axis=0), rtol=1e-12)
    n_correct = int(fitted.correct.sum())
    assert weights.notes["pos_weight"] == (len(fitted) - n_correct) / n_correct


def test_the_temperature_is_that_of_the_calibration_partition_alone():
    examples = synthetic.examples()
    weights, calibration = fit(examples), examples.partition("calibration")
    log_odds = psr.score(synthetic.reader("readers.psr", weights), calibration.answers).score
    # The derivative of the mean cross-entropy with respect to 1 / T is zero at the best T.
    slope = np.mean((1 / (1 + np.exp(-log_odds / weights.notes["temperature"])) - calibration.correct) * log_odds)
    assert slope == pytest.approx(0.0, abs=1e-6)


def test_the_stop_loss_is_the_class_weighted_cross_entropy():
    examples = synthetic.examples()
    weights, stop = fit(examples), examples.partition("stop")
    log_odds = psr.score(synthetic.reader("readers.psr", weights), stop.answers).score
    weight = np.where(stop.correct, weights.notes["pos_weight"], 1.0)
    literal = np.mean(weight * np.logaddexp(0, np.where(stop.correct, -log_odds, log_odds)))
    assert weights.notes["stop_loss"] == pytest.approx(literal, abs=1e-5)
