"""Replicates with the spread of Student's t on the logit."""

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit, logit

from dualread.evaluation.statistics.clusters import Clusters
from dualread.evaluation.statistics.t_replicates import (
    binomial_replicates,
    spread_at_tpr,
    spread_of_log_losses,
    spread_of_losses,
    spread_of_ranks,
    t_replicates,
    t_stretch,
)


def spread(values, estimate, n_images, n_drawn):
    """The replicates if `n_images` of `n_drawn` equal images have the rarer kind of answer."""
    return t_replicates(
        values, estimate, df=n_images - 1.0, widening=(n_drawn / (n_drawn - 1)) ** 0.5, rest_on=n_images
    )


def drawn(n=4001, seed=3):
    return np.clip(np.random.default_rng(seed).normal(0.8, 0.05, n), 0, 1)


def test_percentiles_are_the_t_interval_on_the_logit():
    values = drawn()
    found = spread(values, 0.8, 6, 16)
    # Standard error on the logit: that of the replicates / (.8 * .2); t with 5 degrees of freedom: 2.571.
    half = 2.570582 * values.std() * (16 / 15) ** 0.5 / 0.16
    expected = expit(logit(0.8) + np.array([-half, half]))
    assert np.percentile(found, [2.5, 97.5]) == pytest.approx(expected, abs=2e-4)
    assert np.median(found) == pytest.approx(0.8, abs=1e-6)


def test_undefined_replicates_stay_undefined():
    values = drawn(400)
    values[::7] = np.nan
    found = spread(values, 0.8, 10, 20)
    assert np.array_equal(np.isnan(found), np.isnan(values))
    assert found[~np.isnan(values)] == pytest.approx(spread(values[~np.isnan(values)], 0.8, 10, 20))
    assert np.isnan(spread(np.full(3, np.nan), 0.5, 10, 20)).all()


@pytest.mark.parametrize(("estimate", "end"), [(1.0, 0.025 ** (1 / 12)), (0.0, 1 - 0.025 ** (1 / 12))])
def test_at_an_end_of_the_scale_the_interval_is_that_of_clopper_and_pearson(estimate, end):
    found = spread(np.full(10_000, estimate), estimate, 12, 20)
    assert np.percentile(found, 2.5 if estimate else 97.5) == pytest.approx(end, abs=1e-3)
    assert ((found >= 0) & (found <= 1)).all()


def test_a_value_that_cannot_vary_does_not():
    assert spread(np.full(9, 0.5), 0.5, 12, 20).tolist() == [0.5] * 9


def test_one_image_has_no_variance():
    assert np.isnan(spread(drawn(9), 0.8, 1, 20)).all()


def test_stretch():
    # t[.975] with 3 degrees of freedom 3.182446, normal 1.959964
    assert t_stretch(3) == pytest.approx(3.182446 / 1.959964, rel=1e-6)
    assert t_stretch(10_000) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("estimate", [0.012, 0.3, 0.99])
def test_binomial_replicates_have_the_interval_of_clopper_and_pearson(estimate):
    values = np.linspace(0, 1, 20_001)
    found = binomial_replicates(values, estimate, 20)
    x = 20 * estimate
    ends = scipy.stats.beta.ppf([0.025, 0.975], [x, x + 1], [21 - x, 20 - x])
    assert np.percentile(found, [2.5, 97.5]) == pytest.approx(ends, abs=1e-3)
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("n_wrong", [1, 4, 5, 6])
def test_a_loss_that_fewer_than_five_images_carry_spreads_as_a_share(n_wrong):
    # 20 images with two answers each; n_wrong have one wrong answer. Degrees of freedom: two for each of these.
    images = Clusters(rows=np.full(20, 2.0), right=np.array([1.0] * n_wrong + [2.0] * (20 - n_wrong)))
    values, of_t = drawn(200), {"widening": (20 / 19) ** 0.5, "rest_on": 20.0}
    as_share = binomial_replicates(values, 0.8, 20.0)
    expected = as_share if n_wrong < 5 else t_replicates(values, 0.8, df=2.0 * n_wrong, **of_t)
    assert np.array_equal(spread_of_losses(values, 0.8, images), expected)
    # Of losses without an upper end, fewer than five images say nothing.
    expected = np.full(200, np.nan)
    if n_wrong >= 5:
        expected = t_replicates(values, 0.8, df=2.0 * n_wrong, has_end=False, **of_t)
    assert np.array_equal(spread_of_log_losses(values, 0.8, images), expected, equal_nan=True)
    of_ranks = spread_of_ranks(values, 0.8, images)
    if n_wrong == 1:  # one image has no variance
        assert np.isnan(of_ranks).all()
    else:
        of_t["rest_on"] = n_wrong
        assert np.array_equal(of_ranks, t_replicates(values, 0.8, df=n_wrong - 1.0, **of_t))


@pytest.mark.parametrize("n_right", [19, 20])
def test_a_metric_at_a_share_of_the_right_answers_needs_twenty_images_with_some(n_right):
    images = Clusters(rows=np.full(40, 1.0), right=np.array([1.0] * n_right + [0.0] * (40 - n_right)))
    found = spread_at_tpr(drawn(200), 0.8, images)
    assert np.array_equal(found, spread_of_ranks(drawn(200), 0.8, images)) if n_right == 20 else np.isnan(found).all()


def test_an_estimate_has_used_up_one_image():
    images = [Clusters(rows=np.full(n, 3.0), right=np.ones(n)) for n in (1, 2, 5)]
    assert [of.widening for of in images] == pytest.approx([1.0, 2**0.5, (5 / 4) ** 0.5])
