"""Count the items in a DICOM file before pydicom makes objects of them; a small file may hold millions of them."""

import io
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from dualread.errors import DataError

_ITEM = (b"\xfe\xff\x00\xe0", b"\xff\xfe\xe0\x00")  # the tag in either order of bytes
_MOST = 200_000  # each takes 100 microseconds and 1.4 kB; thousands of frames have some ten each
_BLOCK = 1 << 24


def check_items(source: Path | bytes, name: str) -> None:
    """Refuse a file with more sequence items and fragments than any picture has.

    Raises:
        DataError: It has.
    """
    if isinstance(source, bytes):
        n = _count(io.BytesIO(source))
    else:
        status = source.stat()
        n = _in_file(source, status.st_size, status.st_mtime_ns)
    if n > _MOST:
        raise DataError(f"{name}: a DICOM file with {n:,} items, expected at most {_MOST:,}. Export the picture alone.")


@lru_cache(maxsize=1 << 10)  # the frames of a large file are read one by one
def _in_file(path: Path, size: int, changed: int) -> int:
    with path.open("rb") as file:
        return _count(file)


def _count(file: BinaryIO) -> int:
    n, last = 0, b""
    while block := file.read(_BLOCK):
        text = last + block
        n += sum(map(text.count, _ITEM))
        last = text[-3:]
    return n
