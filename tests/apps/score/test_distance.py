"""How unlike the validation questions a prompt is: distances by definition, and how often percentiles are exceeded."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

from dualread.apps.score import distance
from dualread.apps.score.bundle import DISTANCES
from dualread.apps.score.distance import StateDistances
from dualread.artifacts.tensors import read_file, read_tensors, write_tensors
from dualread.errors import ArtifactError
from dualread.seeding import derive_seed


def drawn(rng, n, d=12):
    return rng.normal(size=(n, d)) @ np.diag(np.linspace(0.5, 3, d)) + 2


def test_distances_are_those_of_the_shrunk_covariance(tmp_path):
    rng = np.random.default_rng(0)
    for n, d in ((80, 12), (60, 200)):  # more states than numbers, and fewer
        states, names = drawn(rng, n, d).astype(np.float32), [f"image {k // 2}" for k in range(n)]
        fitted = StateDistances.fit(states, names)
        half = np.array([derive_seed("state distances", name) % 2 == 0 for name in names])
        assert all(half[::2] == half[1::2])  # both questions about an image are in one half
        first = states[half].astype(np.float64)
        precision = np.linalg.inv(ledoit_wolf(first)[0])
        for x in (*states[~half][:3], *drawn(rng, 3, d)):
            expected = np.sqrt((x - first.mean(0)) @ precision @ (x - first.mean(0)))
            assert fitted._distances(x[None])[0] == pytest.approx(expected, rel=1e-4)
            at_most = np.count_nonzero(fitted.distances <= expected + 1e-4 * expected)
            assert fitted.percentiles(x[None])[0] == pytest.approx(100 * at_most / (~half).sum(), abs=5)
        m = (~half).sum()  # each of these is at most as far as itself: the k-th of m has the percentile 100 k / m
        assert np.sort(fitted.percentiles(states[~half])) == pytest.approx(100 * np.arange(1, m + 1) / m)
        distance.write(tmp_path, fitted)
        again = StateDistances.from_file(read_file(tmp_path / DISTANCES), d)
        assert np.array_equal(again.percentiles(states), fitted.percentiles(states))
    with pytest.raises(ArtifactError, match="states with 7 numbers"):
        StateDistances.from_file(read_file(tmp_path / DISTANCES), 7)
    write_tensors(tmp_path / DISTANCES, {**read_tensors(tmp_path / DISTANCES), "new": np.zeros(2)}, {})
    assert StateDistances.from_file(read_file(tmp_path / DISTANCES), d)  # of another version


def test_percentiles_of_like_states_are_even_and_others_are_unusual():
    rng = np.random.default_rng(1)
    states = drawn(rng, 800)
    fitted = StateDistances.fit(states, [str(k) for k in range(800)])
    like = fitted.percentiles(drawn(rng, 2000))
    assert np.mean(like > 90) == pytest.approx(0.1, abs=0.03)
    assert np.mean(like > 50) == pytest.approx(0.5, abs=0.06)
    shifted = fitted.percentiles(drawn(rng, 100) + 6 * np.eye(12)[0])  # where states vary least
    assert shifted.min() == 100
    assert distance.unusual(shifted[0])
    assert not distance.unusual(50.0)
    assert not distance.unusual(None)


def test_too_few_states_or_equal_ones_say_nothing():
    names = [str(k) for k in range(60)]
    assert StateDistances.fit(np.ones((60, 4)), names) is None
    assert StateDistances.fit(np.random.default_rng(0).normal(size=(60, 4)), ["one patient"] * 60) is None
