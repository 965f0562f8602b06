import numpy as np
import pytest

from dualread.stats.bootstrap import ImageDraws, image_cluster_interval, image_cluster_replicates, interval
from dualread.stats.kernels import auroc_kernel, mean_kernel


def draws(n_images=12, replicates=50, names=("study", "slake", "test")):
    return ImageDraws(names=names, image_ids=tuple(f"image-{k:02d}" for k in range(n_images)), replicates=replicates)


def test_every_replicate_draws_as_many_images_as_there_are():
    weights = np.concatenate(list(draws().weights()))
    assert weights.shape == (50, 12)
    assert (weights.sum(axis=1) == 12).all()


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


def test_draws_are_a_function_of_the_names():
    one, same, other = (
        next(draws(names=names).weights()) for names in [("a", "b", "c"), ("a", "b", "c"), ("a", "b", "d")]
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_image_ids_must_be_sorted_and_distinct():
    for ids in [("b", "a"), ("a", "a")]:
        with pytest.raises(ValueError, match="distinct sorted"):
            ImageDraws(names=("x",), image_ids=ids, replicates=1)


def test_cluster_of():
    assert draws(3).cluster_of(["image-02", "image-00", "image-02"]).tolist() == [2, 0, 2]
    with pytest.raises(ValueError, match="'elsewhere' is not in the manifest's 3 images"):
        draws(3).cluster_of(["elsewhere"])


def test_interval_by_hand():
    # 0..40: the 2.5th percentile lies at 0.025 * 40 = 1, the 97.5th at 39
    found = interval(np.arange(41.0))
    assert (found.low, found.high, found.n_undefined) == (1.0, 39.0, 0)


def test_undefined_replicates_are_counted_and_left_out():
    found = interval(np.array([0.5, np.nan, 0.5]))
    assert (found.low, found.high, found.n_replicates, found.n_undefined) == (0.5, 0.5, 3, 1)
    nothing = interval(np.array([np.nan]))
    assert (nothing.low, nothing.high, nothing.n_undefined) == (None, None, 1)


def test_a_method_against_itself_differs_by_exactly_zero():
    generator = np.random.default_rng(1)
    cluster, confidence, correct = generator.integers(0, 12, 60), generator.random(60), generator.random(60) < 0.6
    order = generator.permutation(60)
    one = auroc_kernel(confidence, correct, cluster, 12)
    other = auroc_kernel(confidence[order], correct[order], cluster[order], 12)
    found = image_cluster_replicates({"one": one, "other": other}, draws())
    assert (found["one"] - found["other"] == 0).all()


def test_one_image_gives_a_point():
    confidence, correct, cluster = np.array([0.9, 0.1]), np.array([True, False]), np.zeros(2, dtype=int)
    found = image_cluster_interval({"auroc": auroc_kernel(confidence, correct, cluster, 1)}, draws(1))["auroc"]
    assert (found.low, found.high, found.n_undefined) == (1.0, 1.0, 0)


def test_no_replicates_and_no_images():
    kernel = mean_kernel(np.array([1.0]), np.array([0]), 1)
    assert image_cluster_interval({"m": kernel}, draws(1, replicates=0))["m"].low is None
    assert image_cluster_interval({"m": kernel}, draws(0))["m"].n_replicates == 0


def test_coverage_of_a_mean_of_independent_images():
    # the 95% interval of a mean of 400 independent images is close to mean +- 1.96 sd / 20
    values = np.random.default_rng(2).normal(size=400)
    kernel = mean_kernel(values, np.arange(400), 400)
    resamples = ImageDraws(names=("x",), image_ids=tuple(f"{k:03d}" for k in range(400)), replicates=4000)
    found = image_cluster_interval({"mean": kernel}, resamples)["mean"]
    half = 1.96 * values.std() / 20
    assert found.low == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.15 * half)
