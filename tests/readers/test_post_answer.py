"""P-State, P-Visual and DualRead against literal references."""

import numpy as np
import pytest

from dualread.readers import dualread, p_state, p_visual
from dualread.readers.base import Answers, Weights
from dualread.readers.calibration.temperature import fit_temperature
from tests.readers import synthetic

P_STATE, P_VISUAL = p_state.Settings(**synthetic.P_STATE), p_visual.Settings(**synthetic.P_VISUAL)


def adam(gradient, size: int, settings) -> np.ndarray:
    """Adam (.9, .999) from zero, written out in float64."""
    w, m, v = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, settings.steps + 1):
        g = gradient(w)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - settings.learning_rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return w


def literal_linear(features: np.ndarray, correct: np.ndarray, offset: np.ndarray, settings) -> np.ndarray:
    """Minimize mean BCE + l2 ||w||^2 over [w, b] on standardized features; returns [w, b]."""
    x = (features - features.mean(axis=0)) / features.std(axis=0)

    def gradient(wb: np.ndarray) -> np.ndarray:
        error = 1 / (1 + np.exp(-(offset + x @ wb[:-1] + wb[-1]))) - correct
        return np.append(x.T @ error / len(x) + 2 * settings.l2 * wb[:-1], error.mean())

    return adam(gradient, features.shape[1] + 1, settings)


def fitted_state(examples, settings=P_STATE):
    return synthetic.reader("readers.p_state", p_state.fit(examples, settings, {}, 0))


def test_p_state_is_the_literal_fit():
    examples = synthetic.examples()
    fit = examples.partition("fit")
    settings = P_STATE.model_copy(update={"l2": 0.05})  # large enough to see a wrong factor
    tensors = p_state.fit(examples, settings, {}, 0).tensors
    expected = literal_linear(
        fit.answers.features("h_close").astype(np.float64), fit.correct, np.zeros(len(fit)), settings
    )
    np.testing.assert_allclose(np.append(tensors["weight"][0], tensors["bias"]), expected, atol=1e-9)


def test_p_visual_is_the_literal_residual_fit_on_the_uncalibrated_state():
    examples = synthetic.examples()
    fit, state = examples.partition("fit"), fitted_state(examples)
    tensors = p_visual.fit(examples, P_VISUAL, {"state": state}, 0).tensors
    offset = p_state.score(state, fit.answers).score
    assert state.weights.notes["temperature"] != pytest.approx(1.0, abs=1e-3)
    phi = p_visual.visual_block(fit.answers)
    expected = literal_linear(phi, fit.correct, offset, P_VISUAL)
    np.testing.assert_allclose(np.append(tensors["weight"][0], tensors["bias"]), expected, atol=1e-9)


def test_the_visual_block_by_hand():
    tensors = {"h_global": [[1.0, 2.0]], "h_evid": [[3.0, -4.0]], "h_ans": [[-1.0, 0.5]]}
    table = synthetic.examples(1).answers.table
    source = {name: np.array(value, dtype=np.float32) for name, value in tensors.items()}
    answers = Answers(table=table, source=source.__getitem__, rows=np.array([0]))
    # [global; evid; ans * evid = (-3, -2); |ans - evid| = (4, 4.5)]
    assert p_visual.visual_block(answers).tolist() == [[1, 2, 3, -4, -3, -2, 4, 4.5]]


def test_per_is_the_state_plus_the_residual_with_a_temperature_of_its_own():
    examples = synthetic.examples()
    state = fitted_state(examples)
    weights = p_visual.fit(examples, P_VISUAL, {"state": state}, 0)
    per = synthetic.reader("readers.p_visual", weights, parents={"state": state})
    scores = p_visual.score(per, examples.answers)
    t = weights.tensors
    residual = (p_visual.visual_block(examples.answers) - t["mean"]) / t["scale"] @ t["weight"][0].astype(float) + t[
        "bias"
    ]
    np.testing.assert_allclose(scores.score, p_state.score(state, examples.answers).score + residual, atol=1e-10)
    calibration = (examples.answers.table["role"] == "calibration").to_numpy()
    expected = fit_temperature(scores.score[calibration], examples.correct[calibration])
    assert weights.notes["temperature"] == pytest.approx(expected.value, rel=1e-9)


def test_constant_states_are_standardized_by_one():
    examples = synthetic.examples()
    constant = np.full((300, synthetic.D), 3, dtype=np.float32)
    answers = Answers(table=examples.answers.table, source=lambda name: constant, rows=examples.answers.rows)
    weights = p_state.fit(type(examples)(answers=answers, correct=examples.correct), P_STATE, {}, 0)
    assert (weights.tensors["scale"] == 1).all()
    assert (weights.tensors["weight"] == 0).all()


def branch(value: float, temperature: float):
    """A P-State reader whose log-odds are h_close[0] * value."""
    tensors = {
        "mean": np.zeros(synthetic.D),
        "scale": np.ones(synthetic.D),
        "weight": np.array([[value] + [0.0] * (synthetic.D - 1)], dtype=np.float32),
        "bias": np.zeros(1, dtype=np.float32),
    }
    return synthetic.reader("readers.p_state", Weights(tensors=tensors, notes={"temperature": temperature}))


def test_fusion_by_hand():
    answers = synthetic.examples(4).answers
    x = answers.features("h_close")[:, 0].astype(np.float64)
    parents = {"pre": branch(1.0, 2.0), "post": branch(3.0, 0.5)}
    scores = dualread.score(synthetic.reader("readers.dualread", Weights(), parents=parents), answers)
    # (x / 2 + 3 x / .5) / 2 = 3.25 x
    np.testing.assert_allclose(scores.score, 3.25 * x, rtol=1e-12)
    np.testing.assert_allclose(scores.confidence, 1 / (1 + np.exp(-3.25 * x)), rtol=1e-12)


def test_log_odds_never_pass_through_a_clipped_probability():
    x = np.zeros((3, synthetic.D), dtype=np.float32)
    x[:, 0] = [100.0, 200.0, -900.0]
    answers = Answers(table=synthetic.examples(3).answers.table, source=lambda name: x, rows=np.arange(3))
    parents = {"pre": branch(1.0, 1.0), "post": branch(2.0, 1.0)}
    scores = dualread.score(synthetic.reader("readers.dualread", Weights(), parents=parents), answers)
    # Both confidences of the first two rows are 1 in float64; their log-odds stay apart and finite.
    assert scores.score.tolist() == [150.0, 300.0, -1350.0]
    assert scores.confidence[:2].tolist() == [1.0, 1.0]
