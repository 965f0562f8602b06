import numpy as np

from dualread.readers import verbalized
from dualread.readers.base import Weights
from tests.readers.synthetic import examples, reader


def test_the_stated_confidence_is_kept_and_a_missing_one_is_marked():
    answers = examples(15).answers
    scores = verbalized.score(reader("readers.verbalized", Weights()), answers)
    assert np.flatnonzero(scores.imputed).tolist() == [0, 7, 14]
    assert (scores.confidence[scores.imputed] == 0.5).all()
    assert scores.confidence[[1, 2, 8]].tolist() == [0.01, 0.02, 0.08]
    assert (scores.score == scores.confidence).all()
