"""Read the images of a data set: each is decoded at most once, on first use, and its pixels are not kept in memory."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from dualread.data.datasets.base import Row
from dualread.data.images import extension, open_image, pixel_sha256
from dualread.errors import DataError

SIDE = 64  # of a thumbnail


@dataclass(frozen=True, kw_only=True)
class ImageFile:
    """One official image.

    Attributes:
        file: Path of its copy, relative to the artifact.
        sha256: Digest of the file's bytes.
        pixel_sha256: Digest of its size and its RGB pixels.
        thumbnail: See `thumbnail`.
    """

    file: str
    sha256: str
    pixel_sha256: str
    thumbnail: bytes


@dataclass(frozen=True)
class Pictures:
    """The images that were read so far.

    Attributes:
        files: The images that can be read.
        broken: For each image that cannot be read, the reason.
    """

    files: dict[Path | bytes, ImageFile] = field(default_factory=dict)
    broken: dict[Path | bytes, str] = field(default_factory=dict)

    def identity(self, row: Row) -> str:
        """Return the pixel digest of the row's image, or the image's name if it cannot be read.

        Nothing is raised, so that all broken images of a data set can be reported together.
        """
        if row.image not in self.files and row.image not in self.broken:
            try:
                self.files[row.image] = _read(row.image)
            except DataError as error:
                self.broken[row.image] = str(error)
        return row.image_name if row.image in self.broken else self.files[row.image].pixel_sha256


def thumbnail(image: Image.Image) -> bytes:
    """Return the gray levels of `image`, resized to `SIDE` x `SIDE` pixels, row by row, 8 bits each."""
    return image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR).tobytes()


def content(image: Path | bytes) -> bytes:
    """Return the bytes of an official image, which is a file or already bytes."""
    return image.read_bytes() if isinstance(image, Path) else image


def _read(image: Path | bytes) -> ImageFile:
    opened = open_image(image)
    sha256 = hashlib.sha256(content(image)).hexdigest()
    return ImageFile(
        file=f"images/{sha256}{extension(image)}",
        sha256=sha256,
        pixel_sha256=pixel_sha256(opened),
        thumbnail=thumbnail(opened),
    )
