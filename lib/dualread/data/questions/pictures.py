"""Read the images of a data set: each is decoded at most once, on first use, and its pixels are not kept in memory."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from dualread.data.datasets.base import Picture, Row
from dualread.data.given_images import locate, read, stored
from dualread.data.images import Decoded, extension, pixel_sha256, read_file
from dualread.errors import DataError
from dualread.schema.data import CtWindows

SIDE = 64  # of a thumbnail


@dataclass(frozen=True, kw_only=True)
class ImageFile:
    """One official image, whose copy `file` (relative to the artifact) is named by the digest of its bytes.

    The copy is `rendered` if it is a PNG of what is shown, because the file alone does not say it, or is DICOM. A
    `linked` image is behind a link out of the folder of the data set. Others are as in `images.Decoded`; notes and
    doubts without what is in parentheses.
    """

    file: str
    pixel_sha256: str
    thumbnail: bytes
    private: bool = False
    rendered: bool = False
    linked: bool = False
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pictures:
    """The images that were read so far, and for each image that cannot be read, the reason (`broken`).

    `bits` and `ct_windows` are as in `given_images.read`; `folder` is that of the data set, None where all links are
    ours.
    """

    bits: int | None = None
    ct_windows: CtWindows | None = None
    folder: Path | None = None
    files: dict[Path | bytes, ImageFile] = field(default_factory=dict)
    broken: dict[Path | bytes, str] = field(default_factory=dict)

    def identity(self, row: Row) -> str:
        """Return the pixel digests of the row's images; one that cannot be read has its name, to be reported with
        others.
        """
        return " ".join(map(self._identity, row.images))

    def _identity(self, picture: Picture) -> str:
        source = picture.source
        if source not in self.files and source not in self.broken:
            try:
                self.files[source] = self._read(source)
            except DataError as error:
                self.broken[source] = str(error)
        return picture.name if source in self.broken else self.files[source].pixel_sha256

    def copy(self, image: Path | bytes) -> bytes:
        """Return the bytes of the copy of an image that can be read: its own, or a PNG where these show too little."""
        return _copy(image, self._shown(image))[0] if self.files[image].rendered else content(image)

    def _shown(self, image: Path | bytes) -> Decoded:
        return read(image, bits=self.bits, ct_windows=self.ct_windows)

    def _read(self, image: Path | bytes) -> ImageFile:
        decoded = self._shown(image)
        copy, suffix = _copy(image, decoded)
        return ImageFile(
            file=f"images/{hashlib.sha256(copy).hexdigest()}{suffix}",
            pixel_sha256=pixel_sha256(decoded.image),
            thumbnail=thumbnail(decoded.image),
            private=decoded.private,
            rendered=not decoded.own,
            linked=self.folder is not None and leads_out(image, self.folder),
            notes=tuple(_kind(note) for note in decoded.notes),
            doubts=tuple(_kind(doubt) for doubt in decoded.doubts),
        )


def leads_out(image: Path | bytes, folder: Path) -> bool:
    """Return whether an image is behind a link to a place outside its folder, which may be any file of this user."""
    if isinstance(image, bytes):
        return False
    return not locate(image)[0].resolve().is_relative_to(folder.resolve())


def thumbnail(image: Image.Image) -> bytes:
    """Return the gray levels of `image`, resized to `SIDE` x `SIDE` pixels, row by row, 8 bits each."""
    return image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR).tobytes()


def content(image: Path | bytes) -> bytes:
    """Return the bytes of an official image, which is a file or already bytes."""
    return read_file(image) if isinstance(image, Path) else image


def _copy(image: Path | bytes, decoded: Decoded) -> tuple[bytes, str]:
    """Return the bytes and the extension of the copy of an image."""
    png = stored(decoded)
    return (content(image), extension(image)) if png is None else (png, ".png")


def _kind(note: str) -> str:
    return note.partition(" (")[0]
