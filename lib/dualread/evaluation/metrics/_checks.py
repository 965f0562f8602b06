"""The checks that all metrics share: what an input array must look like."""

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.decimals import as_array, as_float64


def checked_confidence(confidence: npt.ArrayLike, *, name: str = "confidence") -> np.ndarray:
    """Return `confidence` as float64 [n]; a float32 .9 is .9, see `decimals.as_float64`.

    It is refused, with the row, if a value is no number in [0, 1], such as NaN, a missing or a masked value.
    """
    array = as_float64(confidence, name=name)
    if array.ndim != 1:
        raise ValueError(f"{name}: shape {array.shape}, expected one dimension [n].")
    outside = ~((array >= 0.0) & (array <= 1.0))  # also true for NaN
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"{name}: row {row} is {array[row]}, expected a probability in [0, 1].")
    return array


def checked_correct(correct: npt.ArrayLike, *, name: str = "correct") -> np.ndarray:
    """Return `correct` as bool [n]; the integers 0 and 1 are accepted, floats are not: NaN would become True."""
    array = as_array(correct, name=name)
    if array.ndim != 1:
        raise ValueError(f"{name}: shape {array.shape}, expected one dimension [n].")
    if array.size == 0 or array.dtype == np.bool_:
        return array.astype(np.bool_)
    if array.dtype == object:
        for row, value in enumerate(array):
            if not isinstance(value, int | np.bool_ | np.integer):
                raise ValueError(f"{name}: row {row} is {value!r}, expected True or False (or 1 or 0).")
        array = np.array(array.tolist(), dtype=np.int64)
    if not np.issubdtype(array.dtype, np.integer) or not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name}: dtype {array.dtype}, expected booleans (or integers that are 0 or 1).")
    return array.astype(np.bool_)


def checked(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64 [n] and bool [n]; they have to be well formed, of one length, and not empty."""
    checked_pair = checked_confidence(confidence), checked_correct(correct)
    same_length(confidence=checked_pair[0], correct=checked_pair[1])
    not_empty(checked_pair[1])
    return checked_pair


def checked_groups(values: npt.ArrayLike, *, name: str) -> np.ndarray:
    """Return a number for the value of every row, int64 [n]: the place of the value among the sorted distinct ones."""
    array = as_array(values, name=name)
    if array.ndim != 1:
        raise ValueError(f"{name}: shape {array.shape}, expected one dimension [n].")
    if array.dtype == object or array.dtype.kind == "f":
        for row, value in enumerate(array):
            if value is None or value != value or type(value).__name__ == "NAType":
                raise ValueError(f"{name}: row {row} is {value}, expected a value in every row.")
    return np.unique(array, return_inverse=True)[1]


def same_length(**arrays: np.ndarray) -> None:
    """Refuse arrays of different lengths by a ValueError that names these."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"lengths differ: {lengths}. Expected one value per row in every array.")


def not_empty(array: np.ndarray) -> None:
    """Raise an UndefinedMetricError if `array` has no rows."""
    if len(array) == 0:
        raise UndefinedMetricError("no rows")


def both_classes(correct: np.ndarray) -> None:
    """Raise an UndefinedMetricError if all rows are correct, or all are wrong; `correct` is bool [n]."""
    if correct.all() or not correct.any():
        raise UndefinedMetricError(
            f"one class only: all {len(correct)} rows are {'' if correct.all() else 'in'}correct"
        )
