import tracemalloc

import numpy as np
import pytest

from dualread.evaluation.statistics.bootstrap import ClusterDraws, chunk_of, image_cluster_replicates, interval
from dualread.evaluation.statistics.kernels import auroc_kernel, mean_kernel
from dualread.seeding import generator


def draws(n_images=12, replicates=50, names=("study", "slake", "test")):
    return ClusterDraws(
        names=names, cluster_ids=tuple(f"image-{k:02d}" for k in range(n_images)), replicates=replicates
    )


def interval_of(kernel, draws):
    return interval(image_cluster_replicates({"metric": kernel}, draws)["metric"])


def test_a_replicate_counts_the_images_that_a_generator_draws_with_replacement():
    (weights,), stream = draws(replicates=3).weights(), generator("study", "slake", "test", "bootstrap")
    for replicate in weights.T:
        assert replicate.tolist() == np.bincount(stream.integers(0, 12, size=12), minlength=12).tolist()


@pytest.mark.parametrize("n_images", [1, 300])
def test_many_draws_of_one_image_are_counted(n_images, monkeypatch):
    class Stream:
        def integers(self, low, high, size):
            return np.full(size, low)

    monkeypatch.setattr("dualread.evaluation.statistics.bootstrap.generator", lambda *names: Stream())
    (weights,) = ClusterDraws(
        names=("x",), cluster_ids=tuple(f"{k:03d}" for k in range(n_images)), replicates=2
    ).weights()
    assert weights[0].tolist() == [n_images, n_images]  # more than the 255 that a byte holds


@pytest.mark.parametrize("chunk", [1, 7, 49, 50, 1000])
def test_draws_and_replicates_do_not_depend_on_the_chunk(chunk):
    generator = np.random.default_rng(0)
    cluster, confidence = generator.integers(0, 12, 40), generator.random(40)
    correct = generator.random(40) < 0.5
    kernels = {
        "auroc": auroc_kernel(confidence, correct, cluster, 12),
        "brier": mean_kernel((confidence - correct) ** 2, cluster, 12),
    }
    whole, parts = (image_cluster_replicates(kernels, draws(), chunk=size) for size in (50, chunk))
    for name in kernels:
        assert whole[name].tobytes() == parts[name].tobytes()


@pytest.mark.parametrize("chunk", [1, 7, 50])
def test_draws_too_large_to_be_kept_are_the_same_ones(monkeypatch, chunk):
    (kept,) = draws().weights()
    monkeypatch.setattr("dualread.evaluation.statistics.bootstrap._KEPT_BYTES", 0)
    monkeypatch.setattr("dualread.evaluation.statistics.bootstrap._drawn", None)
    for _ in range(2):
        again = list(draws().weights(chunk=chunk))
        assert [part.shape[1] for part in again[:-1]] == [chunk] * (len(again) - 1)
        assert np.concatenate(again, axis=1).tobytes() == kept.tobytes()


def test_of_many_rows_fewer_replicates_are_worked_on_at_once():
    sizes = (0, 1, 32, 1061, 30_000, 2**20, 2**24, 2**30)
    chunks = [chunk_of(n) for n in sizes]
    assert chunks == sorted(chunks, reverse=True)
    assert chunks[-1] == 1
    assert all(n * chunk * 8 <= 2**27 for n, chunk in zip(sizes, chunks, strict=True) if chunk > 1)


def test_much_work_reports_its_progress(monkeypatch):
    counted = []

    def track(items, total, label):
        for item in items:
            yield item
            counted.append((item + 1, total, label))

    kernels = {"mean": mean_kernel(np.arange(12.0), np.arange(12), 12)}
    monkeypatch.setattr("dualread.evaluation.statistics.bootstrap.track", track)
    quiet = image_cluster_replicates(kernels, draws(), chunk=7)
    assert not counted  # little work
    monkeypatch.setattr("dualread.evaluation.statistics.bootstrap._LONG", 0)
    assert image_cluster_replicates(kernels, draws(), chunk=7)["mean"].tobytes() == quiet["mean"].tobytes()
    assert counted == [(k, 50, "resamples") for k in range(1, 51)]


def test_memory_grows_with_the_chunk_and_not_with_the_replicates():
    generator = np.random.default_rng(0)
    confidence, cluster = generator.random(1000), generator.integers(0, 100, 1000)
    kernels = {"auroc": auroc_kernel(confidence, generator.random(1000) < 0.5, cluster, 100)}

    def peak(replicates, chunk):
        tracemalloc.start()
        image_cluster_replicates(kernels, draws(100, replicates, (str(replicates), str(chunk))), chunk=chunk)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    # 1,900 replicates more: their weights in bytes and their values, 1900 * (100 + 8 + 8) = 0.2 MB; a temporary with
    # all of them would be 2000 * 500 * 8 = 8 MB
    assert peak(2000, 100) - peak(100, 100) < 1e6
    assert peak(2000, 2000) > 8e6


def test_cluster_of():
    assert draws(3).cluster_of(["image-02", "image-00", "image-02"]).tolist() == [2, 0, 2]


def test_interval_by_hand():
    # 0..40: the 2.5th percentile lies at 0.025 * 40 = 1, the 97.5th at 39
    found = interval(np.arange(41.0))
    assert (found.low, found.high, found.n_undefined) == (1.0, 39.0, 0)


def test_undefined_replicates_are_counted_and_left_out():
    found = interval(np.array([0.5, np.nan, 0.5]))
    assert (found.low, found.high, found.n_replicates, found.n_undefined) == (0.5, 0.5, 3, 1)
    nothing = interval(np.array([np.nan]))
    assert (nothing.low, nothing.high, nothing.n_undefined) == (None, None, 1)


def test_no_replicates_and_no_images():
    kernel = mean_kernel(np.array([1.0]), np.array([0]), 1)
    assert interval_of(kernel, draws(1, replicates=0)).low is None
    assert interval_of(kernel, draws(0)).n_replicates == 0
