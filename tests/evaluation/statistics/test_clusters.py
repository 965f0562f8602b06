"""Uneven clusters: degrees of freedom by their matrix, variances by leaving rows out, and how often intervals cover."""

import numpy as np
import pytest

import dualread
from dualread.evaluation.metrics.discrimination import auroc
from dualread.evaluation.statistics.clusters import (
    Clusters,
    InEffect,
    degrees_of_freedom,
    effective_number,
    jackknife_kernel,
)
from dualread.evaluation.statistics.kernels import auroc_kernel, rank_kernel
from dualread.evaluation.statistics.proportion import share_interval

UNEVEN = {
    "Zipf": [200 // k for k in range(1, 31)],
    "2 of 50, 20 of 5": [50] * 2 + [5] * 20,
}
TOO_UNEVEN = {"100, 20 of 5": [100] + [5] * 20, "3 of 50, 50 of 1": [50] * 3 + [1] * 50}


@pytest.mark.parametrize("sizes", [[199, 1], [190] + [1] * 10, [7, 3, 3, 1], *UNEVEN.values(), *TOO_UNEVEN.values()])
def test_degrees_of_freedom_are_those_of_the_matrix(sizes):
    n = np.array(sizes, dtype=float)
    a = 1 / (1 - n / n.sum())
    b = np.sqrt(np.outer(a, a)) * (np.diag(n) - np.outer(n, n) / n.sum())
    assert degrees_of_freedom(n) == pytest.approx(np.trace(b) ** 2 / np.trace(b @ b), rel=1e-9)
    assert degrees_of_freedom(np.array([*sizes[::-1], 0])) == degrees_of_freedom(n)


def test_clusters_of_equal_size_count_as_so_many():
    assert effective_number(np.full(12, 7)) == pytest.approx(12, rel=1e-12)
    assert degrees_of_freedom(np.full(12, 7)) == pytest.approx(11, rel=1e-12)
    assert (degrees_of_freedom(np.array([5])), effective_number(np.zeros(3))) == (0.0, 0.0)
    # 3 and 1 rows: 4^2 / (9 + 1)
    assert effective_number(np.array([3, 1])) == pytest.approx(1.6)


def drawn(sizes, seed=0, correlation=0.3):
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(len(sizes)), sizes)
    parts = rng.normal(size=(2, len(sizes)))[:, image], rng.normal(size=(2, len(image)))
    latent, noise = np.sqrt(correlation) * parts[0] + np.sqrt(1 - correlation) * parts[1]
    return 1 / (1 + np.exp(-latent - noise)), latent > -0.4, image


def test_replicates_have_the_variance_of_leaving_out_each_image():
    confidence, correct, image = drawn(TOO_UNEVEN["100, 20 of 5"])
    sizes = np.bincount(image).astype(float)
    kernel = jackknife_kernel(auroc_kernel(confidence, correct, image, 21), sizes)
    left = np.array([auroc(confidence[image != k], correct[image != k]) for k in range(21)])
    whole = auroc(confidence, correct)
    for k in range(21):  # drawn once more than once
        change = float(kernel(np.ones((21, 1)) + np.eye(21)[:, [k]])[0]) - whole
        assert change == pytest.approx((whole - left[k]) * np.sqrt(20 / 21), abs=1e-12)
    both = jackknife_kernel(rank_kernel(confidence, correct, image, 21), sizes)
    weights = np.random.default_rng(1).multinomial(21, np.full(21, 1 / 21), 50).T.astype(float)
    assert both(weights).shape == (3, 50)
    assert both(weights)[0] == pytest.approx(kernel(weights), abs=1e-12)


def test_many_images_are_left_out_in_groups():
    confidence, correct, image = drawn([3000] + [1] * 2500)
    sizes = np.bincount(image).astype(float)
    kernel = auroc_kernel(confidence, correct, image, len(sizes))
    found = jackknife_kernel(kernel, sizes)
    change = np.array([float(found(np.ones((2501, 1)) + (np.arange(2501) == k)[:, None])[0]) for k in (0, 2500)])
    shift = float(kernel(np.ones((2501, 1)))[0]) - float(kernel((np.arange(2501) != 0)[:, None] * 1.0)[0])
    assert change[0] - float(found(np.ones((2501, 1)))[0]) == pytest.approx(shift * np.sqrt(999 / 1000), abs=1e-9)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ([199, 1], "1.01"),
        ([150] + [1] * 50, "51 images count as 1.77, expected 6"),
        (TOO_UNEVEN["100, 20 of 5"], "21 images count as 3.81"),
        (TOO_UNEVEN["3 of 50, 50 of 1"], "53 images count as 5.30"),
        ([9], "one image"),
    ],
)
def test_most_rows_about_few_images_have_no_interval_and_a_reason(sizes, reason):
    assert reason in InEffect.of(np.array(sizes)).reason
    confidence, correct, image = drawn(sizes)
    assert share_interval(correct, image) is None
    table = {"confidence": confidence, "correct": correct, "image_id": image.astype(str)}
    found = dualread.evaluate(table, replicates=200).metrics.filter(subset="all")
    rows = {row["metric"]: row for row in found.to_dicts()}
    for metric in ("accuracy", "brier", "auroc", "aurc", "hce90", "squared_calibration_error"):
        assert rows[metric]["low"] is None, metric
        if len(sizes) > 1:
            assert rows[metric]["reason"] == InEffect.of(np.array(sizes)).reason


@pytest.mark.parametrize(
    ("sizes", "is_uneven"),
    [
        ([4] * 3 + [1] * 37, True),  # 49^2 / 85 = 28.2, below three quarters of 40
        ([4] * 2 + [1] * 38, False),  # 46^2 / 70 = 30.2
        ([5] * 11 + [1] * 145, True),  # 200^2 / 420 = 95.2, below 100
        ([5] * 10 + [1] * 150, False),  # 200^2 / 400 = 100
        *(([100, 99], False), ([67, 67, 66], False), ([5] * 40, False), ([1] * 3, False)),
    ],
)
def test_images_are_uneven_below_three_quarters_of_their_number_and_below_100(sizes, is_uneven):
    assert InEffect.of(np.array(sizes)).is_uneven is is_uneven
    assert InEffect.of(np.array(sizes)).reason is None


@pytest.mark.parametrize("design", UNEVEN)
def test_intervals_of_shares_of_uneven_images_cover(design):
    """The variance of residuals with n - 1 degrees of freedom covers in 77 to 89% at .3."""
    rng, sizes, covered = np.random.default_rng(3), np.array(UNEVEN[design]), 0
    image = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(400):
        share = rng.beta(1.4, 0.9333, len(sizes))
        low, high = share_interval(rng.random(len(image)) < share[image], image)
        covered += low <= 0.6 <= high
    assert 0.92 <= covered / 400 < 0.999


def test_images_without_answers_have_a_place():
    images = Clusters.of(np.array([True, False, False]), np.array([0, 0, 1]), 4)
    assert (images.rows.tolist(), images.right.tolist()) == ([2, 1, 0, 0], [1, 0, 0, 0])


def test_uneven_images_with_the_rarer_kind_count_as_what_they_are_worth():
    rows = np.array([50.0, 50.0, *[1.0] * 30])
    images = Clusters(rows=rows, right=rows - np.array([4.0, 1.0, *[0.0] * 30]))
    assert images.in_effect.is_uneven
    assert images.df(100.0) == pytest.approx(25 / 17)  # wrong: (4 + 1)^2 / (16 + 1)
