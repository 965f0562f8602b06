"""Open a file that somebody else wrote: packed or not, in one of a few encodings, and within limits."""

import codecs
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dualread import limits
from dualread.errors import DataError

_BLOCK = 1 << 20
_FOREIGN = {
    b"PAR1": "a parquet file; rename it to {stem}.parquet",
    b"PK\3\4": "an Excel file or another zip archive; save it as .csv",
    b"\xd0\xcf\x11\xe0": "an old Excel file; save it as .csv",
}


def unpacked(path: Path) -> io.BufferedReader:
    """Open a file, and unpack it if its content is gzip, up to a size that a table can have."""
    try:
        if path.is_dir():
            raise DataError(
                f"{path}: is a folder, expected a table. A study writes those of each run to"
                " results/<study>/answers/<backbone>/<actor>/<seed>."
            )
        if not path.is_file():
            why = "is no file" if path.exists() else "No such file or directory"
            raise DataError(f"{path}: cannot be read ({why}). Expected a table.")
        stream = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}). Expected a table.") from error
    return io.BufferedReader(_Unpacked(path, stream), _BLOCK) if is_packed(path) else stream


def is_packed(path: Path) -> bool:
    """Return whether the content of a file is gzip."""
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


class _Unpacked(io.RawIOBase):
    """The content of a .gz, up to a size that a table can have."""

    def __init__(self, path: Path, stream: io.BufferedReader) -> None:
        self._path, self._stream, self._content = path, stream, gzip.GzipFile(fileobj=stream)
        self._n_bytes, self._n_packed = 0, path.stat().st_size
        self._limit = min(limits.UNPACKED_BYTES, limits.unpacked_bytes(self._n_packed))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            n = self._content.readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self._path}: is a damaged .gz ({error}). Copy it again.") from error
        self._n_bytes += n
        if self._n_bytes > self._limit:
            raise DataError(
                f"{self._path}: holds more than {self._limit:,} bytes when it is unpacked, of {self._n_packed:,} packed"
                " ones. Unpack it yourself if you trust it."
            )
        return n

    def close(self) -> None:
        self._content.close()
        self._stream.close()
        super().close()


def encoding_of(path: Path) -> str:
    """Return how a file of text, all of which is read, is decoded: utf-8-sig, utf-16 by its mark, or cp1252."""
    with unpacked(path) as stream:
        start = stream.peek(4)[:4]
    for magic, what in _FOREIGN.items():
        if start.startswith(magic):
            raise DataError(f"{path}: is {what.format(stem=path.stem)}.")
    is_marked = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    problem: UnicodeDecodeError | None = None
    for encoding in ("utf-16",) if is_marked else ("utf-8-sig", "cp1252"):
        decoder, is_blank = codecs.getincrementaldecoder(encoding)(), True
        try:
            with unpacked(path) as stream:
                while block := stream.read(_BLOCK):
                    text = decoder.decode(block)
                    if "\0" in text:
                        raise DataError(f"{path}: holds NUL characters, so it is no text in UTF-8. Save it as UTF-8.")
                    is_blank = is_blank and not text.strip()
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            problem = problem or error
            continue
        if is_blank:
            raise DataError(f"{path}: has no rows, it is empty. Expected names of columns, and one row per answer.")
        return encoding
    tried = "not in UTF-16, as its first bytes say" if is_marked else "neither in UTF-8 nor in Windows-1252"
    raise DataError(f"{path}: is text {tried} ({problem}). Save it as UTF-8 (in Excel: CSV UTF-8).") from problem


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    r"""Yield the lines of a file with their ends: \n, \r\n or \r."""
    with unpacked(path) as stream, io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
        while line := text.readline(limits.LINE_CHARACTERS):
            if len(line) == limits.LINE_CHARACTERS:
                raise DataError(f"{path}: a line has more than {limits.LINE_CHARACTERS:,} characters. Is it a table?")
            yield line


def plain_names(path: Path | str, names: Iterable[str]) -> list[str]:
    """Return names of columns without spaces around them, of which no two are equal then."""
    plain = [str(name).strip() for name in names]
    if repeated := [name for name, n in Counter(plain).items() if n > 1]:
        raise DataError(f"{path}: column {repeated[0]!r} occurs more than once. Rename or delete the others.")
    return plain
