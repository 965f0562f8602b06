"""The one door for image files: open them as upright 8-bit RGB pictures, and identify images by their content.

Nothing else in the library lets Pillow open a file (DICOM is `dualread.data.dicom`). What the file says about how it is
to be shown is followed, or the file is refused by name.
"""

import contextlib
import hashlib
import io
import stat
import struct
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from dualread import limits
from dualread.data.gray import SAY_BITS, right_aligned, to_8_bits
from dualread.errors import DataError

# Pillow knows forty more. Some start a program (EPS: Ghostscript), most are hardly ever read by anyone.
FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
FEW_LEVELS = 4
_LITTLE_CONTRAST = 16  # of 255
_DARK_COLOR = 64  # of 255

# Formats whose name is not their usual extension; MPO is JPEG with more than one picture in the file.
_EXTENSIONS = {"jpeg": "jpg", "mpo": "jpg", "jpeg2000": "jp2"}
_PNG = b"\x89PNG\r\n\x1a\n"
_ORIENTATION = 0x0112  # the EXIF tag
# Tags of TIFF.
_BITS, _PHOTOMETRIC, _MAX_VALUE, _SAMPLE_FORMAT = 258, 262, 281, 339
_WHITE_IS_ZERO, _SIGNED = 0, 2


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """A decoded image: upright 8-bit RGB, and what a person has to know about it.

    `notes` say how it is shown where there was a choice, such as a frame or a window, with a detail in parentheses;
    `doubts` why little of it can be seen. The file is its `own` if it alone says how it is shown: otherwise its bytes
    are of no use without what was said beside it. It is `private` if it is about a patient (DICOM), so that only the
    picture may be kept.
    """

    image: Image.Image
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    own: bool = True
    private: bool = False


def open_image(source: Path | bytes) -> Image.Image:
    """Return an image as upright 8-bit RGB, see `decode`; of several frames, the first."""
    return decode(source).image


def decode(
    source: "Path | bytes | Image.Image", *, name: str | None = None, frame: int | None = None, bits: int | None = None
) -> Decoded:
    """Return an image as upright 8-bit RGB, with what a person has to know about it.

    EXIF orientation is applied. Transparency is composited on the background that a PNG names, otherwise on black, the
    background of medical images. Gray levels of 9 to 16 bits are scaled by the bits that count, see `gray.to_8_bits`;
    WhiteIsZero of TIFF is followed. Pillow converts CMYK, palette, bilevel and the other 8-bit modes. Color profiles
    and gamma are not applied, as the processors of models do not apply them.

    The `frame` counts from 1; without one, the first is shown, which is the file's own. `bits` says how many of a
    16-bit gray picture count if the file does not say it. A DataError refuses what is missing, truncated, too large, of
    no format in `FORMATS`, or has values whose range is unknown.
    """
    if isinstance(source, Image.Image):
        with refusing(name or "the image"):
            decoded = _shown(source, name or "the image", bits, b"")
    else:
        name = name or (str(source) if isinstance(source, Path) else f"an image of {len(source)} bytes")
        content = read_file(source) if isinstance(source, Path) else source
        with opened(content, name) as image:
            if frame is not None:
                _seek(image, frame, name)
            decoded = _shown(image, name, bits, content)
    return replace(decoded, own=decoded.own and frame is None, doubts=decoded.doubts or hard_to_see(decoded.image))


def hard_to_see(image: Image.Image) -> tuple[str, ...]:
    """Return why hardly anything is to be seen in an RGB picture: a single color, few gray levels, little contrast."""
    levels = [level for level, n in enumerate(image.convert("L").histogram()) if n]
    if image.getcolors(1):
        return (f"the picture has a single color {image.getpixel((0, 0))}",)
    if len(levels) < FEW_LEVELS:
        return (f"the picture has only {len(levels)} gray levels",)
    if levels[-1] - levels[0] < _LITTLE_CONTRAST:
        return (f"the picture has little contrast (gray levels {levels[0]} to {levels[-1]} of 0 to 255)",)
    return ()


def extension(source: Path | bytes) -> str:
    """Return the usual extension, such as .jpg, of the format that a readable image has, whatever its name says."""
    with _opened(source if isinstance(source, bytes) else source.read_bytes()) as image:
        image_format = str(image.format).lower()
    return f".{_EXTENSIONS.get(image_format, image_format)}"


def shown_alike(content: bytes) -> str | None:
    """Return the format of an image that every program shows as `open_image` does; None for other images.

    These are upright 8-bit pictures in gray or RGB, with one frame and no transparency.
    """
    try:
        with _opened(content) as image:
            plain = image.mode in ("RGB", "L") and "transparency" not in image.info
            plain = plain and not getattr(image, "is_animated", False) and not _is_deep_color(image, content)
            return image.format if plain and image.getexif().get(_ORIENTATION, 1) == 1 else None
    except Exception:  # as in `decode`, which says what is wrong with the file
        return None


def pixel_sha256(image: Image.Image) -> str:
    """Return the digest of the size and the RGB pixels of `image`; equal pictures have equal digests."""
    if image.mode != "RGB":
        raise ValueError(f"pixel_sha256: the image has mode {image.mode}, expected RGB; read it with open_image.")
    return hashlib.sha256(f"{image.width}x{image.height}\n".encode() + image.tobytes()).hexdigest()


def content_sha256(image: Path | Image.Image) -> str:
    """Return the digest of a file's bytes, or of the size and the RGB pixels of a decoded image, which differ."""
    if isinstance(image, Image.Image):
        return pixel_sha256(image)
    return hashlib.sha256(read_file(image)).hexdigest()


def read_file(path: Path) -> bytes:
    """Return the bytes of an image file; a DataError refuses a pipe, which would never end, and large files."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{path}: the image cannot be read (it is no plain file). Give an image file.")
        if status.st_size > limits.IMAGE_BYTES:
            raise DataError(
                f"{path}: has {status.st_size} bytes; at most {limits.IMAGE_BYTES} of an image are read. Shrink it."
            )
        return path.read_bytes()
    except FileNotFoundError as error:
        why = f"it cannot be read ({error.strerror})"
        raise DataError(f"{path}: no such image file; {why}. Check the path, or restore the file.") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: the image cannot be read ({reason}). Restore the file.") from error


def n_pixels(content: bytes) -> int:
    """Return how many pixels the first picture of a file has by its header; 0 where Pillow does not know the file."""
    try:
        with warnings.catch_warnings(action="ignore"), _opened(content) as image:
            return image.width * image.height
    except Exception:  # as in `decode`, which says what is wrong with the file
        return 0


def check_size(name: Path | str, width: int, height: int) -> None:
    """Refuse an image with more than `limits.IMAGE_PIXELS` pixels."""
    if width * height > limits.IMAGE_PIXELS:
        raise DataError(_too_large(name, f"{width} x {height}"))


@contextlib.contextmanager
def opened(content: bytes, name: str) -> Iterator[Image.Image]:
    """Let Pillow open a file; what it raises becomes a sentence, as long as the image is in use."""
    with refusing(name), _opened(content) as image:
        if image.format in ("JPEG", "MPO") and content.count(b"\xff\xda") > limits.JPEG_SCANS:
            raise DataError(f"{name}: a JPEG of more than {limits.JPEG_SCANS} scans. Save it again as baseline JPEG.")
        check_size(name, *image.size)
        yield image


@contextlib.contextmanager
def refusing(name: str) -> Iterator[None]:
    """Turn what Pillow raises for a damaged or hostile file into a DataError of one sentence."""
    try:
        with warnings.catch_warnings(), _whole_files():
            warnings.simplefilter("ignore")  # what Pillow finds odd but reads
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except DataError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(_too_large(name, str(error))) from error
    except UnidentifiedImageError as error:
        kinds = f"it is none of {', '.join(FORMATS)}"
        raise DataError(f"{name}: cannot be decoded ({kinds}); it is truncated or not an image. Restore it.") from error
    except Exception as error:  # Pillow's decoders raise errors of all kinds for damaged files
        reason = f"cannot be decoded ({error}); it is truncated or not an image"
        raise DataError(f"{name}: {reason}. Restore the file.") from error


def _seek(image: Image.Image, frame: int, name: str) -> None:
    most, n_pixels = limits.IMAGE_FRAMES, image.width * image.height
    if not 1 <= frame <= most or frame * n_pixels > most * limits.IMAGE_PIXELS:
        raise DataError(f"{name}: frame {frame}, expected 1 to {most}. Put the frame into a file of its own.")
    try:
        image.seek(frame - 1)
    except EOFError as error:
        raise DataError(f"{name}: has no frame {frame}. Frames count from 1. Correct the number.") from error


_turn = threading.Lock()
_told: list[bool] = []  # what Pillow had been told when each of the pictures was begun that are being decoded


@contextlib.contextmanager
def _whole_files() -> Iterator[None]:
    """Let Pillow refuse half of a file, which it would fill with gray where another library has told it to."""
    with _turn:
        _told.append(ImageFile.LOAD_TRUNCATED_IMAGES)
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        yield
    finally:
        with _turn:
            before = _told.pop()  # the last one out takes what the first one found
            if not _told:
                ImageFile.LOAD_TRUNCATED_IMAGES = before


def _opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content), formats=FORMATS)


def _too_large(name: Path | str, size: str) -> str:
    return f"{name}: the image is too large ({size}); at most {limits.IMAGE_PIXELS} pixels are read. Shrink it."


def _shown(image: Image.Image, name: str, bits: int | None, content: bytes) -> Decoded:
    """Decode the frame that `image` shows; `content` is the file, or empty."""
    check_size(name, *image.size)
    image.load()
    upright = image
    if image.getexif().get(_ORIENTATION, 1) != 1:  # otherwise Pillow would copy it
        upright = ImageOps.exif_transpose(image)
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _gray(image, upright, name, bits, content)
    if image.mode == "LAB" or _signed(image):
        kind = "CIELAB colors" if image.mode == "LAB" else "signed values"
        raise DataError(f"{name}: has {kind}, which are not read. Export it as RGB or gray with 8 bits.")
    if "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info:
        layer = upright if upright.mode == "RGBA" else upright.convert("RGBA")
        below = Image.new("RGBA", layer.size, (*_background(image, content, dict(_png_chunks(content))), 255))
        shown = Image.alpha_composite(below, layer).convert("RGB")
    else:
        shown = upright.convert("RGB")
    deep = _is_deep_color(image, content)
    if deep and bits != 16:
        _refuse_dark_color(shown, name)
    return Decoded(image=shown, own=not deep or bits is None)


def _gray(image: Image.Image, upright: Image.Image, name: str, bits: int | None, content: bytes) -> Decoded:
    """Decode gray levels of more than 8 bits."""
    chunks = dict(_png_chunks(content))
    values = np.asarray(upright)
    low, high = values.min(), values.max()
    # PGM alone is decoded as 32-bit integers that are scaled to 16 bits by the maximum that the file states.
    wide = image.mode == "F" or (image.mode == "I" and image.format not in ("PPM", "PNG", None))
    if wide or low < 0 or high > 65535:
        kind = "signed" if _signed(image) else "32-bit"
        raise DataError(
            f"{name}: {kind} values {low:g}..{high:g} (mode {image.mode}); at most unsigned 16-bit gray is read. Export"
            " it with 8 bits."
        )
    values = values.astype(np.uint16)
    stated = _stated_bits(image, values, chunks)
    suffices = stated is not None or bits is None
    if getattr(image, "tag_v2", {}).get(_PHOTOMETRIC, None) == _WHITE_IS_ZERO:
        top = np.uint16((1 << (stated or bits or 16)) - 1)
        if high > top:
            raise DataError(f"{name}: gray values up to {high}, more than {top}. Correct the number of bits.")
        # The dark values of a negative are bright: whether bits are missing is seen before it is turned.
        to_8_bits(values, name, stated=stated, given=bits)
        values, stated = top - values, stated or bits or 16
    levels, doubts = to_8_bits(values, name, stated=stated, given=bits)
    if isinstance(transparent := image.info.get("transparency"), int):
        levels[values == transparent] = _background(image, content, chunks)[0]
    shown = Image.fromarray(levels).convert("RGB")
    return Decoded(image=shown, doubts=tuple(doubts), own=suffices)


def _stated_bits(image: Image.Image, values: np.ndarray, chunks: dict[bytes, bytes]) -> int | None:
    """Return how many of 16 bits count by the file; None if it does not say."""
    if image.format in ("PPM", "JPEG2000"):
        return 16  # the decoder has scaled by what the file states
    if tags := getattr(image, "tag_v2", None):
        stored, most = tags.get(_BITS, (16,))[0], tags.get(_MAX_VALUE)
        # The maximum may also be that of the picture itself, by which it must not be scaled.
        top = most[0] if isinstance(most, tuple) else most
        full = isinstance(top, int) and (top + 1) in (1 << n for n in range(9, 17)) and values.max() <= top
        return stored if stored != 16 else int(top).bit_length() if full and top is not None else None
    if chunks.get(b"sBIT") and 8 < (n := chunks[b"sBIT"][0]) <= 16:
        return n if right_aligned(values, n) else 16
    return None


def _signed(image: Image.Image) -> bool:
    return _SIGNED in getattr(image, "tag_v2", {}).get(_SAMPLE_FORMAT, ())


def _is_deep_color(image: Image.Image, content: bytes) -> bool:
    """Return whether a color image has 16 bits per channel, of which Pillow keeps the upper 8."""
    if image.format == "PNG":
        return content[24:25] == b"\x10" and image.mode in ("RGB", "RGBA", "LA")
    return image.format == "TIFF" and 16 in image.tag_v2.get(_BITS, ()) and not image.mode.startswith("I")  # type: ignore[attr-defined]


def _refuse_dark_color(shown: Image.Image, name: str) -> None:
    highest = max(high for _, high in shown.getextrema())  # type: ignore[misc]
    if 0 < highest < _DARK_COLOR:
        raise DataError(
            f"{name}: its 16-bit colors end below {(highest + 1) * 256}, so that it would be nearly black. Export it"
            f" with 8 bits per color; or say 16 to show it dark, as it is: {SAY_BITS}."
        )


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the chunks of a PNG before its pixels that Pillow does not read: significant bits and background."""
    at = len(_PNG)
    while content.startswith(_PNG) and at + 8 <= len(content):
        size, kind = struct.unpack(">I4s", content[at : at + 8])
        if kind == b"IDAT":
            return
        if kind in (b"sBIT", b"bKGD"):
            yield kind, content[at + 8 : at + 8 + min(size, 6)]
        at += size + 12


def _background(image: Image.Image, content: bytes, chunks: dict[bytes, bytes]) -> tuple[int, int, int]:
    """Return the background that a PNG names, for transparent pixels; black if it names none."""
    chunk = chunks.get(b"bKGD", b"")
    if image.mode == "P" and chunk:
        colors = (image.getpalette("RGB") or [])[3 * chunk[0] : 3 * chunk[0] + 3]
    else:
        top = (1 << content[24]) - 1 if chunk else 1  # of the file's bits per channel
        colors = [min(255, value * 255 // top) for (value,) in struct.iter_unpack(">H", chunk)]
    red, green, blue = colors * 3 if len(colors) == 1 else colors if len(colors) == 3 else (0, 0, 0)
    return red, green, blue
