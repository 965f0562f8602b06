"""Show the values of DICOM through the window that the file names, or CT through three windows of Hounsfield units.

Three windows give the three colors of a picture. MedGemma 1.5 was trained on CT like that: red from -1024 to 1024 (air
to bone), green from -135 to 215 (fat to bone), blue from 0 to 80 (water to brain). See "Analyze Computed Tomography
(CT) images with MedGemma 1.5", github.com/google-health/medgemma, notebooks/high_dimensional_ct_hugging_face.ipynb.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import DataError
from dualread.schema.data import CtWindows

if TYPE_CHECKING:
    from dualread.data.images import Decoded

NO_DICOM = "ct_windows does not apply: no DICOM"
_SHOWN = "CT shown through three windows of Hounsfield units ({})"
_OTHERWISE = "ct_windows does not apply: {}"


def windowed(values: np.ndarray, center: float, width: float, function: str, name: str) -> np.ndarray:
    """Return values seen through a window, as 8 bits (PS3.3 C.11.2.1.2 and C.11.2.1.3).

    Args:
        values: Values after the modality LUT.
        center: The middle of the window.
        width: Its width; at least 1 for LINEAR, above 0 for the others.
        function: LINEAR, LINEAR_EXACT or SIGMOID.
        name: The image, in errors.

    Raises:
        DataError: The width is too small, a number is not finite, or the function is unknown.
    """
    if not np.isfinite([center, width]).all() or width <= 0 or (function == "LINEAR" and width < 1):
        raise DataError(
            f"{name}: DICOM with a window of center {center:g} and width {width:g}. Correct it in the file."
        )
    if function == "LINEAR":
        # Below center - .5 - (width - 1) / 2 is black, above center - .5 + (width - 1) / 2 white.
        middle, extent = center - 0.5, width - 1
        shown = (values - middle) / extent + 0.5 if extent else (values > middle).astype(np.float64)
    elif function == "LINEAR_EXACT":
        shown = (values - center) / width + 0.5
    elif function == "SIGMOID":
        shown = 1 / (1 + np.exp(np.clip(-4 * (values - center) / width, -700, 700)))
    else:
        raise DataError(f"{name}: DICOM with the VOI LUT function {function!r}, which is not read. Export a PNG.")
    return (np.clip(shown, 0, 1) * 255 + 0.5).astype(np.uint8)


def shown_through(windows: CtWindows) -> str:
    """Return the note about an image that is shown through windows."""
    return _SHOWN.format(", ".join(f"{low:g} to {high:g}" for low, high in windows))


def left_alone(found: "Decoded", why: str) -> "Decoded":
    """Return an image that is shown as without windows, with a note that says so and that audits count."""
    return replace(found, notes=(*found.notes, why))


def why_not(says: Any, transformation: Any) -> str | None:
    """Return why the values of a DICOM file are no Hounsfield units, as a note; None if they are.

    They are in a CT with a rescale slope and intercept, unless the file names another unit (PS3.3 C.8.2.1), or the
    image is a localizer, which is a projection.

    Args:
        says: The file.
        transformation: What holds its rescale slope and intercept: the file itself, or an item for the frame.
    """
    if (modality := says.get("Modality")) != "CT":
        return _OTHERWISE.format(f"DICOM of another modality ({str(modality or 'none')[:16]})")
    if not str(says.PhotometricInterpretation).startswith("MONOCHROME"):
        return _OTHERWISE.format("CT in color")
    kind = says.get("ImageType")
    if isinstance(kind, Sequence) and not isinstance(kind, str) and "LOCALIZER" in kind:
        return _OTHERWISE.format("CT localizer")
    scaled = all(transformation.get(keyword) is not None for keyword in ("RescaleSlope", "RescaleIntercept"))
    if not scaled or says.get("ModalityLUTSequence") or str(transformation.get("RescaleType") or "HU") != "HU":
        return _OTHERWISE.format("CT whose values are no Hounsfield units")
    return None


def through_windows(values: np.ndarray, windows: CtWindows) -> np.ndarray:
    """Return Hounsfield units seen through windows, one for red, green and blue.

    A value at or below a window's low end is 0, at or above its high end 255, and between them it rises evenly. It is
    computed in float32 and rounded half to even, as in the notebook named above, so that the same pixels come out.

    Args:
        values: Hounsfield units, of any shape.
        windows: Three times (low, high).

    Returns:
        uint8, with an axis of 3 at the end.
    """
    levels = []
    for low, high in windows:
        inside = np.clip(values, low, high).astype(np.float32) - np.float32(low)
        levels.append(np.rint(inside / np.float32(high - low) * np.float32(255)))
    return np.stack(levels, axis=-1).astype(np.uint8)
