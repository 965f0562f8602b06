"""The largest probability among a question's choices, by hand."""

import numpy as np
import pytest

from dualread.readers.replies import choice_probabilities

LOG_PROBS = {
    "A": np.log([0.3, np.nan, 0.1]),  # of what is left out of all choices, nothing is read
    "B": np.log([0.1, np.nan, 0.1]),
    "C": np.log([np.nan, np.nan, 0.2]),
}


def test_probabilities_are_among_the_choices_of_the_question():
    found = choice_probabilities(LOG_PROBS, 3)
    assert found[0] == pytest.approx([0.75, 0.25, np.nan], nan_ok=True)  # .3 / (.3 + .1)
    assert np.isnan(found[1]).all()
    assert found[2] == pytest.approx([0.25, 0.25, 0.5])
    assert np.isnan(choice_probabilities({}, 2)).all()  # no question has choices
    tiny = choice_probabilities({"A": np.array([-2000.0]), "B": np.array([-2000.0])}, 1)
    assert tiny[0] == pytest.approx([0.5, 0.5])
