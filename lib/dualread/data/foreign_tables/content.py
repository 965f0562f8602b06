"""Open a file that somebody else wrote: packed or not, in one of a few encodings, and within limits.

The file is looked through once before it is read, so that its encoding holds for all of it.
"""

import codecs
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.errors import DataError

LARGEST_ROWS = 20_000_000
LARGEST_COLUMNS = 5_000
_LONGEST_LINE = 64_000_000  # characters
_LARGEST_UNPACKED = 4_000_000_000  # bytes of a .gz, of which nobody sees on disk how large it is
_ALWAYS_UNPACKED = 64_000_000
_LARGEST_RATIO = 200  # tables are packed to a third or a twentieth of their size
_BLOCK = 1 << 20
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_OTHERS = {
    b"PAR1": "a parquet file; rename it to {stem}.parquet",
    b"PK\3\4": "an Excel file or another zip archive; save it as .csv",
    b"\xd0\xcf\x11\xe0": "an old Excel file; save it as .csv",
}


@dataclass(frozen=True, kw_only=True)
class Content:
    """What was found in a file of text.

    Attributes:
        path: The file.
        encoding: How to decode it: utf-8-sig, utf-16 or cp1252.
        has_escaped_quotes: Whether a backslash stands before a double quote anywhere.
        is_empty: Whether it holds white space only.
    """

    path: Path
    encoding: str
    has_escaped_quotes: bool
    is_empty: bool

    def lines(self) -> Iterator[str]:
        r"""Yield the lines with their ends: \n, \r\n or \r.

        Raises:
            DataError: A line is longer than 64 million characters.
        """
        with unpacked(self.path) as stream, io.TextIOWrapper(stream, encoding=self.encoding, newline="") as text:
            while line := text.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    raise DataError(f"{self.path}: a line has more than {_LONGEST_LINE:,} characters. Is it a table?")
                yield line

    def text(self, n: int = -1) -> str:
        """Return the whole text, or its first n characters."""
        with unpacked(self.path) as stream, io.TextIOWrapper(stream, encoding=self.encoding, newline="") as text:
            return text.read(n)

    @property
    def encoding_words(self) -> str:
        """The encoding as people know it."""
        return {"utf-8-sig": "utf-8", "cp1252": "windows-1252"}.get(self.encoding, self.encoding)


def look_through(path: Path) -> Content:
    """Return how a file of text is to be decoded.

    Raises:
        DataError: It cannot be read, is no text, or is larger unpacked than a table can be.
    """
    start = next(_blocks(path), b"")
    for magic, what in _OTHERS.items():
        if start.startswith(magic):
            raise DataError(f"{path}: is {what.format(stem=path.stem)}.")
    marked = next((name for bom, name in _BOMS.items() if start.startswith(bom)), None)
    problem: UnicodeDecodeError | None = None
    for encoding in ("utf-8-sig", "cp1252") if marked is None else (marked,):
        try:
            escaped, blank = _seen(path, encoding)
        except UnicodeDecodeError as error:
            problem = problem or error
        else:
            return Content(path=path, encoding=encoding, has_escaped_quotes=escaped, is_empty=blank)
    tried = "neither in UTF-8 nor in Windows-1252" if marked is None else f"not in {marked}, as its first bytes say"
    raise DataError(f"{path}: is text {tried} ({problem}). Save it as UTF-8 (in Excel: CSV UTF-8).") from problem


def _seen(path: Path, encoding: str) -> tuple[bool, bool]:
    """Return whether the text has a backslash before a quote, and whether it is blank.

    Raises:
        UnicodeDecodeError: It has another encoding.
        DataError: It holds NUL characters.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    escaped, blank, last = False, True, ""
    for block in _blocks(path):
        text = last + decoder.decode(block)
        if "\0" in text:
            raise DataError(f"{path}: holds NUL characters, so it is no text in UTF-8. Save it as UTF-8.")
        escaped = escaped or '\\"' in text
        blank = blank and (not text or text.isspace())
        last = text[-1:]
    decoder.decode(b"", final=True)
    return escaped, blank


def _blocks(path: Path) -> Iterator[bytes]:
    with unpacked(path) as stream:
        while block := stream.read(_BLOCK):
            yield block


def unpacked(path: Path) -> io.BufferedReader:
    """Open a file, and unpack it if its content is gzip.

    Raises:
        DataError: It cannot be opened, or is no file.
    """
    try:
        if not path.is_file():
            why = "Is a directory" if path.is_dir() else "is no file" if path.exists() else "No such file or directory"
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
        self._path, self._stream, self._inner = path, stream, gzip.GzipFile(fileobj=stream)
        self._n, size = 0, path.stat().st_size
        self._limit = min(_LARGEST_UNPACKED, max(_ALWAYS_UNPACKED, _LARGEST_RATIO * size))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            n = self._inner.readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self._path}: is a damaged .gz ({error}). Copy it again.") from error
        self._n += n
        if self._n > self._limit:
            raise DataError(
                f"{self._path}: holds more than {self._limit:,} bytes when it is unpacked, of"
                f" {self._path.stat().st_size:,} packed ones. Unpack it yourself if you trust it."
            )
        return n

    def close(self) -> None:
        self._inner.close()
        self._stream.close()
        super().close()


def plain_names(path: Path | str, names: Iterable[str]) -> list[str]:
    """Return names of columns without spaces around them.

    Raises:
        DataError: Two are equal then.
    """
    plain = [name.strip() for name in names]
    if twice := [name for name, n in Counter(plain).items() if n > 1]:
        raise DataError(f"{path}: column {twice[0]!r} occurs more than once. Rename or delete the others.")
    return plain
