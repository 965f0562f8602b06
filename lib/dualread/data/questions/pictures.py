"""The images of a data set: each decoded at most once, when it is first asked for, and never held."""

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
    """One official image: where the artifact keeps its bytes, their digest, the digest of its pixels, and its looks."""

    file: str
    sha256: str
    pixel_sha256: str
    thumbnail: bytes


@dataclass(frozen=True)
class Pictures:
    """What is known of the images that were asked for.

    Attributes:
        files: Those that can be read.
        broken: Why an image cannot be read, for each that cannot.
    """

    files: dict[Path | bytes, ImageFile] = field(default_factory=dict)
    broken: dict[Path | bytes, str] = field(default_factory=dict)

    def identity(self, row: Row) -> str:
        """Return the digest of the pixels of the row's image, or the image's name where it cannot be read.

        Nothing is raised, so that all broken images of a data set can be told together, once.
        """
        if row.image not in self.files and row.image not in self.broken:
            try:
                self.files[row.image] = _read(row.image)
            except DataError as error:
                self.broken[row.image] = str(error)
        return row.image_name if row.image in self.broken else self.files[row.image].pixel_sha256


def thumbnail(image: Image.Image) -> bytes:
    """Return the gray levels of `image`, shrunk or stretched to `SIDE` x `SIDE` pixels, row by row."""
    return image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR).tobytes()


def content(image: Path | bytes) -> bytes:
    """Return the bytes of an official image, wherever they are."""
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
