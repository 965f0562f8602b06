import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics.discrimination import (
    accuracy,
    aupr_errors,
    auroc,
    fpr_at_95_tpr,
    within_question_auroc,
)
from tests.evaluation.metrics import literal
from tests.evaluation.metrics.samples import cells, turned, two_classes


def test_accuracy_by_hand():
    assert accuracy([True, False, True, True]) == 0.75  # 3 / 4
    assert accuracy([1, 0]) == 0.5


def test_auroc_by_hand():
    # right .9, .5; wrong .5, .1: pairs .9>.5, .9>.1, .5=.5 (1/2), .5>.1 -> 3.5 / 4
    assert auroc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]) == 0.875


@given(cells.filter(two_classes), st.randoms())
def test_auroc_is_the_literal_definition_and_scikit_learns_in_any_order_and_scale(cell, random):
    confidence, correct = cell
    value = auroc(confidence, correct)
    assert value == pytest.approx(literal.auroc(confidence, correct), abs=1e-15)
    assert value == pytest.approx(roc_auc_score(correct, confidence), abs=1e-12)
    ranks = np.unique(confidence, return_inverse=True)[1] / len(confidence)
    assert auroc(*turned(random, confidence, correct)) == auroc(ranks, correct) == value


def test_errors_that_are_found_and_kept_by_hand():
    # From the lowest: .1 wrong; .5 two wrong, one right; .8 right; .9 wrong. Average precision of the four wrong ones:
    # 1/4 * 1/1 + 2/4 * 3/4 + 1/4 * 4/6
    confidence, correct = [0.8, 0.5, 0.1, 0.5, 0.9, 0.5], [True, False, False, True, False, False]
    assert aupr_errors(confidence, correct) == pytest.approx(1 / 4 + 3 / 8 + 1 / 6, abs=1e-15)
    # Both right ones have to be kept, so that .5 is the threshold: three of the four wrong ones are kept.
    assert fpr_at_95_tpr(confidence, correct) == 3 / 4
    # Of 20 right ones, one may be lost: those from .6 on are kept, with one of the two wrong ones. Of 19, none may.
    many = [True] * 20 + [False] * 2
    assert fpr_at_95_tpr([0.3, *[0.6] * 19, 0.7, 0.5], many) == 1 / 2
    assert fpr_at_95_tpr([0.3, *[0.6] * 18, 0.7, 0.5], many[1:]) == 1
    assert aupr_errors([0.4] * 5, [True] * 3 + [False] * 2) == 2 / 5
    for kind in (True, False):
        for metric in (aupr_errors, fpr_at_95_tpr):
            with pytest.raises(UndefinedMetricError):
                metric([0.2, 0.9], [kind] * 2)


@given(cells.filter(two_classes), st.randoms())
def test_errors_that_are_found_and_kept_are_scikit_learns_in_any_order_and_scale(cell, random):
    confidence, correct = cell
    assert aupr_errors(confidence, correct) == pytest.approx(average_precision_score(~correct, -confidence), abs=1e-12)
    wrong_kept, right_kept, _ = roc_curve(correct, confidence, drop_intermediate=False)
    assert fpr_at_95_tpr(confidence, correct) == wrong_kept[np.argmax(right_kept >= 0.95)]
    ranks = np.unique(confidence, return_inverse=True)[1] / len(confidence)
    for metric in (aupr_errors, fpr_at_95_tpr):
        assert metric(*turned(random, confidence, correct)) == metric(ranks, correct) == metric(confidence, correct)


def test_within_question_by_hand():
    # q1: right .9 against wrong .2, .9 -> 1 + 1/2; q2: right .1 against wrong .3 -> 0; q3: one class. 1.5 / 3
    confidence = [0.9, 0.2, 0.9, 0.1, 0.3, 0.7]
    correct = [True, False, False, True, False, True]
    assert within_question_auroc(confidence, correct, ["q1", "q1", "q1", "q2", "q2", "q3"]) == 0.5


@given(cells, st.data())
def test_within_question_is_the_literal_definition(cell, data):
    confidence, correct = cell
    keys = data.draw(st.lists(st.sampled_from("abc"), min_size=len(correct), max_size=len(correct)))
    assume(any(r and not s and k == m for r, k in zip(correct, keys) for s, m in zip(correct, keys)))  # noqa: B905
    expected = literal.within_question_auroc(confidence, correct, keys)
    assert within_question_auroc(confidence, correct, keys) == pytest.approx(expected, abs=1e-15)
