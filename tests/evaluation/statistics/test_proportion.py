"""Intervals of shares: values by hand, and against the quantiles of scipy.stats."""

import numpy as np
import pytest
import scipy.stats

from dualread.evaluation.statistics.clusters import InEffect
from dualread.evaluation.statistics.proportion import clopper_pearson, share_interval


@pytest.mark.parametrize(("right", "n"), [(41, 50), (20, 20), (2, 20), (0, 20)])
def test_one_row_per_image_is_the_interval_of_clopper_and_pearson(right, n):
    expected = scipy.stats.binomtest(right, n).proportion_ci(0.95, method="exact")
    found = share_interval(np.arange(n) < right, np.arange(n))
    assert found == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_images_with_several_questions():
    # Three images with 2, 2 and 1 questions, of which 2, 1 and 0 are right: the share is 3/5.
    # Residuals right - share * questions: 2 - 1.2 = .8, 1 - 1.2 = -.2, 0 - .6 = -.6; their squares add up to
    # .64 + .04 + .36 = 1.04. Variance 3/2 * 1.04 / 25 = .0624; that of 5 independent rows is .6 * .4 / 4 = .06. The
    # design effect is .0624 / .06 = 1.04, so that 5 rows count as 5 / 1.04 independent ones.
    share, size = 0.6, 5 / 1.04 * (scipy.stats.t.ppf(0.975, 4) / scipy.stats.t.ppf(0.975, 2)) ** 2
    x = share * size
    low = scipy.stats.beta.ppf(0.025, x, size - x + 1)
    high = scipy.stats.beta.ppf(0.975, x + 1, size - x)
    found = share_interval(np.array([True, True, True, False, False]), np.array([0, 0, 1, 1, 2]))
    assert found == (pytest.approx(low, rel=1e-10), pytest.approx(high, rel=1e-10))


def test_answers_that_agree_within_images_count_once():
    positive = np.arange(40) < 30
    once = share_interval(positive, np.arange(40))
    four_times = share_interval(np.repeat(positive, 4), np.repeat(np.arange(40), 4))
    # The three repetitions add nothing: V = 40/39 * 40 * 4^2 * .75 * .25 / 160^2 = .75 * .25 / 39, of independent rows
    # .75 * .25 / 159, so that 160 rows count as 160 * 39 / 159. Ten images are wrong: 20 degrees of freedom.
    size = 160 * 39 / 159 * (scipy.stats.t.ppf(0.975, 159) / scipy.stats.t.ppf(0.975, 20)) ** 2
    assert four_times == pytest.approx(clopper_pearson(0.75, size), rel=1e-12)
    assert four_times[0] < once[0] < 0.75 < once[1] < four_times[1]


def test_rows_never_count_more_than_once():
    # Each image has one right and one wrong answer, but one has two right ones: the variance is far below that of
    # independent rows.
    positive = np.array([True, False] * 9 + [True, True])
    found = share_interval(positive, np.repeat(np.arange(10), 2))
    expected = scipy.stats.binomtest(11, 20).proportion_ci(0.95, method="exact")
    assert found == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_rows_of_one_image_have_no_interval():
    assert share_interval(np.tile([True, False], 20), np.zeros(40, dtype=int)) is None
    assert share_interval(np.array([True]), np.array([3])) == clopper_pearson(1.0, 1)


@pytest.mark.parametrize("n_images", [2, 10])
def test_without_a_variance_the_images_count(n_images):
    # Each image has one right and one wrong answer, so that the images do not differ.
    found = share_interval(np.tile([True, False], n_images), np.repeat(np.arange(n_images), 2))
    assert found == clopper_pearson(0.5, n_images)


def test_no_rows():
    assert share_interval(np.zeros(0, dtype=bool), np.zeros(0, dtype=int)) is None


def test_the_share_is_always_inside_and_rows_have_no_order():
    generator = np.random.default_rng(5)
    for _ in range(300):
        n = int(generator.integers(1, 60))
        cluster = generator.integers(0, int(generator.integers(1, 30)), n)
        positive = generator.random(n) < generator.choice([0.02, 0.5, 0.98])
        found, order = share_interval(positive, cluster), generator.permutation(n)
        assert share_interval(positive[order], cluster[order]) == found
        if n > 1 and InEffect.of(np.bincount(cluster)).reason:
            assert found is None
            continue
        low, high = found
        assert 0.0 <= low <= positive.mean() <= high <= 1.0
        assert low < high


def test_few_images_with_the_rarer_kind_have_two_degrees_of_freedom_each():
    # 20 images with 3 rows; 2 images have one wrong row each: 58/60. Residuals 3 - 2.9 = .1 (18 times) and
    # 2 - 2.9 = -.9 (twice); squares .18 + 1.62 = 1.8. V = 20/19 * 1.8 / 3600, of independent rows (58/60) (2/60) / 59.
    positive = np.ones(60, dtype=bool)
    positive[[0, 3]] = False
    share = 58 / 60
    size = 60 * (share * (1 - share) / 59) / (20 / 19 * 1.8 / 3600)
    size *= (scipy.stats.t.ppf(0.975, 59) / scipy.stats.t.ppf(0.975, 4)) ** 2
    assert size < 60
    x = share * size
    expected = scipy.stats.beta.ppf([0.025, 0.975], [x, x + 1], [size - x + 1, size - x])
    assert share_interval(positive, np.arange(60) // 3) == pytest.approx(tuple(expected), rel=1e-9)


@pytest.mark.parametrize(("n_images", "share", "correlation"), [(40, 0.95, 0.8), (100, 0.98, 0.8), (40, 0.5, 0.3)])
def test_it_covers(n_images, share, correlation):
    """With images of 1 to 12 rows; n - 1 degrees of freedom would cover in 88% of the first two."""
    stream, covered = np.random.default_rng(n_images), 0
    both = share * (1 - correlation) / correlation, (1 - share) * (1 - correlation) / correlation
    for _ in range(400):
        cluster = np.repeat(np.arange(n_images), stream.integers(1, 13, n_images))
        positive = stream.random(len(cluster)) < stream.beta(*both, n_images)[cluster]
        low, high = share_interval(positive, cluster)
        covered += low <= share <= high
    assert 0.92 < covered / 400 < 0.995  # the standard error is .011 at .95


def test_the_numbers_of_images_change_no_bit():
    """They are those of texts in the process, which has read other tables before."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        n_images = int(rng.integers(2, 60))
        images = rng.integers(0, n_images, size=int(rng.integers(5, 200)))
        positive = rng.random(len(images)) < 0.7
        others = rng.choice(1000, size=n_images, replace=False)
        assert share_interval(positive, others[images]) == share_interval(positive, images)
