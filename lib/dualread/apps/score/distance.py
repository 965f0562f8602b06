"""How far a prompt's state lies from those of the validation questions, on which thresholds were chosen.

The Mahalanobis distance of h_pre, with the covariance of one half of the validation images, shrunk as Ledoit and Wolf
(2004) say. The states of the other half, which had no part in it, say how usual a distance is: the percentile of a new
one is the share of theirs, in percent, that are at most as large. It says that a question or an image is unlike what
readers were judged on, not that an answer is wrong.

Reference: Lee et al., A simple unified framework for detecting out-of-distribution samples, NeurIPS 2018.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dualread.apps.score.bundle import DISTANCES, write_shared
from dualread.artifacts.tensors import TensorFile
from dualread.errors import ArtifactError
from dualread.seeding import derive_seed

_FEWEST = 20  # states in each half; the percentiles of fewer say little
_MOST = 1000  # states that the covariance comes from, because the file holds as many vectors
_UNUSUAL = 99.0  # above this percentile, a note says it


@dataclass(frozen=True, kw_only=True)
class StateDistances:
    """The states of validation questions.

    Attributes:
        mean: Of one half of them, float32 [D].
        directions: Orthonormal directions in which they vary, float32 [r, D].
        weights: By how much the square of a state's part in each direction counts, float64 [r].
        rest: By how much the square of the other part counts, float64 [1].
        distances: Those of the other half, ascending, float64 [m].
    """

    mean: np.ndarray
    directions: np.ndarray
    weights: np.ndarray
    rest: np.ndarray
    distances: np.ndarray

    @classmethod
    def fit(cls, states: np.ndarray, clusters: Sequence[str]) -> "StateDistances | None":
        """Return what the states h_pre [n, D] say; None where there are too few, or all are equal.

        Images of one of the `clusters` are in one half.
        """
        from sklearn.covariance import ledoit_wolf_shrinkage

        is_fitted = np.array([derive_seed("state distances", name) % 2 == 0 for name in clusters], dtype=bool)
        first = states[is_fitted][:_MOST].astype(np.float64)
        if min(len(first), np.count_nonzero(~is_fitted)) < _FEWEST:
            return None
        mean = first.mean(axis=0)
        _, sizes, directions = np.linalg.svd(first - mean, full_matrices=False)
        variances, share = sizes**2 / len(first), ledoit_wolf_shrinkage(first)
        usual = share * variances.sum() / states.shape[1]
        if not usual > 0:
            return None
        weights = 1 / ((1 - share) * variances + usual)
        fitted = cls(
            mean=mean.astype(np.float32),
            directions=directions.astype(np.float32),
            weights=weights,
            rest=np.array([1 / usual]),
            distances=np.zeros(0),
        )
        return cls(**{**vars(fitted), "distances": np.sort(fitted._distances(states[~is_fitted]))})

    @classmethod
    def from_file(cls, file: TensorFile, width: int) -> "StateDistances":
        """Return what `write` wrote; an ArtifactError says that it is damaged, or of states of another width."""
        tensors = {name: values for name, values in file.tensors.items() if name in cls.__annotations__}
        r, m = (tensors[name].size if name in tensors else 0 for name in ("weights", "distances"))
        expected = {"mean": (width,), "directions": (r, width), "weights": (r,), "rest": (1,), "distances": (m,)}
        shapes = {name: values.shape for name, values in tensors.items()}
        is_known = all(values.dtype.kind == "f" and np.isfinite(values).all() for values in tensors.values())
        if shapes != expected or m == 0 or not is_known:
            raise ArtifactError(
                f"{file.path}: its tensors are {shapes}. Expected finite numbers of states with {width} numbers."
                " Export the bundle again."
            )
        return cls(**tensors)

    def percentiles(self, states: np.ndarray) -> np.ndarray:
        """Return the percentile of each state [n, D], in [0, 100]: of a state that is like none, 100."""
        at_most = np.searchsorted(self.distances, self._distances(states), side="right")
        return 100.0 * at_most / len(self.distances)

    def _distances(self, states: np.ndarray) -> np.ndarray:
        x = states.astype(np.float64) - self.mean
        parts = np.einsum("nd,rd->nr", x, self.directions.astype(np.float64)) ** 2
        beyond = np.maximum((x**2).sum(axis=1) - parts.sum(axis=1), 0.0)
        return np.sqrt(parts @ self.weights + beyond * self.rest[0])


def unusual(percentile: float | None) -> tuple[str, ...]:
    """Return a note where a prompt is unlike almost all validation questions."""
    if percentile is None or percentile <= _UNUSUAL:
        return ()
    return (
        "unlike what this reader was judged on: the model's state after the prompt lies farther out than those of"
        f" {percentile:.1f}% of the validation questions",
    )


def write(folder: Path, fitted: StateDistances) -> None:
    """Write what is known of validation states into the bundle in `folder`."""
    write_shared(folder / DISTANCES, vars(fitted), {})
