from dataclasses import replace

import numpy as np
import pytest

from dualread.readers import p_true
from dualread.readers.base import Answers, ViewAnswers, Weights
from tests.readers import synthetic

READER = synthetic.reader("readers.p_true", Weights())


def answers(*views: ViewAnswers) -> Answers:
    return replace(synthetic.examples(3).answers, views=views)


def test_by_hand():
    # P(Yes) = .3 and P(No) = .1 of the whole vocabulary: .3 / .4
    view = ViewAnswers(name="yes_no", log_probs={"Yes": np.log([0.3, 0.2, 1e-9]), "No": np.log([0.1, 0.2, 0.9])})
    found = p_true.score(READER, answers(view))
    assert found.confidence == pytest.approx([0.75, 0.5, 1e-9 / 0.9], rel=1e-9)
    assert found.score == pytest.approx([np.log(3), 0.0, np.log(1e-9 / 0.9)], abs=1e-12)
    assert not found.imputed.any()


def test_an_answer_that_was_not_shown_keeps_a_half_and_is_marked():
    view = ViewAnswers(
        name="yes_no", log_probs={"Yes": np.array([-1.0, np.nan, -2.0]), "No": np.array([-2.0, np.nan, -1.0])}
    )
    found = p_true.score(READER, answers(view))
    assert found.imputed.tolist() == [False, True, False]
    assert (found.score[1], found.confidence[1]) == (0.0, 0.5)
    nobody = p_true.score(READER, answers(ViewAnswers(name="yes_no", log_probs={})))
    assert nobody.imputed.all()
    assert (nobody.confidence == 0.5).all()


def test_log_probabilities_whose_probabilities_are_zero():
    view = ViewAnswers(name="yes_no", log_probs={"Yes": np.full(3, -900.0), "No": np.full(3, -901.0)})
    assert p_true.score(READER, answers(view)).score.tolist() == [1.0] * 3
