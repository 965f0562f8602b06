"""Each kernel against its metric on the sample with every row repeated as often as its image was drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import UndefinedMetricError
from dualread.metrics.accuracy import accuracy
from dualread.metrics.calibration_error import bins, brier, ece
from dualread.metrics.discrimination import auroc
from dualread.metrics.selective import aurc, hce
from dualread.stats import kernels
from tests.metrics.samples import cells

N_IMAGES = 5


def build(confidence, correct, cluster):
    return {
        "auroc": (auroc, kernels.auroc_kernel(confidence, correct, cluster, N_IMAGES)),
        "aurc": (aurc, kernels.aurc_kernel(confidence, correct, cluster, N_IMAGES)),
        "brier": (brier, kernels.mean_kernel((confidence - correct) ** 2, cluster, N_IMAGES)),
        "ece": (ece, kernels.ece_kernel(confidence, correct, bins(confidence), cluster, N_IMAGES)),
        "hce": (hce, kernels.mean_kernel(((confidence >= 0.9) & ~correct).astype(float), cluster, N_IMAGES)),
        "accuracy": (lambda _, z: accuracy(z), kernels.mean_kernel(correct.astype(float), cluster, N_IMAGES)),
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
        values = kernel(weights)
        expected = [literal(metric, confidence, correct, cluster, row) for row in weights]
        assert values == pytest.approx(expected, abs=1e-12, nan_ok=True), name
        assert shuffled[name][1](weights).tobytes() == values.tobytes(), name


@given(cells)
def test_unit_weights_give_the_metric_itself(cell):
    confidence, correct = cell
    cluster = np.arange(len(correct)) % N_IMAGES
    for name, (metric, kernel) in build(confidence, correct, cluster).items():
        expected = literal(metric, confidence, correct, cluster, np.ones(N_IMAGES))
        assert kernel(np.ones((1, N_IMAGES)))[0] == pytest.approx(expected, abs=1e-12, nan_ok=True), name


def test_no_rows_is_undefined_in_every_replicate():
    nothing, labels, cluster = np.empty(0), np.empty(0, dtype=bool), np.empty(0, dtype=np.int64)
    for name, (_, kernel) in build(nothing, labels, cluster).items():
        assert np.isnan(kernel(np.ones((3, N_IMAGES)))).all(), name


def test_a_cluster_beyond_the_draws_is_refused():
    with pytest.raises(ValueError, match=r"expected 0\.\.1"):
        kernels.auroc_kernel(np.array([0.1, 0.2]), np.array([True, False]), np.array([0, 2]), 2)
