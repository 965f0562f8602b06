"""Render DICOM files as 8-bit RGB by pydicom, as the file says that it is to be shown (PS3.3 C.7.6.3, C.11.1, C.11.2).

The modality LUT or rescale slope and intercept; the first VOI LUT, or else the first window, or else all stored bits;
then MONOCHROME1 is inverted, and padding is black. Each value that can be stored is shown so, and pixels are looked up.
"""

from typing import Any

import numpy as np
from PIL import Image

from dualread.data.dicom_files import COLORS, GRAY, opened, stored_values
from dualread.data.gray import DARK, SAY_BITS, little_contrast, through_windows, upper_end
from dualread.data.images import Decoded, hard_to_see
from dualread.errors import DataError
from dualread.schema.data import CtWindows


def render(
    content: bytes, name: str, *, frame: int | None = None, bits: int | None = None, windows: CtWindows | None = None
) -> Decoded:
    """Return one `frame` (from 1; None where there is only one) as 8-bit RGB; `name` is for errors.

    `bits` of 16 count where the file has no window and says nothing else. CT is shown through `windows`; what has no
    Hounsfield units is shown as without them, with a note.
    """
    with opened(content, name, frame) as header:
        values = stored_values(content, header.file_meta.TransferSyntaxUID, (frame or 1) - 1, name)
        # Bits above those that are stored may hold overlays.
        values = values.astype(f"u{values.itemsize}") & ((1 << header.BitsStored) - 1)
        return _rendered(values, header, bits, windows, name)


def _rendered(values: np.ndarray, header: Any, bits: int | None, windows: CtWindows | None, name: str) -> Decoded:
    from pydicom.pixels.processing import apply_color_lut

    why_not = _no_hounsfield_units(header) if windows else None
    if header.PhotometricInterpretation in GRAY:
        table, how, doubts = _gray_table(values, header, bits, None if why_not else windows, name)
        shown = table[values]
    elif header.PhotometricInterpretation in COLORS:
        top, how, doubts = (1 << header.BitsStored) - 1, "DICOM in color", []
        shown = ((values.astype(np.uint32) * 510 + top) // (2 * top)).astype(np.uint8)
    else:
        colors, how, doubts = apply_color_lut(values, header)[..., :3], "DICOM shown by its palette", []
        shown = (colors >> 8 * (colors.itemsize - 1)).astype(np.uint8)
    aspect = [int(side) for side in header.get("PixelAspectRatio") or (1, 1)]
    notes = ["DICOM whose pixels are not square is shown as it is stored"] if aspect[0] != aspect[-1] else []
    notes += [how, why_not] if why_not else [how]
    picture = Image.fromarray(shown).convert("RGB")
    unseen = tuple(doubts) or hard_to_see(picture)
    return Decoded(image=picture, notes=tuple(notes), doubts=unseen, own=False, private=True)


def _gray_table(
    values: np.ndarray, header: Any, bits: int | None, windows: CtWindows | None, name: str
) -> tuple[np.ndarray, str, list[str]]:
    """Return what each storable value is shown as (gray, or with windows RGB), how, and why little is seen."""
    n, sign = 1 << header.BitsStored, (1 << header.BitsStored >> 1) * (header.get("PixelRepresentation") or 0)
    every = (np.arange(n) ^ sign) - sign
    padding = np.zeros(n, dtype=bool)
    if (end := header.get("PixelPaddingValue")) is not None:
        other = header.get("PixelPaddingRangeLimit")
        low, high = np.sort(every[np.array([end, end if other is None else other]).astype(int) & (n - 1)])
        padding = (every >= low) & (every <= high)
    levels, how, doubts = _levels(every, every[values[~padding[values]]], header, bits, windows, name)
    table = np.floor(np.clip(levels, 0, 255) + 0.5 + 1e-9).astype(np.uint8)  # a half that lost its last digit is a half
    turned = header.PhotometricInterpretation == "MONOCHROME1" or header.get("PresentationLUTShape") == "INVERSE"
    table = 255 - table if turned and not windows else table  # windows are of Hounsfield units
    table[padding] = 0
    return table, how, doubts


def _levels(
    every: np.ndarray, used: np.ndarray, header: Any, bits: int | None, windows: CtWindows | None, name: str
) -> tuple[np.ndarray, str, list[str]]:
    """Return the level, 0 to 255, of every storable value; `used` are those of the picture, without padding."""
    from pydicom.pixels.processing import apply_modality_lut, apply_voi, apply_windowing

    if (
        header.get("ModalityLUTSequence")
        or header.get("RescaleSlope") is None
        or header.get("RescaleIntercept") is None
    ):
        header.RescaleSlope, header.RescaleIntercept = 1, 0
    units = apply_modality_lut(every, header)
    if not np.isfinite(units).all() or units.min() == units.max():
        raise DataError(f"{name}: DICOM whose rescale slope, intercept or LUT gives no gray levels. Export it again.")
    if windows:
        shown = ", ".join(f"{low:g} to {high:g}" for low, high in windows)
        return through_windows(units, windows), f"CT shown through three windows of Hounsfield units ({shown})", []
    if header.get("VOILUTSequence"):
        lut = header.VOILUTSequence[0]
        entries, first, depth = lut.LUTDescriptor
        # pydicom counts entries in the type of the entries, which has 8 bits for some tables of 4,096.
        lut.LUTDescriptor = [entries, first, max(depth, 10)]
        entry = np.rint(units).clip(first, first + 65535).astype(np.int64)
        return apply_voi(entry, header) / ((1 << depth) - 1) * 255, "DICOM shown by its first VOI LUT", []
    if table := header.get("ModalityLUTSequence"):
        low, high = 0, (1 << table[0].LUTDescriptor[2]) - 1
    else:
        low, high = apply_modality_lut(np.array([every.min(), every.max()]), header)
    if header.get("WindowCenter") is not None and header.get("WindowWidth") is not None:
        center, width = (float(np.ravel(value)[0]) for value in (header.WindowCenter, header.WindowWidth))
        header.VOILUTFunction = str(header.get("VOILUTFunction") or "LINEAR")
        try:
            levels = apply_windowing(units, header)
        except ValueError:
            levels = np.full(1, np.nan)
        if not np.isfinite([center, width, levels.sum()]).all():
            window = f"a window of center {center:g} and width {width:g} and the VOI LUT function"
            nothing = f"{header.VOILUTFunction[:16]!r}, which shows nothing. Correct it in the file, or export a PNG."
            raise DataError(f"{name}: DICOM with {window} {nothing}")
        how = f"DICOM shown by its first window (center {center:g}, width {width:g})"
        return (levels - low) / (high - low) * 255, how, []
    if table:
        return units / high * 255, "DICOM without a window, shown by its modality LUT", []
    least, most = (int(used.min()), int(used.max())) if used.size else (0, 0)
    n_bits = header.BitsStored
    if n_bits == 16 and bits is None and 0 < upper_end(used - least) < DARK:
        few = f"values {least} to {most} are a small part of 16 bits, so that little would be seen"
        advice = f"Write the window into the file, or export a PNG; or say how many bits count: {SAY_BITS}."
        raise DataError(f"{name}: DICOM without a window, whose {few}. {advice}")
    n_bits = bits if n_bits == 16 and bits is not None else n_bits
    first, top = -(1 << n_bits >> 1) if every.min() < 0 else 0, (1 << n_bits) - 1
    if least < first or most > first + top:
        raise DataError(f"{name}: DICOM values {least} to {most}, more than {n_bits} bits hold. Correct {SAY_BITS}.")
    low, high = sorted(apply_modality_lut(np.array([first, first + top]), header))
    how = f"DICOM without a window, shown by its bits ({n_bits})"
    return (units - low) / (high - low) * 255, how, little_contrast(least, most, top)


def _no_hounsfield_units(header: Any) -> str | None:
    """Return why values are no Hounsfield units (PS3.3 C.8.2.1), as a note; None if they are. A localizer projects."""
    unit = None if header.get("ModalityLUTSequence") else str(header.get("RescaleType") or "HU")
    reasons = {
        f"DICOM of another modality ({str(header.get('Modality') or 'none')[:16]})": header.get("Modality") != "CT",
        "CT in color": header.PhotometricInterpretation not in GRAY,
        "CT localizer": "LOCALIZER" in np.atleast_1d(header.get("ImageType") or ""),
        "CT whose values are no Hounsfield units": unit != "HU"
        or None in (header.get("RescaleSlope"), header.get("RescaleIntercept")),
    }
    return next((f"ct_windows does not apply: {reason}" for reason, holds in reasons.items() if holds), None)
