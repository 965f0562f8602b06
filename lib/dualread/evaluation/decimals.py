"""Numbers of any precision as the float64 numbers that their authors meant: a float32 .9 is .9.

torch, many data frames and many files keep numbers as float32. Its .9 is 0.89999998, so that it would not reach a
threshold of .9, would be in another bin than the float64 .9, and would not tie with it.
"""

from functools import lru_cache
from typing import Any

import numpy as np

_EXACT = 13  # up to 10**13, and down to 10**-13 with nine digits
_LONG = 15  # digits: more than the shares of up to 2,000 draws have that are float32, too


def as_float64(values: Any, *, name: str = "values") -> np.ndarray:
    """Return numbers as float64; float32, float16 and bfloat16 as the shortest decimal that rounds to each of them.

    The order and the ties of numbers of one precision stay, and none moves by more than half the distance to its
    neighbours. For numbers that were not written as short decimals, such as log-probabilities, this is harmless: it is
    less than what their own rounding did. `values` are an array of any shape, a list, a data frame's column, or a torch
    tensor; integers and booleans are numbers, and NaN stays.

    Raises:
        ValueError: A value is masked, missing or no number; the message names its row.
    """
    if isinstance(values, list | tuple):
        if len({type(value) for value in values}) > 1:
            return _one_by_one(np.fromiter(values, dtype=object, count=len(values)), name)
    elif str(getattr(values, "dtype", "")) == "torch.bfloat16":
        bits = values.detach().cpu().float().numpy().view(np.uint32) >> 16  # numpy has no such numbers
        return _of_bits(bits.astype(np.uint16), "bfloat16")
    array = as_array(values, name=name)
    if array.dtype.kind == "f":
        array = array.astype(array.dtype.newbyteorder("="), copy=False)  # some files have the other order of bytes
    if array.dtype == np.float32:
        return _of_float32(array.ravel()).reshape(array.shape)
    if array.dtype.name in ("float16", "bfloat16"):  # the latter is a type of JAX's package ml_dtypes
        return _of_bits(np.ascontiguousarray(array).view(np.uint16), array.dtype.name)
    if array.dtype == object:
        return _one_by_one(array, name)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: dtype {array.dtype}, expected numbers.")
    return array.astype(np.float64)


def as_number(value: Any, *, name: str) -> float:
    """Return one number as `as_float64` does, and refuse anything else by a ValueError."""
    array = as_float64(value, name=name)
    if array.size != 1:
        raise ValueError(f"{name}: {array.size} values, expected one number.")
    return float(array.reshape(()))


def once_float32(values: np.ndarray) -> np.ndarray | None:
    """Return what float64 numbers meant that had been float32: .9 for 0.8999999761581421; None where they had not.

    Python and files keep a float32 so once it is a plain number. All values have to be numbers that a float32 can be,
    and one at least so long as no short decimal or fraction is: of other numbers, one in 5 * 10**8 is a float32.
    """
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    written = (f"{value!r}".lower().partition("e")[0].replace(".", "") for value in values.tolist())
    has_long = any(len(digits.lstrip("-0").rstrip("0")) >= _LONG for digits in written)  # significant digits
    if not np.array_equal(narrow, values) or not has_long:
        return None
    return as_float64(narrow)


def as_array(values: Any, *, name: str) -> np.ndarray:
    """Return values as an array, also a tensor that is on a GPU or needs gradients; masked values are refused."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argmax(np.ma.getmaskarray(values)))
        raise ValueError(f"{name}: row {row} is masked. Drop the masked rows, or give them values.")
    detach = getattr(values, "detach", None)
    try:
        return np.asarray(values if detach is None else detach().cpu())
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name}: {type(values).__name__} is no array of numbers ({error}).") from error


def _of_float32(array: np.ndarray) -> np.ndarray:
    """Return the shortest decimal of each float32 number, float64 [n]; of several, the one that is nearest to it."""
    # Nine digits are always enough. Numpy's texts would do, too, but one of its options for printing shortens them.
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = array.astype(np.float64)
        power = np.floor(np.log10(np.abs(exact)))
    shortest = np.full(exact.shape, np.nan)
    # Where float64 holds the powers of ten exactly, each decimal is rounded once, as a text would be.
    unsettled = np.flatnonzero((power >= -_EXACT) & (power <= _EXACT))
    for n_digits in range(1, 10):
        shift = n_digits - 1 - power[unsettled]
        up, down = 10.0 ** np.maximum(shift, 0), 10.0 ** np.maximum(-shift, 0)
        decimal = np.rint(exact[unsettled] * up / down) * down / up
        rounds = decimal.astype(np.float32) == array[unsettled]
        shortest[unsettled[rounds]] = decimal[rounds]
        unsettled = unsettled[~rounds]
    for row in np.flatnonzero(np.isnan(shortest)):
        shortest[row] = float(np.format_float_scientific(array[row], unique=True))
    return shortest


def _one_by_one(array: np.ndarray, name: str) -> np.ndarray:
    """Return objects as numbers, such as a float32 beside a Python float, which would turn it into 0.89999998."""
    numbers = np.empty(array.shape)
    for row, value in enumerate(array.flat):
        is_number = isinstance(value, int | float) or hasattr(value, "dtype") or hasattr(value, "as_integer_ratio")
        if not is_number:
            raise ValueError(f"{name}: row {row} is {value!r} ({type(value).__name__}), expected a number.")
        numbers.flat[row] = as_number(value, name=f"{name}: row {row}") if hasattr(value, "dtype") else float(value)
    return numbers


def _of_bits(bits: np.ndarray, precision: str) -> np.ndarray:
    magnitude = _table(precision)[bits & 0x7FFF]
    return np.where(bits >> 15, -magnitude, magnitude)


@lru_cache(maxsize=2)
def _table(precision: str) -> np.ndarray:
    """Return the shortest decimal of each number of 16 bits without its sign, float64 [2**15]."""
    bits = np.arange(2**15, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        exact = bits.view(np.float16) if precision == "float16" else (bits.astype(np.uint32) << 16).view(np.float32)
        exact = exact.astype(np.float64)
    shortest, n = exact.copy(), int(np.count_nonzero(np.isfinite(exact)))  # infinity and NaN come last
    middle = (exact[1:n] + exact[: n - 1]) / 2
    lowest, highest = np.append(-1.0, middle), np.append(middle, exact[n - 1])
    for n_digits in range(5, 0, -1):  # more are never needed
        decimal = np.array([float(f"{value:.{n_digits}g}") for value in exact[:n]])
        rounds = (decimal > lowest) & (decimal < highest)
        shortest[:n][rounds] = decimal[rounds]
    return shortest
