"""Open image files of any format as upright 8-bit RGB pictures, and identify images by their content."""

import hashlib
import io
import struct
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from dualread.errors import DataError

# Pillow's own limit against decompression bombs, fixed here because other libraries may change Pillow's setting.
MAX_IMAGE_PIXELS = 89_478_485

# Formats whose name is not their usual extension; MPO is JPEG with more than one picture in the file.
_EXTENSIONS = {"jpeg": "jpg", "mpo": "jpg", "jpeg2000": "jp2"}


def open_image(source: Path | bytes) -> Image.Image:
    """Return an image as upright 8-bit RGB; of an image with several frames, the first.

    EXIF orientation is applied. Transparency is composited on black, the background of medical images. 16-bit gray is
    scaled by the full range of its type (0..65535 to 0..255), never by the range of the image. So equal gray levels
    stay equal across images, and a 12-bit image in a 16-bit file looks dark. Pillow converts CMYK, palette, bilevel and
    the other 8-bit modes.

    Args:
        source: The image file, or its bytes.

    Raises:
        DataError: The file is missing, truncated, or not an image, has more than `MAX_IMAGE_PIXELS` pixels, or has
            32-bit values, whose range is unknown.
    """
    path = source if isinstance(source, Path) else f"an image of {len(source)} bytes"
    try:
        with warnings.catch_warnings(), _opened(source) as image:
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            _check_size(path, image)
            image.load()
            return as_rgb(image, path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such image file. Check the path, or restore the file.") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(_too_large(path, str(error))) from error
    except (OSError, SyntaxError, ValueError, EOFError, struct.error) as error:
        reason = f"cannot be decoded ({error}); it is truncated or not an image"
        raise DataError(f"{path}: {reason}. Restore the file.") from error


def as_rgb(image: Image.Image, name: Path | str) -> Image.Image:
    """Return a decoded image as upright 8-bit RGB, as `open_image` does; `name` is its name in errors.

    Raises:
        DataError: It has more than `MAX_IMAGE_PIXELS` pixels, or 32-bit values.
    """
    _check_size(name, image)
    return _to_rgb(name, ImageOps.exif_transpose(image))


def extension(source: Path | bytes) -> str:
    """Return the usual extension, such as .jpg, of the format that a readable image has, whatever its name says."""
    with _opened(source) as image:
        found = str(image.format).lower()
    return f".{_EXTENSIONS.get(found, found)}"


def pixel_sha256(image: Image.Image) -> str:
    """Return the digest of the size and the RGB pixels of `image`; equal pictures have equal digests.

    Raises:
        ValueError: The image is not in mode RGB.
    """
    if image.mode != "RGB":
        raise ValueError(f"pixel_sha256: the image has mode {image.mode}, expected RGB; read it with open_image.")
    return hashlib.sha256(f"{image.width}x{image.height}\n".encode() + image.tobytes()).hexdigest()


def content_sha256(image: Path | Image.Image) -> str:
    """Return the digest of a file's bytes, or of the size and the RGB pixels of a decoded image.

    Different images have different digests, whatever their names are. A file and the image decoded from it have
    different digests too.

    Raises:
        DataError: The file cannot be read.
    """
    if isinstance(image, Image.Image):
        return pixel_sha256(image)
    try:
        return hashlib.sha256(image.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{image}: the image cannot be read ({error.strerror}). Restore the file.") from error


def _opened(source: Path | bytes) -> Image.Image:
    return Image.open(source if isinstance(source, Path) else io.BytesIO(source))


def _check_size(path: Path | str, image: Image.Image) -> None:
    if image.width * image.height > MAX_IMAGE_PIXELS:
        raise DataError(_too_large(path, f"{image.width} x {image.height}"))


def _too_large(path: Path | str, size: str) -> str:
    return f"{path}: the image is too large ({size}); at most {MAX_IMAGE_PIXELS} pixels are read. Shrink the image."


def _to_rgb(path: Path | str, image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return Image.fromarray(_gray_to_8_bit(path, image)).convert("RGB")
    if "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, (0, 0, 0, 255)), layer).convert("RGB")
    return image.convert("RGB")


def _gray_to_8_bit(path: Path | str, image: Image.Image) -> np.ndarray:
    values = np.asarray(image).astype(np.float64)
    # Some decoders return 16-bit gray as 32-bit integers. The range of larger values is unknown.
    if image.mode == "F" or values.min() < 0 or values.max() > 65535:
        extent = f"{values.min():g}..{values.max():g}"
        raise DataError(
            f"{path}: 32-bit values {extent} (mode {image.mode}); at most 16-bit gray is read. Export it with 8 bits."
        )
    return np.floor(values / 257 + 0.5).astype(np.uint8)
