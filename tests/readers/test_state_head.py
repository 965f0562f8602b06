import numpy as np
import pytest

from dualread.readers.base import FittedReader, Weights, score
from tests.readers import synthetic


def test_the_confidence_is_the_sigmoid_of_the_mean_of_two_log_odds(tmp_path):
    pre, close = np.zeros((2, synthetic.D), np.float32), np.zeros((2, synthetic.D), np.float32)
    pre[0, 0], close[1, 1] = 3.0, -2.0
    weight = np.zeros((2, synthetic.D), np.float32)
    weight[0, 0], weight[1, 1] = 1.0, 0.5
    answers = synthetic.examples(2).answers
    answers = type(answers)(table=answers.table, source={"h_pre": pre, "h_close": close}.get, rows=np.arange(2))
    weights = Weights(tensors={"weight": weight, "bias": np.array([0.5, -1.0], np.float32)})
    scores = score(FittedReader(module="readers.state_head", settings=None, weights=weights), answers)
    # (3 + .5 + 0 - 1) / 2 = 1.25 and (0 + .5 - 1 - 1) / 2 = -.75
    assert scores.score.tolist() == [1.25, -0.75]
    assert scores.confidence.tolist() == pytest.approx([1 / (1 + np.exp(-1.25)), 1 / (1 + np.exp(0.75))], abs=1e-15)
    assert not scores.imputed.any()
