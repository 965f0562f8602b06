"""Read an image as people give it: a file, DICOM too, its bytes, a file object, an array, or a picture in memory.

What a study has stored was read here before, and is opened by `images.open_image`.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dualread import limits
from dualread.data import dicom, dicom_files
from dualread.data.images import Decoded, decode, opened, read_file
from dualread.errors import DataError, in_a_line
from dualread.schema.data import CtWindows

# Files that say at once whether they can be read, and those that are decoded to see it, in `unreadable`.
_DECODED = 40
_LISTED = 5
_DICOM_NAMES = (".dcm", ".dicom", ".ima")
_PATH = re.compile(r"(.+)#(\d{1,9})")
_REDUCED, _MASK, _OLD_REDUCED = 1, 4, 2  # kinds of TIFF pages that are no pictures of their own
_SUBFILE, _OLD_SUBFILE = 254, 255


def locate(path: Path) -> tuple[Path, int | None]:
    """Return file and frame (from 1) that a path names: `stack.tif#2` is the second, unless a file is called so."""
    named = _PATH.fullmatch(path.name)
    if named is None or path.exists():
        return path, None
    return path.with_name(named[1]), int(named[2])


def read(given: Any, *, bits: int | None = None, ct_windows: CtWindows | None = None) -> Decoded:
    """Return an image as upright 8-bit RGB, with what a person has to know about it.

    It is a path (`stack.tif#2` is the second frame of stack.tif), the bytes of a file, a file object that is open for
    reading bytes, a Pillow image, or an array of 8-bit values [height, width] or [height, width, 3]; a DataError
    refuses all else. `bits` is as in `images.decode`. CT in DICOM is shown through `ct_windows`; a note says where they
    do not apply.
    """
    if isinstance(given, str):
        given = Path(given)
    if isinstance(given, bytearray | memoryview):
        given = bytes(given)
    if hasattr(given, "read") and not isinstance(given, Image.Image):
        given = _content(given)
    if isinstance(given, Path | bytes):
        return _of_file(given, bits, ct_windows)
    if isinstance(given, Image.Image):
        return _without_windows(decode(given, bits=bits), ct_windows)
    if isinstance(given, np.ndarray) or hasattr(given, "__array__"):
        return _without_windows(decode(_of_array(given)), ct_windows)
    raise DataError(
        f"the image is a {type(given).__name__}. Expected a path, bytes, a file object, a Pillow image, or an array."
    )


def stored(found: Decoded) -> bytes | None:
    """Return a PNG of what is shown, always of DICOM: its file is about a patient. None if the bytes show it alone."""
    if found.own:
        return None
    file = io.BytesIO()
    found.image.save(file, "PNG")
    return file.getvalue()


def unreadable(images: Sequence[Path | bytes], *, bits: int | None = None) -> list[str]:
    """Return why images cannot be read, or what is odd about them, in sentences; at most a few.

    The beginning of every file is looked at. Few are decoded, spread evenly, so that many thousands take no time.
    """
    problems: dict[str, None] = {}
    if dicoms := [image for image in images if dicom_files.is_dicom(_head(image))]:
        try:
            read(dicoms[0], bits=bits)
        except DataError as error:
            problems[f"{len(dicoms)} of {len(images)} images are DICOM: {error}"] = None
    step = max(1, len(images) // _DECODED)
    for image in images[::step]:
        if len(problems) >= _LISTED:
            break
        if problems and image in dicoms:
            continue
        try:
            decoded = read(image, bits=bits)
        except DataError as error:
            problems[str(error)] = None
        else:
            problems |= dict.fromkeys(f"{image}: {doubt}" for doubt in decoded.doubts if isinstance(image, Path))
    return list(problems)[:_LISTED]


def _head(image: Path | bytes) -> bytes:
    """Return the beginning of a file, or nothing if it cannot be read."""
    if isinstance(image, bytes):
        return image[:132]
    try:
        file, _ = locate(image)
        with file.open("rb") if file.is_file() else io.BytesIO() as stream:
            return stream.read(132)
    except (OSError, ValueError):
        return b""


def _of_file(source: Path | bytes, bits: int | None, ct_windows: CtWindows | None) -> Decoded:
    file, frame = locate(source) if isinstance(source, Path) else (None, None)
    content = read_file(file) if file else bytes(source)
    name = str(source) if file else f"an image of {len(content)} bytes"
    notes: tuple[str, ...] = () if frame is None else (f"a named frame is shown (frame {frame})",)
    if dicom_files.is_dicom(content):
        decoded = dicom.render(content, name, frame=frame, bits=bits, windows=ct_windows)
        return replace(decoded, notes=(*notes, *decoded.notes))
    try:
        if frame is None:
            frame, notes = _chosen_frame(content, name)
        decoded = decode(content, name=name, frame=frame, bits=bits)
    except DataError as error:
        if not (file and file.suffix.lower() in _DICOM_NAMES):
            raise
        raise DataError(f"{error} It is named like DICOM, but has no DICM at byte 128.") from error
    return _without_windows(replace(decoded, notes=notes), ct_windows)


def _chosen_frame(content: bytes, name: str) -> tuple[int | None, tuple[str, ...]]:
    """Return the frame (from 1) that is shown where none is named, or None for the first, and a note on the choice."""
    # Several frames are one picture if all are equal, if the others are smaller copies or masks of one (TIFF says so),
    # or if they follow the main picture of a JPEG, as cameras write.
    with opened(content, name) as image:
        if not getattr(image, "is_animated", False):
            return None, ()
        if image.format == "MPO":
            return None, ("the file holds several pictures: its main one is shown",)
        pages = _whole_pages(image) if image.format == "TIFF" else []
        if len(pages) == 1:
            return (pages[0] + 1 if pages[0] else None), ()
        if _are_equal(image):
            return None, ()
    raise DataError(
        f"{name}: has several frames, and nothing says which one is meant. Write its number behind the file's name,"
        " such as x.tif#1 for the first, or put the frame into a file of its own."
    )


def _whole_pages(image: Image.Image) -> list[int]:
    """Return the pages of a TIFF that are pictures of their own, at most the first two."""
    pages = []
    for page in range(limits.IMAGE_FRAMES):
        try:
            image.seek(page)
        except EOFError:
            break
        tags = getattr(image, "tag_v2", {})
        if not tags.get(_SUBFILE, 0) & (_REDUCED | _MASK) and tags.get(_OLD_SUBFILE) != _OLD_REDUCED:
            pages.append(page)
        if len(pages) > 1:
            break
    return pages


def _are_equal(image: Image.Image) -> bool:
    """Return whether all frames are equal; those beyond the pixels that an image may have count as others."""
    image.seek(0)
    first = _frame(image)
    try:
        for i in range(1, limits.IMAGE_FRAMES):
            if (i + 1) * image.width * image.height > limits.IMAGE_PIXELS:
                break
            image.seek(i)
            if image.size != first.shape[1::-1]:
                break
            if not np.array_equal(first, _frame(image)):
                break
    except EOFError:
        return True
    return False


def _frame(image: Image.Image) -> np.ndarray:
    deep = image.mode in ("I", "F") or image.mode.startswith("I;16")
    return np.asarray(image if deep else image.convert("RGBA"))


def _without_windows(decoded: Decoded, ct_windows: CtWindows | None) -> Decoded:
    if not ct_windows:
        return decoded
    return replace(decoded, notes=(*decoded.notes, "ct_windows does not apply: no DICOM"))


def _content(file: Any) -> bytes:
    try:
        content = file.read(limits.IMAGE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a closed file
        raise DataError(f"the file object of the image cannot be read ({error}). Open it again.") from error
    if not isinstance(content, bytes):
        raise DataError("the file object of the image gives text. Open the file in binary mode ('rb').")
    if not content:
        raise DataError("the file object of the image is at its end. Seek to its beginning: file.seek(0).")
    if len(content) > limits.IMAGE_BYTES:
        raise DataError(f"the file object of the image has more than {limits.IMAGE_BYTES} bytes. Shrink the image.")
    return content


def _of_array(source: Any) -> Image.Image:
    try:
        array = np.asarray(source)
    except Exception as error:  # such as a tensor on a GPU
        raise DataError(f"the image is no array in memory ({in_a_line(error)}). Give a numpy array.") from error
    if array.dtype != np.uint8:
        raise DataError(
            f"the image is an array of {array.dtype}. Expected 8-bit values (uint8) from 0 to 255, whose scale is"
            " known: convert it with the window that is meant."
        )
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)) or not array.size:
        raise DataError(
            f"the image is an array of shape {array.shape}. Expected [height, width] or [height, width, 3]."
        )
    return Image.fromarray(np.ascontiguousarray(array))
