"""Each kernel against its metric on the sample with every row repeated as often as its image was drawn."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics.calibration_error import brier
from dualread.evaluation.metrics.discrimination import accuracy, aupr_errors, auroc, fpr_at_95_tpr
from dualread.evaluation.metrics.selective import aurc, e_aurc, hce
from dualread.evaluation.statistics import kernels
from tests.evaluation.metrics.samples import cells

N_IMAGES = 5


def build(confidence, correct, cluster, n_images=N_IMAGES):
    ranks = kernels.rank_kernel(confidence, correct, cluster, n_images)
    errors = kernels.error_kernel(confidence, correct, cluster, n_images)
    return {
        "auroc": (auroc, kernels.auroc_kernel(confidence, correct, cluster, n_images)),
        "auroc beside aurc": (auroc, lambda weights: ranks(weights)[0]),
        "aurc": (aurc, lambda weights: ranks(weights)[1]),
        "e_aurc": (e_aurc, lambda weights: ranks(weights)[2]),
        "aupr_errors": (aupr_errors, lambda weights: errors(weights)[0]),
        "fpr_at_95_tpr": (fpr_at_95_tpr, lambda weights: errors(weights)[1]),
        "brier": (brier, kernels.mean_kernel((confidence - correct) ** 2, cluster, n_images)),
        "hce": (hce, kernels.mean_kernel(((confidence >= 0.9) & ~correct).astype(float), cluster, n_images)),
        "accuracy": (lambda _, z: accuracy(z), kernels.mean_kernel(correct.astype(float), cluster, n_images)),
    }


def literal(metric, confidence, correct, cluster, weights):
    repeats = weights[cluster].astype(int)
    try:
        return metric(np.repeat(confidence, repeats), np.repeat(correct, repeats))
    except UndefinedMetricError:
        return np.nan


@given(cells, st.integers(0, 2**16))
def test_a_kernel_is_its_metric_on_the_resampled_rows(cell, seed):
    confidence, correct = cell
    generator = np.random.default_rng(seed)
    cluster = generator.integers(0, N_IMAGES, len(correct))
    weights = generator.multinomial(N_IMAGES, [1 / N_IMAGES] * N_IMAGES, size=6).astype(float)
    order = generator.permutation(len(correct))
    shuffled = build(confidence[order], correct[order], cluster[order])
    for name, (metric, kernel) in build(confidence, correct, cluster).items():
        values = kernel(weights.T)
        expected = [literal(metric, confidence, correct, cluster, row) for row in weights]
        assert values == pytest.approx(expected, abs=1e-12, nan_ok=True), name
        assert shuffled[name][1](weights.T).tobytes() == values.tobytes(), name
        one_by_one = [kernel(np.ascontiguousarray(weights.T[:, k : k + 1])) for k in range(len(weights))]
        assert np.concatenate(one_by_one).tobytes() == values.tobytes(), name


def test_no_rows_is_undefined_in_every_replicate():
    nothing, labels, cluster = np.empty(0), np.empty(0, dtype=bool), np.empty(0, dtype=np.int64)
    for name, (_, kernel) in build(nothing, labels, cluster).items():
        assert np.isnan(kernel(np.ones((N_IMAGES, 3)))).all(), name


def slake_sized(seed=0, n=1061, n_images=96):
    generator = np.random.default_rng(seed)
    confidence = np.where(generator.random(n) < 0.3, 0.9, generator.random(n))  # some tied, most not
    weights = generator.multinomial(n_images, [1 / n_images] * n_images, size=64).astype(float)
    return confidence, generator.random(n) < confidence, generator.integers(0, n_images, n), weights


def test_nothing_but_a_replicates_own_weights_reaches_its_bits():
    confidence, correct, cluster, weights = slake_sized()
    order = np.random.default_rng(1).permutation(len(correct))
    shuffled = build(confidence[order], correct[order], cluster[order], 96)
    for name, (_, kernel) in build(confidence, correct, cluster, 96).items():
        whole = kernel(np.ascontiguousarray(weights.T)).tobytes()
        assert shuffled[name][1](np.ascontiguousarray(weights.T)).tobytes() == whole, name
        for size in (1, 5, 63):
            parts = [kernel(np.ascontiguousarray(weights[k : k + size].T)) for k in range(0, 64, size)]
            assert np.concatenate(parts).tobytes() == whole, name
        for threads in (1, 2):
            with threadpool_limits(threads):
                assert kernel(np.ascontiguousarray(weights.T)).tobytes() == whole, name


@given(cells, st.integers(0, 2**16))
def test_both_ways_to_count_ranks_have_the_same_bits(cell, seed):
    confidence, correct = cell
    generator = np.random.default_rng(seed)
    cluster = generator.integers(0, N_IMAGES, len(correct))
    weights = generator.multinomial(N_IMAGES, [1 / N_IMAGES] * N_IMAGES, size=6).astype(float).T
    found = []
    for dense_blocks in (0, 2**13):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "_DENSE_BLOCKS", dense_blocks)
            found.append(kernels.rank_kernel(confidence, correct, cluster, N_IMAGES)(weights))
    assert found[0].tobytes() == found[1].tobytes()


def test_one_image_with_nearly_all_rows_takes_no_memory_for_all_its_possible_draws():
    """All draws of all images could hit it: 10**5 images times 10**4 rows would be a table of 8 GB."""
    confidence, cluster = np.linspace(0, 1, 110_000), np.append(np.arange(10**5), np.zeros(10**4, dtype=int))
    correct = np.random.default_rng(0).random(len(cluster)) < confidence
    tracemalloc.start()
    found = kernels.rank_kernel(confidence, correct, cluster, 10**5)(np.ones((10**5, 1)))
    assert tracemalloc.get_traced_memory()[1] < 5e7
    tracemalloc.stop()
    expected = [auroc(confidence, correct), aurc(confidence, correct), e_aurc(confidence, correct)]
    assert found[:, 0] == pytest.approx(expected, abs=1e-9)


def test_replicates_in_parts_have_the_same_bits(monkeypatch):
    confidence, correct, cluster, weights = slake_sized()
    kernel = kernels.error_kernel(confidence, correct, cluster, 96)
    whole = kernel(weights.T).tobytes()
    monkeypatch.setattr(kernels, "_MOST_DRAWN", 5 * len(correct))
    assert kernel(weights.T).tobytes() == whole


def test_the_best_order_has_an_excess_of_exactly_0_and_one_tie_has_not():
    n, cluster = 400, np.arange(400) % 7
    confidence = np.linspace(1, 0, n)
    for n_right in (1, 150, 399):
        correct, tied = np.arange(n) < n_right, np.where(np.arange(n) == n_right, confidence[n_right - 1], confidence)
        assert kernels.rank_kernel(confidence, correct, cluster, 7)(np.ones((7, 1)))[2] == 0.0
        excess = kernels.rank_kernel(tied, correct, cluster, 7)(np.ones((7, 1)))[2]
        assert excess == pytest.approx([0.5 / n_right / n])


def test_linear_kernel():
    # 2.5 + (2 - 1) * .5 + (0 - 1) * .25 + (1 - 1) * -1 = 2.75; images that are drawn once change nothing
    kernel = kernels.linear_kernel(2.5, np.array([0.5, 0.25, -1.0]))
    assert kernel(np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 1.0]])).tolist() == [2.75, 2.5]
    assert kernels.linear_kernel(2.5, np.zeros(2))(np.array([[2.0], [0.0]])).tolist() == [2.5]
