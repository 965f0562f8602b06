import numpy as np
import pytest

from dualread.evaluation.statistics.p_values import EQUAL, P, holm, p_value


def value_of(differences):
    found = p_value(np.asarray(differences))
    assert found is not None
    return found.value


def adjusted(values):
    return [p and p.value for p in holm([None if value is None else P(value, at_most=False) for value in values])]


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.4], 0.4),  # none is <= 0: 2 (1 + 0) / (4 + 1)
        ([-0.1, -0.2, -0.3, -0.4], 0.4),  # the same on the other side
        ([0.1, 0.2, 0.3, -0.4], 0.8),  # one is <= 0: 2 (1 + 1) / 5
        ([0.1, 0.2, 0.3, 0.0], 0.8),  # a zero counts on both sides
        ([0.1, -0.2, 0.3, -0.4], 1.0),  # 2 (1 + 2) / 5 = 1.2, cut to 1
        ([0.0] * 4, 1.0),
        ([0.1, np.nan, 0.3, np.nan], 2 / 3),  # two have a value: 2 (1 + 0) / (2 + 1)
    ],
)
def test_a_p_value_by_hand(differences, expected):
    assert value_of(differences) == pytest.approx(expected, abs=1e-15)


def test_a_rounding_error_is_no_difference():
    # Two methods with equal values in every resample, added up in another order: .1 + .2 is not .3.
    replicates = np.array([(0.1 + 0.2) - 0.3, 0.3 - (0.1 + 0.2)] * 2)
    assert (replicates != 0).all()
    assert value_of(replicates) == 1.0
    # A tie among them counts on both sides: 2 (1 + 1) / 5, and not 2 (1 + 0) / 5.
    for rounded in ((0.1 + 0.2) - 0.3, EQUAL, -EQUAL):
        assert value_of([0.1, 0.2, 0.3, rounded]) == pytest.approx(0.8)
        assert value_of([-0.1, -0.2, -0.3, rounded]) == pytest.approx(0.8)


def test_without_a_value_there_is_no_p_value():
    assert p_value(np.array([np.nan, np.nan])) is None
    assert p_value(np.empty(0)) is None


@pytest.mark.parametrize(
    ("differences", "at_most"),
    [
        ([0.1, 0.2, 0.3, 0.4], True),  # all on one side: with more resamples, p might be smaller
        ([0.1, 0.2, 0.3, -0.4], False),
        ([0.1], False),  # 2 (1 + 0) / (1 + 1) = 1 is not a limit
        ([0.0] * 4, False),
    ],
)
def test_the_smallest_p_value_of_so_many_resamples_is_a_limit(differences, at_most):
    found = p_value(np.array(differences))
    assert found is not None
    assert found.at_most is at_most


def test_an_adjusted_p_value_is_a_limit_if_it_comes_from_one():
    low, high = P(0.002, at_most=True), P(0.0021, at_most=False)
    # 2 * .002 = .004, a limit; the second is raised to it: max(.004, .0021).
    assert holm([low, high]) == [P(0.004, at_most=True), P(0.004, at_most=True)]
    # 2 * .002 = .004; .03 is its own.
    assert holm([P(0.03, at_most=False), low]) == [P(0.03, at_most=False), P(0.004, at_most=True)]
    assert holm([P(0.6, at_most=True)] * 2) == [P(1.0, at_most=False)] * 2


def test_holm_by_hand():
    # sorted .01 .02 .03 .04: times 4 3 2 1 = .04 .06 .06 .04; the last may not be below the one before
    assert adjusted([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert adjusted([0.5, 0.9]) == [1.0, 1.0]
    assert adjusted([0.02]) == [0.02]
    assert adjusted([]) == []


def test_what_has_no_p_value_is_not_counted():
    assert adjusted([None, 0.03, 0.02]) == [None, 0.04, 0.04]  # 2 * .02; max(.04, 1 * .03)
