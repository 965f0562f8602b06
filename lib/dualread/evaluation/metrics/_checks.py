"""The checks that all metrics share: what an input array must look like."""

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError


def checked_confidence(confidence: npt.ArrayLike, *, name: str = "confidence") -> np.ndarray:
    """Return `confidence` as float64 [n].

    Raises:
        ValueError: It is not one-dimensional, or holds NaN or a value outside [0, 1]; the message names the row.
    """
    array = np.asarray(confidence, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name}: shape {array.shape}, expected one dimension [n].")
    outside = ~((array >= 0.0) & (array <= 1.0))  # also true for NaN
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"{name}: row {row} is {array[row]}, expected a probability in [0, 1].")
    return array


def checked_correct(correct: npt.ArrayLike, *, name: str = "correct") -> np.ndarray:
    """Return `correct` as bool [n]; the integers 0 and 1 are accepted, floats are not, because NaN would become True.

    Raises:
        ValueError: It is not one-dimensional, or not boolean.
    """
    array = np.asarray(correct)
    if array.ndim != 1:
        raise ValueError(f"{name}: shape {array.shape}, expected one dimension [n].")
    if array.size == 0 or array.dtype == np.bool_:
        return array.astype(np.bool_)
    if not np.issubdtype(array.dtype, np.integer) or not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name}: dtype {array.dtype}, expected booleans (or integers that are 0 or 1).")
    return array.astype(np.bool_)


def checked(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Check both arrays, and that they have the same length and are not empty.

    Returns:
        `confidence` as float64 [n] and `correct` as bool [n].

    Raises:
        ValueError: An array is malformed, or the lengths differ.
        UndefinedMetricError: There are no rows.
    """
    checked_pair = checked_confidence(confidence), checked_correct(correct)
    same_length(confidence=checked_pair[0], correct=checked_pair[1])
    not_empty(checked_pair[1])
    return checked_pair


def same_length(**arrays: np.ndarray) -> None:
    """Check that all `arrays` have the same length.

    Raises:
        ValueError: They have not; the message names the lengths.
    """
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"lengths differ: {lengths}. Expected one value per row in every array.")


def not_empty(array: np.ndarray) -> None:
    """Check that `array` has rows.

    Raises:
        UndefinedMetricError: It has none.
    """
    if len(array) == 0:
        raise UndefinedMetricError("no rows")


def both_classes(correct: np.ndarray) -> None:
    """Check that there are correct and wrong rows in bool [n].

    Raises:
        UndefinedMetricError: All rows are correct, or all are wrong.
    """
    if correct.all() or not correct.any():
        raise UndefinedMetricError(
            f"one class only: all {len(correct)} rows are {'' if correct.all() else 'in'}correct"
        )
