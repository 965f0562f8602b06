import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.evaluation.statistics.p_values import holm, p_value


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
    assert p_value(np.array(differences)) == pytest.approx(expected, abs=1e-15)


def test_a_rounding_error_is_no_difference():
    # Two methods with equal values in every resample, added up in another order: .1 + .2 is not .3.
    replicates = np.array([(0.1 + 0.2) - 0.3, 0.3 - (0.1 + 0.2)] * 2)
    assert (replicates != 0).all()
    assert p_value(replicates) == 1.0
    # A tie among them counts on both sides: 2 (1 + 1) / 5, and not 2 (1 + 0) / 5.
    assert p_value(np.array([0.1, 0.2, 0.3, (0.1 + 0.2) - 0.3])) == pytest.approx(0.8)


def test_ten_thousand_replicates_on_one_side():
    assert p_value(np.ones(10_000)) == pytest.approx(2 / 10_001)


def test_without_a_value_there_is_no_p_value():
    assert p_value(np.array([np.nan, np.nan])) is None
    assert p_value(np.empty(0)) is None


def test_holm_by_hand():
    # sorted .01 .02 .03 .04: times 4 3 2 1 = .04 .06 .06 .04; the last may not be below the one before
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_what_has_no_p_value_is_not_counted():
    assert holm([None, 0.03, 0.02]) == [None, 0.04, 0.04]  # 2 * .02; max(.04, 1 * .03)


@given(st.lists(st.sampled_from([0.001, 0.01, 0.02, 0.3, 1.0]), max_size=8), st.randoms())
def test_holm_does_not_depend_on_the_order(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    assert [holm(values)[k] for k in order] == holm([values[k] for k in order])
    assert all(
        p <= adjusted <= min(1.0, p * len(values)) + 1e-15 for p, adjusted in zip(values, holm(values), strict=True)
    )
