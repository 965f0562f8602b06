"""Turn gray levels of up to 16 bits into 8, by what the file says about them and never by the range of one picture."""

import numpy as np

from dualread.errors import DataError
from dualread.schema.data import CtWindows

# A picture whose values stay below a quarter of 16 bits is dark, or has 14 bits or fewer.
DARK = 1 << 14
_FEW = 200  # one pixel in so many is a mark, a border or a defect, and no part of what the picture shows
_SHARE = 8  # a picture that uses less than this part of its range shows little
SAY_BITS = "`bits` of the data set, --bits, or bits= in Python"


def to_8_bits(values: np.ndarray, name: str, *, stated: int | None, given: int | None) -> tuple[np.ndarray, list[str]]:
    """Return gray levels [height, width] as 8 bits, and why little of them can be seen.

    0 becomes 0 and 2^n - 1 becomes 255, where n is the number of bits that count. So equal levels stay equal across
    images. n is what the file has `stated` (9 to 16). If it says nothing, n is what the user says (`given`), or 16 if
    the picture is bright enough for that. Values that all are multiples of 257 are 8 bits spread over 16, as most
    programs write them. A DataError refuses values that need more bits, and pictures that would be nearly black because
    nobody says n.
    """
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    bits = stated or given or 16
    if high >> bits:
        whose = "the file says" if stated else f"was given ({SAY_BITS})"
        raise DataError(f"{name}: gray values up to {high}, but {bits} bits {whose}. Correct the number of bits.")
    if stated is None and given is None and 0 < (end := upper_end(values)) < DARK and (values % 257).any():
        likely = next(n for n in (8, 10, 12, 14) if end < 1 << n)
        but, advice = "", f"Say it: {SAY_BITS}. {likely} would fit; 16 shows it dark, as it is."
        if high > end:
            but = f" but for {int((values > end).sum())} of {values.size} pixels up to {high}"
            advice = f"Set these to {(1 << likely) - 1} and say {likely}: {SAY_BITS}; 16 shows it dark, as it is."
        raise DataError(
            f"{name}: its 16-bit gray values end at {end}{but}, and the file does not say how many bits count: with all"
            f" 16 it would be nearly black. {advice}"
        )
    top = (1 << bits) - 1
    table = (np.arange(1 << bits, dtype=np.int64) * 510 + top) // (2 * top)  # v * 255 / top, rounded half up
    return table.astype(np.uint8)[values], little_contrast(low, high, top)


def upper_end(values: np.ndarray) -> int:
    """Return the largest value; that below the few brightest pixels, if these alone are bright enough for 16 bits."""
    if not values.size or values.max() < DARK:
        return int(values.max(initial=0))
    dark = values[values < DARK]
    return int(dark.max()) if (values.size - dark.size) * _FEW <= values.size else int(values.max())


def little_contrast(low: int, high: int, top: int) -> list[str]:
    """Return a doubt if a picture uses gray values from `low` to `high`, a small part of 0 to `top`."""
    few = low < high and (high - low) * _SHARE < top
    return [f"the picture has little contrast (gray values {low} to {high} of {top + 1})"] if few else []


def right_aligned(values: np.ndarray, bits: int) -> bool:
    """Return whether 16-bit values hold `bits` bits in their lower end, against the PNG standard.

    The standard has them scaled to the full range, so that the lower bits are zero or repeat the upper ones.
    """
    return not upper_end(values) >> bits and bool((values % (1 << (16 - bits)) > 1).any())


def through_windows(units: np.ndarray, windows: CtWindows) -> np.ndarray:
    """Return Hounsfield units seen through three windows, which give the colors, uint8 [..., 3], as for MedGemma 1.5.

    At or below the low end of a window is 0, at or above its high end 255, and between them levels rise evenly, in
    float32 and rounded half to even, as in the notebook, so that the same pixels come out.

    References:
        github.com/google-health/medgemma, notebooks/high_dimensional_ct_hugging_face.ipynb.
    """
    levels = []
    for low, high in windows:
        inside = np.clip(units, low, high).astype(np.float32) - np.float32(low)
        levels.append(np.rint(inside / np.float32(high - low) * np.float32(255)))
    return np.stack(levels, axis=-1).astype(np.uint8)
