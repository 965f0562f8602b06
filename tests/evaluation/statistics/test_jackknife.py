"""The cluster jackknife, beside a literal reference that leaves out rows and computes the mean again."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dualread.evaluation.statistics.jackknife import (
    PairShifts,
    Variance,
    mean_variance,
    over_retrained_seeds,
    pair_shifts,
)


def drawn(seed: int, n: int = 60, n_images: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values with ties and pairs outside the set, and their images."""
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 0.5, 1.0, np.nan], size=n)
    source = rng.integers(0, n_images, n)
    donor = (source + rng.integers(1, n_images, n)) % n_images
    return values, source, donor


def numbers(variance: Variance) -> tuple[float, float, float]:
    return variance.value, variance.df, variance.n


def literal_variance(values: np.ndarray, source: np.ndarray, donor: np.ndarray) -> float:
    """Leave out the pairs of each image, and those of each two images, one after the other."""
    rows = [row for row in zip(values.tolist(), source.tolist(), donor.tolist(), strict=True) if row[0] == row[0]]
    estimate = sum(row[0] for row in rows) / len(rows)

    def variance(sets: set) -> float:
        total = 0.0
        for left in sets:
            rest = [value for value, *images in rows if not left <= set(images)]
            total += (sum(rest) / len(rest) - estimate) ** 2 if rest else 0.0
        return total * (len(sets) - 1) / len(sets)

    images = {frozenset([image]) for _, *both in rows for image in both}
    couples = {frozenset(both) for _, *both in rows}
    return max(variance(images) - variance(couples), variance(couples) / 2)


def test_shifts_of_pairs_by_hand() -> None:
    # Pairs 0-1: 1, 0-2: 0, 3-2: 1; mean 2/3. Without image 0: 1; without 1: 1/2; without 2: 1; without 3: 1/2.
    found = pair_shifts(np.array([1.0, 0.0, 1.0]), np.array([0, 0, 3]), np.array([1, 2, 2]))
    assert found.images == pytest.approx([1 / 3, -1 / 6, 1 / 3, -1 / 6])
    # The pairs are of different images. Without the first: 1/2; without the second: 1; without the third: 1/2.
    assert found.pairs == pytest.approx([-1 / 6, 1 / 3, -1 / 6])
    # Sources have 2 and 1 pairs, donors 1 and 2: 3**2 / (2**2 + 1**2) = 1.8 images each.
    assert found.n == pytest.approx(1.8)
    # Images: 3/4 x (2/9 + 2/36) = 5/24. Pairs: 2/3 x (2/36 + 1/9) = 1/9. Difference 7/72, more than half of 1/9.
    assert numbers(found.variance()) == pytest.approx((7 / 72, 0.8, 1.8))


@pytest.mark.parametrize("seed", range(5))
def test_the_variance_is_that_of_leaving_out_rows(seed: int) -> None:
    values, source, donor = drawn(seed)
    assert pair_shifts(values, source, donor).variance().value == pytest.approx(literal_variance(values, source, donor))


def test_a_pair_of_an_image_with_itself_is_left_out_once() -> None:
    # Images 0: 1; 1: 0 and 1. Mean 2/3. Without image 0: 1/2; without image 1: 1.
    found = pair_shifts(np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]), np.array([0, 1, 1]))
    assert found.images == pytest.approx([-1 / 6, 1 / 3])
    assert found.pairs == pytest.approx([-1 / 6, 1 / 3])


def test_the_shifts_of_a_difference_are_those_of_the_paired_values() -> None:
    values, source, donor = drawn(6)
    others = np.where(np.isnan(values), np.nan, np.random.default_rng(7).choice([0.0, 0.5, 1.0], len(values)))
    paired = pair_shifts(values, source, donor) - pair_shifts(others, source, donor)
    direct = pair_shifts(values - others, source, donor)
    np.testing.assert_allclose(paired.images, direct.images, atol=1e-15)
    np.testing.assert_allclose(paired.pairs, direct.pairs, atol=1e-15)


def test_an_image_that_only_one_method_uses_moves_only_that_method() -> None:
    one = PairShifts(images=np.array([0.2, np.nan, np.nan]), pairs=np.array([0.1]), n=3.0)
    other = PairShifts(images=np.array([np.nan, 0.1, np.nan]), pairs=np.array([0.1]), n=2.0)
    found = one - other
    np.testing.assert_array_equal(found.images, [0.2, -0.1, np.nan])
    assert found.n == 2.0


def test_shifts_that_only_rounding_makes_are_none() -> None:
    constant = pair_shifts(np.full(6, 0.5), np.arange(6), np.arange(6) + 6)
    noise = PairShifts(images=np.full(12, 3e-16), pairs=np.full(6, 2e-16), n=6.0)
    assert (constant + noise).variance().value == 0.0


def test_a_single_source_has_no_degrees_of_freedom() -> None:
    found = pair_shifts(np.array([1.0, 0.0]), np.array([0, 0]), np.array([1, 2]))
    assert found.variance().df == 0.0
    # Nor has one with almost all pairs: 10 and 1 of them count as 11**2 / (10**2 + 1**2) = 1.198 sources.
    found = pair_shifts(np.array([1.0, 0.0] * 5 + [1.0]), np.array([0] * 10 + [1]), np.arange(2, 13))
    assert numbers(found.variance())[1:] == pytest.approx((0.0, 121 / 101))


def test_the_variance_of_a_mean_over_data_sets() -> None:
    # (.04 + .16) / 4 = .05; .05**2 / (.01**2 / 4 + .04**2 / 9) = .0025 / .000202778 = 12.3288.
    found = mean_variance([Variance(value=0.04, df=4.0, n=5.0), Variance(value=0.16, df=9.0, n=10.0)])
    assert numbers(found) == pytest.approx((0.05, 12.328767, 10.0))


def test_the_variance_between_seeds_is_added() -> None:
    # Seeds .1, .2, .3 have s**2 = .01; .02 + .01 / 3 = .02333.
    found = over_retrained_seeds(Variance(value=0.02, df=20.0, n=21.0), [0.1, 0.2, 0.3])
    assert numbers(found) == pytest.approx((0.07 / 3, 20.0, 21.0))
    assert (found.between, found.df_between) == pytest.approx((0.01 / 3, 2.0))
    # Of the images' .02, .005 is also in the variance between seeds, and counts there alone.
    once = over_retrained_seeds(Variance(value=0.02, df=20.0, n=21.0), [0.1, 0.2, 0.3], 0.005)
    assert (once.value, once.between) == pytest.approx((0.015 + 0.01 / 3, 0.01 / 3))
    # t(20) has its 97.5th percentile at 2.085963, t(2) at 4.302653:
    # (.02 * 2.085963**2 + .003333 * 4.302653**2) / .023333 = 6.374324, the square of 2.524743.
    assert found.quantile(0.025) == pytest.approx(2.524743)
    assert found.tail(2.524743) == pytest.approx(0.025, rel=1e-5)


@pytest.mark.parametrize("tail", [0.5, 0.025, 1e-9])
@pytest.mark.parametrize("between", [0.0, 1e-6, 0.05])
def test_a_tail_is_the_inverse_of_a_quantile(tail: float, between: float) -> None:
    variance = Variance(value=0.05, df=30.0, n=31.0, between=between, df_between=2.0)
    assert variance.tail(variance.quantile(tail)) == pytest.approx(tail, rel=1e-6)


@given(st.floats(0.0, 50.0), st.floats(0.0, 1.0), st.floats(0.1, 1e4), st.floats(1.0, 1e4))
@example(13.510805585875566, 5.9264293102707104e-263, 0.99999, 1.0)  # rounding put both ends on one side
def test_every_tail_is_a_probability(steps: float, share: float, df: float, df_between: float) -> None:
    variance = Variance(value=0.05, df=df, n=df + 1, between=0.05 * share, df_between=df_between)
    assert 0.0 < variance.tail(steps) <= 0.5


def test_tails_beyond_all_numbers_are_positive() -> None:
    assert Variance(value=0.05, df=30.0, n=31.0, between=0.01, df_between=2.0).tail(1e200) > 0.0


@pytest.mark.parametrize(
    ("of_seeds", "together", "level"),
    [
        (0.0, 0.9, 0.05),
        (0.014, 0.0, 0.05),
        (0.03, 0.5, 0.01),
    ],
)
def test_retrained_equal_methods_differ_no_more_often_than_the_level_says(
    of_seeds: float, together: float, level: float
) -> None:
    """3 seeds, 100 images, a standard error of .01 over images; Satterthwaite's test has 1.2 to 7 times the level.

    A share of the variance over images is of seeds and images together, and so in the variance between seeds, too.
    Counted twice, equal methods would differ in less than 1% with a share of .9, if seeds alone have no variance.
    """
    rng, n = np.random.default_rng(0), 8_000
    images, both = (0.01 * share**0.5 for share in (1 - together, together))
    seeds = rng.normal(0.0, images, (n, 1)) + rng.normal(0.0, (of_seeds**2 + 3 * both**2) ** 0.5, (n, 3))
    of_images = 0.01**2 * rng.chisquare(99, n) / 99
    rejected = 0
    for value, by_seed in zip(of_images, seeds, strict=True):
        found = over_retrained_seeds(Variance(value=float(value), df=99.0, n=100.0), by_seed.tolist(), both**2)
        rejected += abs(by_seed.mean()) > found.quantile(level / 2) * found.value**0.5
    assert rejected <= n * level + 3 * (n * level * (1 - level)) ** 0.5  # 3 Monte Carlo errors
    assert rejected >= 0.2 * n * level


def test_nothing_varies_in_a_mean_of_constants() -> None:
    still = Variance(value=0.0, df=4.0, n=5.0)
    assert numbers(mean_variance([still, still])) == pytest.approx((0.0, 4.0, 10.0))
