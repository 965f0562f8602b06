"""Intervals on the logit and on the plain scale, and p-values; scipy.stats has the quantiles."""

import numpy as np
import pytest
import scipy

from dualread.evaluation.statistics.jackknife import Variance
from dualread.evaluation.statistics.t_intervals import (
    difference_interval,
    difference_p_value,
    logit_interval,
    smallest_p_value,
)

TEN = Variance(value=0.01, df=10.0, n=11.0)  # t(10) has its 97.5th percentile at 2.228139


def test_a_share_by_hand() -> None:
    # Logit of .8: 1.386294. Standard error there: .1 / (.8 x .2) = .625; 2.228139 x .625 = 1.392587.
    # Ends at logits -.006293 and 2.778881: .498427 and .941524.
    assert logit_interval(0.8, TEN) == pytest.approx((0.498427, 0.941524), abs=1e-6)


def test_another_scale_is_the_same_interval_moved() -> None:
    # .6 in [-1, 1] lies where .8 lies in [0, 1]; its standard error of .2 is .1 there.
    low, high = logit_interval(0.8, TEN) or (0.0, 0.0)
    found = logit_interval(0.6, Variance(value=0.04, df=10.0, n=11.0), low=-1.0)
    assert found == pytest.approx((2 * low - 1, 2 * high - 1))


def test_an_end_of_the_scale_is_that_of_clopper_and_pearson() -> None:
    # scipy's exact interval of 20 of 20, and of 0 of 20.
    still = Variance(value=0.0, df=19.0, n=20.0)
    for count in (0, 20):
        exact = scipy.stats.binomtest(count, 20).proportion_ci(0.95, method="exact")
        assert logit_interval(count / 20, still) == pytest.approx((exact.low, exact.high))


def test_ties_alone_leave_room_on_both_sides() -> None:
    # With 20 images, a share of 1 - .025**(1/20) = .168433 may be others: .5 +- .168433 / 2.
    still = Variance(value=0.0, df=19.0, n=20.0)
    assert logit_interval(0.5, still) == pytest.approx((0.4157833, 0.5842167), abs=1e-6)
    assert difference_interval(0.0, still) == pytest.approx((-0.168433, 0.168433), abs=1e-6)


@pytest.mark.parametrize("estimate", [0.0, 1e-12, 0.5, 1 - 1e-12, 1.0])
@pytest.mark.parametrize("value", [0.0, 1e-30, 0.2])
@pytest.mark.parametrize("df", [0.1, 200.0])
def test_an_interval_contains_its_estimate_and_stays_on_the_scale(estimate: float, value: float, df: float) -> None:
    low, high = logit_interval(estimate, Variance(value=value, df=df, n=df + 1)) or (1.0, 0.0)
    assert 0.0 <= low <= estimate <= high <= 1.0


def test_a_difference_by_hand() -> None:
    # .3 +- 2.228139 x .1; and 1 is the largest difference.
    assert difference_interval(0.3, TEN) == pytest.approx((0.0771861, 0.5228139))
    assert difference_interval(0.9, TEN) == pytest.approx((0.6771861, 1.0))


def test_a_variance_without_degrees_of_freedom_has_no_interval() -> None:
    unknown = Variance(value=0.01, df=0.0, n=1.0)
    assert logit_interval(0.5, unknown) is None
    assert difference_interval(0.1, unknown) is None
    assert difference_p_value(0.1, unknown, carriers=20) is None


def test_a_p_value_is_that_of_a_t_test() -> None:
    # The mean of differences per image, each image with one pair: scipy's paired t test.
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 30))
    differences = one - other
    variance = Variance(value=float(np.var(differences, ddof=1)) / 30, df=29.0, n=30.0)
    assert difference_p_value(float(differences.mean()), variance, 30) == pytest.approx(
        scipy.stats.ttest_rel(one, other).pvalue
    )


def test_no_p_value_that_the_images_cannot_give() -> None:
    # Four pairs that all favour one method: the exact sign test has 2 x .5**4 = .125.
    still = Variance(value=0.0, df=3.0, n=4.0)
    assert difference_p_value(1.0, still, carriers=4) == 0.125 == smallest_p_value(4)
    assert difference_p_value(1.0, Variance(value=1e-9, df=3.0, n=4.0), carriers=4) == 0.125
    assert scipy.stats.binomtest(4, 4).pvalue == pytest.approx(smallest_p_value(4))


def test_no_difference_has_a_p_value_of_1() -> None:
    assert difference_p_value(0.0, Variance(value=0.0, df=3.0, n=4.0), carriers=0) == 1.0
    assert smallest_p_value(0) == 1.0
