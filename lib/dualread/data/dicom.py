"""Render DICOM files as 8-bit RGB, as the file says that it is to be shown; no other content of the file is read.

pydicom and its decoders are an extra (`pip install 'dualread[dicom]'`). They are imported for DICOM files alone, and
nothing that they say about values of a file is repeated, because it may be about a patient.

The steps are those of the standard (PS3.3 C.7.6.3, C.11.1, C.11.2 and PS3.4 N.2): the modality LUT or rescale slope and
intercept; the first VOI LUT, or else the first window, or else all bits that are stored; then MONOCHROME1 is inverted.
Padding is black. CT can be shown through windows of Hounsfield units instead (`windows`).
"""

import io
import logging
import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from dualread.data import dicom_decoder
from dualread.data.dicom_items import check_items
from dualread.data.frames import NAMED
from dualread.data.gray import SAY_BITS, little_contrast, to_8_bits
from dualread.data.images import Decoded, check_size
from dualread.data.windows import left_alone, shown_through, through_windows, why_not, windowed
from dualread.errors import DataError
from dualread.schema.data import CtWindows

_MARK, _MARK_AT = b"DICM", 128
_DEFLATED = "1.2.840.10008.1.2.1.99"
# JPEG of 8 bits, and JPEG 2000; GDCM decodes the rest, in a process of its own.
_BY_PILLOW = ("1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91")
_LONG_LENGTHS = (b"OB", b"OW", b"OF", b"OD", b"SQ", b"UC", b"UN", b"UR", b"UT")
_NEEDED = ("Rows", "Columns", "BitsAllocated", "BitsStored", "PhotometricInterpretation", "SamplesPerPixel")
_LUTS = tuple(
    f"{color}PaletteColorLookupTable{part}" for color in ("Red", "Green", "Blue") for part in ("Data", "Descriptor")
)
_OF_FRAMES = ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence")
_READ = (
    *_NEEDED,
    *("HighBit", "PixelRepresentation", "PlanarConfiguration", "NumberOfFrames", "PixelAspectRatio"),
    *("PixelPaddingValue", "PixelPaddingRangeLimit", "PresentationLUTShape", "PresentationLUTSequence"),
    *("ModalityLUTSequence", "RescaleSlope", "RescaleIntercept", "RescaleType", "Modality", "ImageType"),
    *("VOILUTSequence", "WindowCenter", "WindowWidth", "VOILUTFunction"),
    *(*_LUTS, *(f"Segmented{name}" for name in _LUTS if name.endswith("Data")), *_OF_FRAMES),
)
_RGB = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")  # pydicom's decoders return RGB for all of them


def is_dicom(content: bytes) -> bool:
    """Return whether the beginning of a file (132 bytes) is that of DICOM, whatever its name is."""
    return content[_MARK_AT : _MARK_AT + len(_MARK)] == _MARK


def head(source: Path | bytes) -> bytes:
    """Return the beginning of a file, as `is_dicom` needs it; empty if it cannot be read."""
    if isinstance(source, bytes):
        return source[:132]
    try:
        if not source.is_file():
            return b""
        with source.open("rb") as file:
            return file.read(132)
    except (OSError, ValueError):
        return b""


def render(
    source: Path | bytes,
    name: str,
    *,
    frame: int | None = None,
    bits: int | None = None,
    windows: CtWindows | None = None,
) -> Decoded:
    """Return one frame as 8-bit RGB.

    Args:
        source: A DICOM file, or its bytes.
        name: The image, in errors.
        frame: The frame, from 1; None where there is only one.
        bits: How many bits of 16 count where the file has no window and says nothing else.
        windows: Through which CT is shown; what has no Hounsfield units is shown as without them, with a note.

    Raises:
        DataError: pydicom or a decoder is not installed; the file is damaged, has no picture, several frames of which
            none is named, or too many pixels; or it is to be shown in a way that is not supported, which is named.
    """
    _check_installed(name)
    import pydicom

    with _opened(source) as file, _silent():
        try:
            _check_transfer_syntax(file, name)
            check_items(source, name)
            says = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=list(_READ))
            number = _frame(says, frame, name)
            pixels = _pixels(source, file, says, number, name)
            scaled = _group(says, number, "PixelValueTransformationSequence")
            why = why_not(says, scaled) if windows else None
            notes = () if frame is None else (NAMED.format(frame),)
            found = _shown(pixels, says, number, bits, None if why else windows, name, notes)
            return left_alone(found, why) if why else found
        except DataError:
            raise
        except Exception as error:  # pydicom raises errors of all kinds for damaged files; their texts name values
            kind = type(error).__name__
            raise DataError(f"{name}: the DICOM file cannot be decoded ({kind}). Restore or export it again.") from None


def _check_installed(name: str) -> None:
    try:
        import pydicom  # noqa: F401
    except ImportError:
        raise DataError(
            f"{name}: is a DICOM file. Run: pip install 'dualread[dicom]'; or export a PNG with the window applied."
        ) from None


@contextmanager
def _opened(source: Path | bytes) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    with source.open("rb") as file:
        yield file


@contextmanager
def _silent() -> Iterator[None]:
    """Let pydicom neither warn nor log, because it names values."""
    logger = logging.getLogger("pydicom")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _check_transfer_syntax(file: BinaryIO, name: str) -> None:
    """Refuse a deflated file, which pydicom unpacks whatever its size, and a compression without a decoder."""
    from pydicom.pixels.decoders.base import get_decoder
    from pydicom.uid import UID

    syntaxes = list(_transfer_syntaxes(file))
    file.seek(0)
    if _DEFLATED in syntaxes:
        raise DataError(f"{name}: a deflated DICOM file, which is not read. Save it uncompressed.")
    if not syntaxes:
        raise DataError(f"{name}: a DICOM file without a transfer syntax. Export it again.")
    found = UID(syntaxes[-1])
    try:
        usable = not found.is_compressed or get_decoder(found).is_available
    except (NotImplementedError, ValueError):
        usable = False
    if not usable:
        kind = found.name if found.is_transfer_syntax else "an unknown one"
        raise DataError(
            f"{name}: no decoder for the DICOM transfer syntax ({kind}). Run: pip install 'dualread[dicom]'; or export"
            " it uncompressed."
        )


def _transfer_syntaxes(file: BinaryIO) -> Iterator[str]:
    """Yield every transfer syntax that the file's first group names; it is always explicit, little-endian."""
    file.seek(_MARK_AT + len(_MARK))
    while len(element := file.read(8)) == 8:
        group, number, kind, size = struct.unpack("<HH2sH", element)
        if group != 2:
            return
        if kind in _LONG_LENGTHS:
            (size,) = struct.unpack("<I", file.read(4).ljust(4, b"\xff"))
        if number == 0x10:
            yield file.read(min(size, 64)).decode("ascii", "replace").strip("\0 ")
            file.seek(max(0, size - 64), io.SEEK_CUR)
        else:
            file.seek(size, io.SEEK_CUR)


def _frame(says: Any, frame: int | None, name: str) -> int:
    """Return the number of the frame that is shown, from 0, and refuse what cannot be a picture."""
    if missing := [keyword for keyword in _NEEDED if says.get(keyword) is None]:
        what = "no picture (a report or a directory?)" if "Rows" in missing else f"no {', '.join(missing)}"
        raise DataError(f"{name}: a DICOM file with {what}. Give a file with a picture.")
    check_size(name, int(says.Columns), int(says.Rows))
    n = int(says.get("NumberOfFrames") or 1)
    if frame is None and n != 1:
        raise DataError(
            f"{name}: a DICOM file of {n} frames, and nothing says which one is meant. Write its number behind the"
            " file's name, such as x.dcm#1 for the first."
        )
    if not 1 <= (frame or 1) <= n:
        raise DataError(f"{name}: has no frame {frame}, but {n}, from 1. Correct the number.")
    return (frame or 1) - 1


def _pixels(source: Path | bytes, file: BinaryIO, says: Any, frame: int, name: str) -> np.ndarray:
    """Return the stored values of a frame [height, width], or [height, width, 3] for colors."""
    from pydicom.pixels.decoders.base import get_decoder
    from pydicom.pixels.utils import pixel_array

    syntax: Any = says.file_meta.TransferSyntaxUID
    plugins = get_decoder(syntax).available_plugins if syntax.is_compressed else ()
    own = "pydicom" if "pydicom" in plugins else "pillow" if "pillow" in plugins and str(syntax) in _BY_PILLOW else None
    file.seek(0)
    try:
        safe = own is not None or not syntax.is_compressed
        values = pixel_array(file, index=frame, decoding_plugin=own or "") if safe else None
    except Exception:
        if own != "pillow":
            raise
        values = None
    if values is None:
        values = dicom_decoder.decode(source, frame)
    if values is None:
        raise DataError(f"{name}: the compressed pixels of the DICOM file cannot be decoded. Export it uncompressed.")
    shape = (int(says.Rows), int(says.Columns), *((3,) if says.SamplesPerPixel == 3 else ()))
    if values.shape != shape or values.dtype.kind not in "ui":
        raise DataError(f"{name}: DICOM pixels {values.shape} of {values.dtype}, expected whole numbers {shape}.")
    return values


def _shown(
    values: np.ndarray,
    says: Any,
    frame: int,
    bits: int | None,
    windows: CtWindows | None,
    name: str,
    notes: tuple[str, ...],
) -> Decoded:
    allocated, stored, kind = int(says.BitsAllocated), int(says.BitsStored), str(says.PhotometricInterpretation)
    highest = int(says.get("HighBit", stored - 1))
    if allocated not in (1, 8, 16) or not 1 <= stored <= allocated or highest != stored - 1:
        found = f"{stored} bits stored of {allocated}, the highest is {highest}"
        raise DataError(f"{name}: DICOM with {found}; expected the lower ones of 1, 8 or 16. Export it again.")
    if says.get("PresentationLUTSequence"):
        raise DataError(f"{name}: DICOM with a presentation LUT, which is not read. Export a PNG as it is shown.")
    aspect = list(says.get("PixelAspectRatio") or (1, 1))
    if len(aspect) == 2 and int(aspect[0]) != int(aspect[1]):
        notes = (*notes, "DICOM whose pixels are not square is shown as it is stored")
    # Bits above those that are stored may hold overlays.
    raw = values.astype(f"u{values.itemsize}") & ((1 << stored) - 1)
    if kind == "PALETTE COLOR":
        return _decoded(_palette(raw, says), (*notes, "DICOM shown by its palette"))
    if kind in _RGB and values.ndim == 3:
        table, _ = to_8_bits(np.arange(1 << stored), name, stated=stored, given=None)
        return _decoded(table[raw], (*notes, "DICOM in color"))
    if kind not in ("MONOCHROME1", "MONOCHROME2") or values.ndim != 2:
        raise DataError(f"{name}: DICOM with the photometric interpretation {kind[:16]!r}, which is not read.")
    table, how, doubts = _levels(raw, says, frame, bits, windows, name)
    found = _decoded(table[raw], (*notes, how))
    return replace(found, doubts=tuple(doubts))


def _decoded(pixels: np.ndarray, notes: tuple[str, ...]) -> Decoded:
    return Decoded(image=Image.fromarray(pixels).convert("RGB"), notes=notes, own=False, private=True)


def _palette(raw: np.ndarray, says: Any) -> np.ndarray:
    from pydicom.pixels.processing import apply_color_lut

    colors = apply_color_lut(raw, says)[..., :3]
    return (colors >> 8 if colors.dtype.itemsize == 2 else colors).astype(np.uint8)


def _levels(
    raw: np.ndarray, says: Any, frame: int, bits: int | None, windows: CtWindows | None, name: str
) -> tuple[np.ndarray, str, list[str]]:
    """Return what every value that can be stored is shown as, how it was made, and what makes one doubt it.

    It is a gray level, uint8 [values], or with windows a color, uint8 [values, 3].
    """
    stored, signed = int(says.BitsStored), bool(says.get("PixelRepresentation"))
    every = _read_as(np.arange(1 << stored), stored, signed)
    padding = _padding(every, says, stored, signed)
    if windows:  # of Hounsfield units, which MONOCHROME1 does not turn
        slope, intercept = _rescale(says, frame, name)
        table = through_windows(every * slope + intercept, windows)
        table[padding] = 0
        return table, shown_through(windows), []
    table, how, doubts = _by_file(every, says, frame, name) or _by_bits(
        every, every[(np.bincount(raw.ravel(), minlength=len(every)) > 0) & ~padding], says, bits, name
    )
    if says.PhotometricInterpretation == "MONOCHROME1" or says.get("PresentationLUTShape") == "INVERSE":
        table = 255 - table
    table[padding] = 0
    return table, how, doubts


def _read_as(raw: np.ndarray, stored: int, signed: bool) -> np.ndarray:
    half = 1 << (stored - 1)
    raw = raw & (2 * half - 1)
    return (raw ^ half) - half if signed else raw


def _padding(every: np.ndarray, says: Any, stored: int, signed: bool) -> np.ndarray:
    """Return which values are padding."""
    ends = [says.get(keyword) for keyword in ("PixelPaddingValue", "PixelPaddingRangeLimit")]
    if ends[0] is None:
        return np.zeros(every.shape, dtype=bool)
    found = _read_as(np.array([int(end) for end in ends if end is not None]), stored, signed)
    return (every >= found.min()) & (every <= found.max())


def _by_file(every: np.ndarray, says: Any, frame: int, name: str) -> tuple[np.ndarray, str, list[str]] | None:
    """Return the gray levels by the VOI LUT, the window or the modality LUT of a file; None if it has none."""
    from pydicom.pixels.processing import apply_modality_lut, apply_voi

    voi, table = _group(says, frame, "FrameVOILUTSequence"), says.get("ModalityLUTSequence")
    slope, intercept = _rescale(says, frame, name)
    values = apply_modality_lut(every, says) if table else every * slope + intercept
    if voi.get("VOILUTSequence"):
        shown = apply_voi(np.rint(values).astype(np.int64), voi, index=0)
        return _of_lut(shown, voi.VOILUTSequence[0], name), "DICOM shown by its first VOI LUT", []
    if voi.get("WindowCenter") is not None and voi.get("WindowWidth") is not None:
        center, width = _first(voi.WindowCenter), _first(voi.WindowWidth)
        shown = windowed(values, center, width, str(voi.get("VOILUTFunction") or "LINEAR"), name)
        return shown, f"DICOM shown by its first window (center {center:g}, width {width:g})", []
    if table:
        return _of_lut(values, table[0], name), "DICOM without a window, shown by its modality LUT", []
    return None


def _rescale(says: Any, frame: int, name: str) -> tuple[float, float]:
    found = _group(says, frame, "PixelValueTransformationSequence")
    slope, intercept = found.get("RescaleSlope"), found.get("RescaleIntercept")
    slope, intercept = 1.0 if slope is None else float(slope), 0.0 if intercept is None else float(intercept)
    if not np.isfinite([slope, intercept]).all() or slope == 0:
        raise DataError(f"{name}: DICOM with a rescale slope of {slope:g}, intercept {intercept:g}. Export it again.")
    return slope, intercept


def _of_lut(shown: np.ndarray, lut: Any, name: str) -> np.ndarray:
    if not 1 <= (n := int(lut.LUTDescriptor[2])) <= 16:
        raise DataError(f"{name}: DICOM with a LUT of {n} bits, expected 1 to 16. Export it again.")
    return (np.clip(shown / ((1 << n) - 1), 0, 1) * 255 + 0.5).astype(np.uint8)


def _by_bits(
    every: np.ndarray, used: np.ndarray, says: Any, bits: int | None, name: str
) -> tuple[np.ndarray, str, list[str]]:
    """Return the gray levels of a file without a window: by all bits that are stored, or by as many as the user says.

    Args:
        every: Every value that can be stored.
        used: Those that the picture has, but for padding.
        says: The file.
        bits: The number of bits by the user; it counts where 16 are stored, which says nothing.
        name: The image, in errors.
    """
    stored = int(says.BitsStored)
    low, high = (int(used.min()), int(used.max())) if used.size else (0, 0)
    if stored == 16 and bits is None and 0 < high - low < 1 << 14:
        raise DataError(
            f"{name}: DICOM without a window, whose values {low} to {high} are a small part of 16 bits, so that little"
            f" would be seen. Write the window into the file, or export a PNG; or say how many bits count: {SAY_BITS}."
        )
    count = bits if stored == 16 and bits is not None else stored
    first, top = -(1 << (count - 1)) if says.get("PixelRepresentation") else 0, (1 << count) - 1
    if low < first or high > first + top:
        raise DataError(f"{name}: DICOM values {low} to {high}, more than {count} bits hold. Correct {SAY_BITS}.")
    table = ((every.clip(first, first + top) - first) * 510 + top) // (2 * top)
    falling = _rescale(says, 0, name)[0] < 0
    levels = (255 - table if falling else table).astype(np.uint8)
    return levels, f"DICOM without a window, shown by its bits ({count})", little_contrast(low, high, top)


def _group(says: Any, frame: int, keyword: str) -> Any:
    """Return what holds the attributes of one kind for a frame: an item of its own, one of all frames, or the file."""
    own = says.get("PerFrameFunctionalGroupsSequence") or ()
    shared = says.get("SharedFunctionalGroupsSequence") or ()
    for item in (*own[frame : frame + 1], *shared[:1]):
        if found := item.get(keyword):
            return found[0]
    return says


def _first(value: Any) -> float:
    return float(value[0] if isinstance(value, Sequence) and not isinstance(value, str) else value)
