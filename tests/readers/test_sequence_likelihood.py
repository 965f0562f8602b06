import numpy as np
import pytest

from dualread.readers import sequence_likelihood
from dualread.readers.base import Answers, Weights
from tests.readers import synthetic


def scores(*log_probs: float, temperature: float = 1.0):
    tensor = np.array(log_probs, dtype=np.float32)[:, np.newaxis]
    table = synthetic.examples(len(tensor)).answers.table
    answers = Answers(table=table, source={"answer_log_prob": tensor}.__getitem__, rows=np.arange(len(tensor)))
    reader = synthetic.reader("readers.sequence_likelihood", Weights(notes={"temperature": temperature}))
    return sequence_likelihood.score(reader, answers)


def test_by_hand():
    # Tokens of probability .9 and .4: the geometric mean is sqrt(.36) = .6, its log-odds ln(.6 / .4) = ln 1.5
    found = scores((np.log(0.9) + np.log(0.4)) / 2, np.log(0.5))
    assert found.score == pytest.approx([np.log(1.5), 0.0], abs=1e-6)
    assert found.confidence == pytest.approx([0.6, 0.5], abs=1e-7)
    # ln 1.5 / 2: the odds are sqrt(1.5)
    assert scores(np.log(0.6), temperature=2.0).confidence[0] == pytest.approx(1.5**0.5 / (1 + 1.5**0.5), abs=1e-7)


def test_both_ends_are_finite_and_in_order():
    found = scores(-1000.0, -100.0, -1e-3, -1e-6, -1e-7, -1e-8, -1e-40, 0.0)
    assert np.isfinite(found.score).all()
    assert (np.diff(found.score) >= 0).all()
    assert (np.diff(found.score[:5]) > 0).all()
    # m - ln(1 - e^m) = m - ln(-m) - ln(1 + m/2 + ...) = -ln(-m) + m/2 for a small m
    m = float(np.float32(-1e-6))
    assert found.score[3] == pytest.approx(-np.log(-m) + m / 2, abs=1e-12)
    # e^-1000 is 0 in float64, its log-odds are -1000
    assert found.score[0] == -1000.0
    # The largest float32 below 1 is 1 - 2^-24; its odds are 2^24 - 1
    assert found.score[-1] == pytest.approx(np.log(2.0**24 - 1), rel=1e-12)
    assert np.log1p(-float(np.float32(1) - np.nextafter(np.float32(1), np.float32(0)))) == pytest.approx(
        sequence_likelihood.LARGEST_LOG_PROB, rel=1e-12
    )
