"""What readers learn, and what they cannot.

A question alone makes it easy or hard, and the states tell a little more. With labels permuted within each question
only the question is left, and a reader must be worth no more than `question_prior`. More would be a leak.
"""

import numpy as np
import pytest

from dualread.evaluation.metrics.discrimination import auroc, within_question_auroc
from dualread.readers.base import Examples, score
from tests.readers import synthetic
from tests.readers.test_contract import VIEWS, fitted, training

OF_STATES = ("psr", "saplma", "bicr", "p_state", "p_visual", "dualread", "layer_probe", "after_thinking")


def permuted_within_questions(given: Examples) -> Examples:
    """Permute labels among the answers of one question and one role: every question keeps its difficulty."""
    correct, rng = given.correct.copy(), np.random.default_rng(3)
    table = given.answers.table.with_row_index()
    for _, rows in table.group_by("question_key", "role", maintain_order=True):
        index = rows["index"].to_numpy()
        correct[index] = rng.permutation(correct[index])
    return Examples(answers=given.answers, correct=correct)


@pytest.mark.parametrize("name", OF_STATES)
def test_with_labels_permuted_within_questions_a_reader_is_worth_the_question(name):
    train = training(name, 1200, seed=1)
    test = synthetic.with_views(synthetic.examples(1500, seed=2, role="test"), VIEWS.get(name, ()))
    keys = test.answers.table["question_key"].to_list()
    read = score(fitted(name, train), test.answers).confidence
    assert within_question_auroc(read, test.correct, keys) > 0.65  # there is something to read, and it is read ...
    # ... but where there is nothing, nothing is made up. The standard error of an AUROC at n = 1500 is about .013.
    train, test = permuted_within_questions(train), permuted_within_questions(test)
    confidence = score(fitted(name, train), test.answers).confidence
    prior = score(fitted("question_prior", train), test.answers).confidence
    assert auroc(confidence, test.correct) <= auroc(prior, test.correct) + 0.02
    assert within_question_auroc(confidence, test.correct, keys) == pytest.approx(0.5, abs=0.05)
    assert within_question_auroc(prior, test.correct, keys) == 0.5
