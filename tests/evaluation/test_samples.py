"""What resamples say of a value: its variance, its interval, and its p-value."""

from dataclasses import replace

import numpy as np
import pytest
import scipy

from dualread.evaluation.samples import Resampled
from dualread.evaluation.statistics.p_values import P


def test_a_difference_that_few_images_make_lopsided_is_as_far_from_0_as_its_deviation_demands():
    # All replicates lie above 0, as where few images hold wrong answers, but their deviation is larger.
    replicates = np.array([0.001] * 50 + [0.1] * 30 + [0.3] * 20)
    estimate = replicates.mean()
    sample = Resampled(replicates=replicates, n_images=50, is_skewed=True)
    other = Resampled(replicates=np.zeros(100), n_images=50, is_skewed=True)
    difference = sample.minus(other)
    deviation = replicates.std(ddof=1)
    p, (low, high) = difference.p(estimate), difference.limits(estimate, True)
    assert p.value == pytest.approx(2 * scipy.stats.norm.sf(estimate / deviation))
    assert (p.value > 0.05, p.at_most) == (True, False)
    assert (low, high) == pytest.approx((estimate - 1.959964 * deviation, estimate + 1.959964 * deviation))
    assert low < 0 < 0.3 < high  # the percentiles are .001 and .3
    assert replace(difference, is_skewed=False).p(estimate).value == pytest.approx(2 / 101)
    assert other.minus(other).p(0.0).value == 1.0


def test_few_replicates_and_what_the_images_can_give():
    few = Resampled(replicates=np.array([0.1, 0.3, np.nan]), n_images=5)
    assert few.variance().value == pytest.approx(0.02)  # (.1^2 + .1^2) / (2 - 1)
    single = replace(few, replicates=np.array([0.1, np.nan]), is_skewed=True)
    assert (single.variance(), single.limits(0.1, True)) == (None, (0.1, 0.1))
    # 2 / (3 + 1) is also the smallest that two images can give, 2 x .5^2: it stays a limit.
    three = Resampled(replicates=np.array([0.1, 0.2, 0.3]), n_images=2)
    assert three.p(0.2) == P(0.5, at_most=True)
    assert replace(three, n_images=1).p(0.2) == P(1.0, at_most=False)
    # An estimate of 0 has no deviation to be away from it.
    assert replace(three, n_images=50, is_skewed=True).p(0.0) == P(0.5, at_most=True)
