"""The probe of the end of thinking is P-State on h_think, without the answers whose thinking never ends."""

from dataclasses import replace

import numpy as np
import pytest

from dualread.errors import UnfittedError
from dualread.readers.base import FittedReader, fit, score, settings_of
from tests.readers import synthetic

ENDLESS = np.arange(300) % 7 == 3


def with_endless(examples, endless):
    """Examples, some of which have no h_think; h_close is the same tensor without gaps."""
    states = examples.answers.source("h_think").copy()
    kept, states[endless] = states.copy(), np.nan
    tensors = {"h_think": states, "h_close": kept}
    return replace(examples, answers=replace(examples.answers, source=tensors.__getitem__))


def fitted(name, examples):
    weights = fit(f"readers.{name}", examples, dict(synthetic.P_STATE), {}, seed=0)
    settings = settings_of(f"readers.{name}", dict(synthetic.P_STATE))
    return FittedReader(module=f"readers.{name}", settings=settings, weights=weights)


def test_it_is_p_state_of_the_answers_that_end_their_thinking():
    examples = with_endless(synthetic.examples(), ENDLESS)
    ended = np.flatnonzero(~ENDLESS)
    whole = replace(examples, answers=examples.answers.take(ended), correct=examples.correct[ended])
    reader, p_state = fitted("after_thinking", examples), fitted("p_state", whole)
    assert reader.weights.notes["n_endless"] == ENDLESS.sum()
    scores, expected = score(reader, examples.answers), score(p_state, whole.answers)
    np.testing.assert_array_equal(scores.score[ended], expected.score)
    np.testing.assert_array_equal(scores.confidence[ended], expected.confidence)
    np.testing.assert_array_equal(scores.imputed, ENDLESS)
    assert set(scores.confidence[ENDLESS]) == {0.5}


def test_where_no_thinking_ends_there_is_no_reader_and_the_reason_has_the_count():
    examples = with_endless(synthetic.examples(), np.ones(300, bool))
    with pytest.raises(UnfittedError) as refused:
        fitted("after_thinking", examples)
    assert "300 of 300 answers have no end of thinking" in str(refused.value)
