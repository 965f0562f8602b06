"""Render DICOM files as 8-bit RGB, as the file says that it is to be shown; no other content of the file is read.

pydicom and its decoders are an extra (`pip install 'dualread[dicom]'`). They are imported for DICOM files alone, and
nothing that they say about values of a file is repeated, because it may be about a patient.

The steps are those of the standard (PS3.3 C.7.6.3, C.11.1, C.11.2 and PS3.4 N.2): the modality LUT or rescale slope and
intercept; the first VOI LUT, or else the first window, or else all bits that are stored; then MONOCHROME1 is inverted.
Padding is black. They are applied to each value that can be stored, at most 65,536, and pixels are looked up.

CT can be shown through three windows of Hounsfield units instead, which give the three colors, as for MedGemma 1.5:
github.com/google-health/medgemma, notebooks/high_dimensional_ct_hugging_face.ipynb.
"""

import atexit
import contextlib
import io
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from dualread.data.gray import DARK, SAY_BITS, little_contrast, to_8_bits, upper_end
from dualread.data.images import Decoded, check_size, hard_to_see
from dualread.errors import DataError
from dualread.schema.data import CtWindows

_DEFLATED = b"1.2.840.10008.1.2.1.99"  # pydicom unpacks such a file whatever its size
_ITEM_TAGS = (b"\xfe\xff\x00\xe0", b"\xff\xfe\xe0\x00")  # in either order of bytes
_MOST_ITEMS = 200_000  # each takes 100 microseconds and 1.4 kB; thousands of frames have some ten each
_READ = (
    *("Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "NumberOfFrames"),
    *("PhotometricInterpretation", "SamplesPerPixel", "PlanarConfiguration", "PixelAspectRatio"),
    *("PixelPaddingValue", "PixelPaddingRangeLimit", "PresentationLUTShape", "PresentationLUTSequence"),
    *("ModalityLUTSequence", "RescaleSlope", "RescaleIntercept", "RescaleType", "Modality", "ImageType"),
    *("VOILUTSequence", "WindowCenter", "WindowWidth", "VOILUTFunction"),
    *("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"),
    *(
        f"{part}PaletteColorLookupTable{kind}"
        for color in ("Red", "Green", "Blue")
        for part, kind in ((color, "Descriptor"), (color, "Data"), (f"Segmented{color}", "Data"))
    ),
)
_COLORS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")  # pydicom returns RGB for all of them


def is_dicom(content: bytes) -> bool:
    """Return whether the beginning of a file (132 bytes) is that of DICOM, whatever its name is."""
    return content[128:132] == b"DICM"


def render(
    content: bytes, name: str, *, frame: int | None = None, bits: int | None = None, windows: CtWindows | None = None
) -> Decoded:
    """Return one frame as 8-bit RGB.

    Args:
        content: The file.
        name: The image, in errors.
        frame: The frame, from 1; None where there is only one.
        bits: How many bits of 16 count where the file has no window and says nothing else.
        windows: Through which CT is shown; what has no Hounsfield units is shown as without them, with a note.

    Raises:
        DataError: pydicom or a decoder is not installed; the file is damaged, has no picture, several frames of which
            none is named, or too many pixels or items; or it is to be shown in a way that is not supported.
    """
    try:
        from pydicom import dcmread
    except ImportError:
        raise DataError(
            f"{name}: is a DICOM file. Run: pip install 'dualread[dicom]'; or export a PNG with the window applied."
        ) from None
    if _DEFLATED in content:
        raise DataError(f"{name}: a deflated DICOM file, which is not read. Save it uncompressed.")
    if (n := sum(map(content.count, _ITEM_TAGS))) > _MOST_ITEMS:
        raise DataError(
            f"{name}: a DICOM file with {n:,} items, expected at most {_MOST_ITEMS:,}. Export the picture alone."
        )
    logger = logging.getLogger("pydicom")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # it names values, as its warnings do
    try:
        with warnings.catch_warnings(action="ignore"):
            warnings.simplefilter("error", Image.DecompressionBombWarning)  # the header may name fewer pixels
            header = dcmread(io.BytesIO(content), stop_before_pixels=True, specific_tags=list(_READ))
            _check_header(header, frame, name)
            stored = _stored_values(content, header, (frame or 1) - 1, name)
            return _rendered(stored, header, (frame or 1) - 1, bits, windows, name)
    except DataError:
        raise
    except Exception as error:  # pydicom raises errors of all kinds for damaged files; their texts name values
        kind = type(error).__name__
        raise DataError(f"{name}: the DICOM file cannot be decoded ({kind}). Restore or export it again.") from None
    finally:
        logger.setLevel(level)


def _check_header(header: Any, frame: int | None, name: str) -> None:
    if header.get("Rows") is None or header.get("Columns") is None:
        raise DataError(f"{name}: a DICOM file with no picture (a report or a directory?). Give a file with a picture.")
    check_size(name, int(header.Columns), int(header.Rows))
    n = int(header.get("NumberOfFrames") or 1)
    if (frame is None and n != 1) or not 1 <= (1 if frame is None else frame) <= n:
        mismatch = "none is named" if frame is None else f"none has the number {frame}"
        raise DataError(
            f"{name}: a DICOM file of {n} frames, of which {mismatch}. Write the number behind the file's name, such as"
            " x.dcm#1 for the first."
        )
    allocated, stored, highest = header.BitsAllocated, header.BitsStored, header.get("HighBit", header.BitsStored - 1)
    if allocated not in (1, 8, 16) or not 1 <= stored <= allocated or highest != stored - 1:
        layout = f"{stored} bits stored of {allocated}, the highest is {highest}"
        raise DataError(f"{name}: DICOM with {layout}; expected the lower ones of 1, 8 or 16. Export it again.")
    if header.get("PresentationLUTSequence"):
        raise DataError(f"{name}: DICOM with a presentation LUT, which is not read. Export a PNG as it is shown.")


def _stored_values(content: bytes, header: Any, frame: int, name: str) -> np.ndarray:
    """Return the stored values of a frame [height, width], or [height, width, 3] for colors."""
    from pydicom.pixels.decoders.base import get_decoder
    from pydicom.pixels.utils import pixel_array

    syntax: Any = header.file_meta.TransferSyntaxUID
    if not syntax.is_compressed:
        return pixel_array(io.BytesIO(content), index=frame)
    try:
        plugins = get_decoder(syntax).available_plugins
    except NotImplementedError:
        plugins = ()
    if not plugins:
        raise DataError(
            f"{name}: no decoder for the DICOM transfer syntax ({syntax.name[:64]}). Run: pip install"
            " 'dualread[dicom]'; or export it uncompressed."
        )
    if decoder := next((plugin for plugin in ("pydicom", "pillow") if plugin in plugins), None):
        with contextlib.suppress(Exception):  # Pillow does not decode each file of its syntaxes; GDCM is asked next
            return pixel_array(io.BytesIO(content), index=frame, decoding_plugin=decoder)
    try:
        return _decoded_by_gdcm(content, frame)
    except (OSError, ValueError, EOFError):
        raise DataError(
            f"{name}: the compressed pixels of the DICOM file cannot be decoded. Export it uncompressed."
        ) from None


# A damaged file can end GDCM, and the process that it is in. A request is a line with the size of a file and the number
# of a frame, and the file; an answer is a line with its size, and an array in numpy's format.
_GDCM = """
import io, sys
import numpy
from pydicom.pixels import pixel_array
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_AS)[1]))
except (ImportError, ValueError, OSError):  # Windows has no such limits
    pass
for request in sys.stdin.buffer:
    size, frame = map(int, request.split())
    content = sys.stdin.buffer.read(size)
    answer = io.BytesIO()
    try:
        numpy.save(answer, pixel_array(io.BytesIO(content), index=frame), allow_pickle=False)
    except Exception:
        pass
    sys.stdout.buffer.write(b"%d\\n" % answer.tell() + answer.getbuffer())
    sys.stdout.buffer.flush()
"""
_GDCM_BYTES = 8_000_000_000  # of memory that its process may ask for
_GDCM_SECONDS = 60  # for one image
_lock = threading.Lock()
_processes: list[subprocess.Popen] = []


def _decoded_by_gdcm(content: bytes, frame: int) -> np.ndarray:
    """Return the stored values of a frame; OSError, ValueError or EOFError if they cannot be decoded."""
    with _lock:
        if not _processes:
            command = [sys.executable, "-P", "-W", "ignore", "-c", _GDCM, str(_GDCM_BYTES)]
            pipe, nothing = subprocess.PIPE, subprocess.DEVNULL  # decoders write what they like on standard error
            _processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing))
        process: Any = _processes[0]
        watch = threading.Timer(_GDCM_SECONDS, process.kill)
        watch.start()
        try:
            process.stdin.write(b"%d %d\n" % (len(content), frame) + content)
            process.stdin.flush()
            return np.load(io.BytesIO(process.stdout.read(int(process.stdout.readline()))), allow_pickle=False)
        except (OSError, ValueError):  # it has ended
            _end_gdcm()
            raise
        finally:
            watch.cancel()


@atexit.register
def _end_gdcm() -> None:
    while _processes:
        process = _processes.pop()
        process.kill()
        process.communicate()


def _rendered(
    stored: np.ndarray, header: Any, frame: int, bits: int | None, windows: CtWindows | None, name: str
) -> Decoded:
    from pydicom.pixels.processing import apply_color_lut

    kind, n_bits = str(header.PhotometricInterpretation), int(header.BitsStored)
    # Bits above those that are stored may hold overlays.
    values = stored.astype(f"u{stored.itemsize}") & ((1 << n_bits) - 1)
    why_not = _no_hounsfield_units(header, frame) if windows else None
    doubts: Sequence[str] = ()
    if kind == "PALETTE COLOR":
        colors, how = apply_color_lut(values, header)[..., :3], "DICOM shown by its palette"
        shown = (colors >> 8 * (colors.itemsize - 1)).astype(np.uint8)
    elif kind in _COLORS and values.ndim == 3:
        shown, how = to_8_bits(np.arange(1 << n_bits), name, stated=n_bits, given=None)[0][values], "DICOM in color"
    elif kind in ("MONOCHROME1", "MONOCHROME2") and values.ndim == 2:
        table, how, doubts = _gray_table(values, header, frame, bits, None if why_not else windows, name)
        shown = table[values]
    else:
        raise DataError(f"{name}: DICOM with the photometric interpretation {kind[:16]!r}, which is not read.")
    aspect = [int(side) for side in header.get("PixelAspectRatio") or (1, 1)]
    square = () if aspect[0] == aspect[-1] else ("DICOM whose pixels are not square is shown as it is stored",)
    notes = (*square, how, *((why_not,) if why_not else ()))
    picture = Image.fromarray(shown).convert("RGB")
    return Decoded(image=picture, notes=notes, doubts=tuple(doubts) or hard_to_see(picture), own=False, private=True)


def _gray_table(
    values: np.ndarray, header: Any, frame: int, bits: int | None, windows: CtWindows | None, name: str
) -> tuple[np.ndarray, str, Sequence[str]]:
    """Return what each storable value is shown as (gray, or with windows RGB), how, and why little is seen."""
    from pydicom.pixels.processing import apply_modality_lut, apply_voi

    n, sign = 1 << header.BitsStored, (1 << header.BitsStored >> 1) * (header.get("PixelRepresentation") or 0)
    every = (np.arange(n) ^ sign) - sign
    padding = np.zeros(n, dtype=bool)
    if (end := header.get("PixelPaddingValue")) is not None:
        other = header.get("PixelPaddingRangeLimit")
        low, high = np.sort(every[np.array([end, end if other is None else other]).astype(int) & (n - 1)])
        padding = (every >= low) & (every <= high)
    scale = _module(header, frame, "PixelValueTransformationSequence")
    scaled = scale.get("ModalityLUTSequence") or _has(scale, "RescaleSlope", "RescaleIntercept")
    units = apply_modality_lut(every, scale) if scaled else every
    if not np.isfinite(units).all() or units.min() == units.max():
        raise DataError(f"{name}: DICOM whose rescale slope, intercept or LUT gives no gray levels. Export it again.")
    voi, doubts = _module(header, frame, "FrameVOILUTSequence"), []
    if windows:  # of Hounsfield units, which MONOCHROME1 does not turn
        levels = through_windows(units, windows)
        shown = ", ".join(f"{low:g} to {high:g}" for low, high in windows)
        how = f"CT shown through three windows of Hounsfield units ({shown})"
    elif voi.get("VOILUTSequence"):
        lut = voi.VOILUTSequence[0]
        entries, first, depth = lut.LUTDescriptor
        # pydicom counts entries in the type of the entries, which has 8 bits for some tables of 4,096.
        lut.LUTDescriptor = [entries, first, max(depth, 10)]
        levels = apply_voi(np.rint(units).clip(first, first + 65535).astype(np.int64), voi) / ((1 << depth) - 1) * 255
        how = "DICOM shown by its first VOI LUT"
    elif _has(voi, "WindowCenter", "WindowWidth"):
        center, width = (float(np.ravel(value)[0]) for value in (voi.WindowCenter, voi.WindowWidth))
        levels = _windowed(units, center, width, str(voi.get("VOILUTFunction") or "LINEAR"), name)
        how = f"DICOM shown by its first window (center {center:g}, width {width:g})"
    elif scale.get("ModalityLUTSequence"):
        levels = units / ((1 << scale.ModalityLUTSequence[0].LUTDescriptor[2]) - 1) * 255
        how = "DICOM without a window, shown by its modality LUT"
    else:
        levels, how, doubts = _by_bits(every, every[values[~padding[values]]], bits, name)
        levels = 255 - levels if units[every.argmin()] > units[every.argmax()] else levels
    table = (np.clip(levels, 0, 255) + 0.5).astype(np.uint8)
    turned = header.PhotometricInterpretation == "MONOCHROME1" or header.get("PresentationLUTShape") == "INVERSE"
    table = 255 - table if turned and not windows else table
    table[padding] = 0
    return table, how, doubts


def _windowed(units: np.ndarray, center: float, width: float, function: str, name: str) -> np.ndarray:
    """Return gray levels, 0 to 255, of values seen through a window (PS3.3 C.11.2.1.2 and C.11.2.1.3)."""
    from pydicom import Dataset
    from pydicom.pixels.processing import apply_windowing

    window = Dataset()
    window.BitsStored, window.PixelRepresentation, window.PhotometricInterpretation = 8, 0, "MONOCHROME2"
    window.WindowCenter, window.WindowWidth, window.VOILUTFunction = center, width, function
    try:
        levels = apply_windowing(units, window)
    except ValueError:
        levels = np.full(1, np.nan)
    if not np.isfinite([center, width, levels.sum()]).all():
        raise DataError(
            f"{name}: DICOM with a window of center {center:g} and width {width:g} and the VOI LUT function"
            f" {function[:16]!r}, which shows nothing. Correct it in the file, or export a PNG."
        )
    return levels


def _by_bits(every: np.ndarray, used: np.ndarray, bits: int | None, name: str) -> tuple[np.ndarray, str, Sequence[str]]:
    """Return levels by all bits of every storable value, by `bits` of 16 if said; `used` are pixels without padding."""
    count = len(every).bit_length() - 1
    low, high = (int(used.min()), int(used.max())) if used.size else (0, 0)
    if count == 16 and bits is None and 0 < upper_end(used - low) < DARK:
        raise DataError(
            f"{name}: DICOM without a window, whose values {low} to {high} are a small part of 16 bits, so that little"
            f" would be seen. Write the window into the file, or export a PNG; or say how many bits count: {SAY_BITS}."
        )
    count = bits if count == 16 and bits is not None else count
    first, top = -(1 << count >> 1) if every.min() < 0 else 0, (1 << count) - 1
    if low < first or high > first + top:
        raise DataError(f"{name}: DICOM values {low} to {high}, more than {count} bits hold. Correct {SAY_BITS}.")
    levels, _ = to_8_bits((every - first).clip(0, top), name, stated=count, given=None)
    return levels, f"DICOM without a window, shown by its bits ({count})", little_contrast(low, high, top)


def _no_hounsfield_units(header: Any, frame: int) -> str | None:
    """Return why values are no Hounsfield units (PS3.3 C.8.2.1), as a note; None if they are. A localizer projects."""
    scale = _module(header, frame, "PixelValueTransformationSequence")
    another_unit = header.get("ModalityLUTSequence") or str(scale.get("RescaleType") or "HU") != "HU"
    reasons = {
        f"DICOM of another modality ({str(header.get('Modality') or 'none')[:16]})": header.get("Modality") != "CT",
        "CT in color": not str(header.PhotometricInterpretation).startswith("MONOCHROME"),
        "CT localizer": "LOCALIZER" in np.atleast_1d(header.get("ImageType") or ""),
        "CT whose values are no Hounsfield units": another_unit or not _has(scale, "RescaleSlope", "RescaleIntercept"),
    }
    return next((f"ct_windows does not apply: {reason}" for reason, holds in reasons.items() if holds), None)


def through_windows(units: np.ndarray, windows: CtWindows) -> np.ndarray:
    """Return Hounsfield units seen through windows, uint8 [..., 3].

    At or below the low end of a window is 0, at or above its high end 255, and between them levels rise evenly, in
    float32 and rounded half to even, as in the notebook named above, so that the same pixels come out.
    """
    levels = []
    for low, high in windows:
        inside = np.clip(units, low, high).astype(np.float32) - np.float32(low)
        levels.append(np.rint(inside / np.float32(high - low) * np.float32(255)))
    return np.stack(levels, axis=-1).astype(np.uint8)


def _module(header: Any, frame: int, keyword: str) -> Any:
    """Return what holds the attributes of one kind for a frame: an item of its own, one of all frames, or the file."""
    per_frame = header.get("PerFrameFunctionalGroupsSequence") or ()
    shared = header.get("SharedFunctionalGroupsSequence") or ()
    groups = (*per_frame[frame : frame + 1], *shared[:1])
    return next((group.get(keyword)[0] for group in groups if group.get(keyword)), header)


def _has(dataset: Any, *keywords: str) -> bool:
    return all(dataset.get(keyword) is not None for keyword in keywords)
