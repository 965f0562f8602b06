from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.readers import prompt_ensemble, self_probing
from dualread.readers.base import Scores, ViewAnswers, Weights
from tests.readers import synthetic


def asked(reader, *replies: list[str]) -> Scores:
    views = tuple(
        ViewAnswers(name=f"asked_{i}", texts=tuple((text,) for text in texts)) for i, texts in enumerate(replies)
    )
    answers = replace(synthetic.examples(len(replies[0])).answers, views=views)
    return reader.score(synthetic.reader(reader.__name__, Weights()), answers)


def test_self_probing_by_hand():
    found = asked(self_probing, ["85", "I am <confidence>70</confidence> sure, of 100", "none"])
    assert found.confidence.tolist() == [0.85, 0.7, 0.5]
    assert found.imputed.tolist() == [False, False, True]
    assert (found.score == found.confidence).all()


def test_the_ensemble_by_hand():
    found = asked(prompt_ensemble, ["80", "x", "x", "0"], ["60", "30", "x", "x"], ["x", "31", "x", "x"])
    # (.8 + .6) / 2, (.3 + .31) / 2, none, and a valid 0
    assert found.confidence == pytest.approx([0.7, 0.305, 0.5, 0.0], abs=1e-15)
    assert found.imputed.tolist() == [False, False, True, False]


@given(st.lists(st.lists(st.integers(0, 100), min_size=4, max_size=4), min_size=1, max_size=20))
def test_equal_means_of_stated_integers_are_equal_floats(rows):
    found = asked(prompt_ensemble, *([f"{percent}" for percent in column] for column in zip(*rows, strict=True)))
    assert found.confidence.tolist() == [float(Fraction(sum(row), 400)) for row in rows]


def test_an_answer_that_was_not_asked_about_keeps_a_half_and_is_marked():
    """An answer that is not valid cannot be placed in a prompt."""
    view = ViewAnswers(name="probe", texts=(("80",), (), ("20",)))
    answers = replace(synthetic.examples(3).answers, views=(view,))
    for reader in (self_probing, prompt_ensemble):
        found = reader.score(synthetic.reader(reader.__name__, Weights()), answers)
        assert found.confidence.tolist() == [0.8, 0.5, 0.2]
        assert found.imputed.tolist() == [False, True, False]
