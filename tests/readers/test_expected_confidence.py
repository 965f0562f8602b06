from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.readers import expected_confidence
from dualread.readers.base import ViewAnswers, Weights
from tests.readers import synthetic

READER = synthetic.reader("readers.expected_confidence", Weights())


def confidence(log_probs: dict[str, np.ndarray], n: int = 3) -> np.ndarray:
    answers = replace(synthetic.examples(n).answers, views=(ViewAnswers(name="integers", log_probs=log_probs),))
    scores = expected_confidence.score(READER, answers)
    assert (scores.score == scores.confidence).all()
    assert not scores.imputed.any()
    return scores.confidence


def flat(value: float = -60.0, n: int = 3) -> dict[str, np.ndarray]:
    return {str(percent): np.full(n, value) for percent in range(101)}


def test_by_hand():
    log_probs = flat()
    # Of all completions 3% say 90 and 1% say 10; the rest says no integer: (3 * 90 + 1 * 10) / 4 = 70
    log_probs["90"], log_probs["10"] = np.log([0.03, 1.0, 1e-30]), np.log([0.01, 1e-30, 1.0])
    assert confidence(log_probs) == pytest.approx([0.7, 0.9, 0.1], abs=1e-12)
    assert confidence(flat()) == pytest.approx([0.5] * 3, abs=1e-15)  # the mean of 0 to 100


@given(st.sets(st.integers(0, 100), min_size=1))
def test_equal_shares_give_the_float_nearest_to_the_mean(percents):
    log_probs = flat(-2000.0, n=1)
    log_probs |= {str(percent): np.array([-1.5]) for percent in percents}
    assert confidence(log_probs, n=1).tolist() == [float(Fraction(sum(percents), 100 * len(percents)))]


def test_the_ends_are_reached_and_not_exceeded():
    log_probs = flat(-2000.0)
    log_probs["100"], log_probs["0"] = np.array([-1e-9, -1500.0, -900.0]), np.array([-1500.0, 0.0, -900.0])
    assert confidence(log_probs).tolist() == [1.0, 0.0, 0.5]
    # 100 + 99e-16 is rounded up, 1 + 1e-16 down
    log_probs["99"] = np.log([1e-16, 1e-16, 1e-16])
    assert confidence(log_probs)[0] == 1.0
