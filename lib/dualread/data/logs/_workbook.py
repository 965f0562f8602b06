"""Refuse an .xlsx that would take far more memory than its file suggests.

The reader keeps one value for every cell between the first and the last that are filled, so one cell in the last row
and column of a sheet takes hundreds of gigabytes.
"""

import re
import string
import zipfile
from pathlib import Path

from dualread.data.logs._files import Left
from dualread.errors import DataError

_LARGEST_SHEET = 20_000_000  # cells
_BLOCK = 1 << 20
_PLACE = re.compile(rb"""\sr\s*=\s*["']\s*([A-Za-z]{0,3})([0-9]{1,9})""")
_LONGEST_PLACE = 64  # bytes of a match of _PLACE; one may lie across two blocks


def check_workbook(path: Path) -> None:
    """Look through an .xlsx.

    Raises:
        DataError: It unpacks to more than 200 times its size (but 64 MB are always allowed), or to more than 2 GB; or
            a sheet has more than 20 million cells between its corners.
        zipfile.BadZipFile: It is damaged.
    """
    left = Left(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            rows = columns = 0
            last = b""
            with archive.open(member) as stream:
                while block := stream.read(_BLOCK):
                    left.unpack(len(block))
                    if not member.filename.startswith("xl/worksheets/"):
                        continue
                    for letters, number in _PLACE.findall(last + block):
                        rows, columns = max(rows, int(number)), max(columns, _column(letters))
                    last = block[-_LONGEST_PLACE:]
            if rows * columns > _LARGEST_SHEET:
                raise DataError(
                    f"{path}: {member.filename} reaches to row {rows:,} and column {columns:,}, expected at most"
                    f" {_LARGEST_SHEET:,} cells. Delete the cells far from the table, or save it as .tsv."
                )


def _column(letters: bytes) -> int:
    """Return the number of a column, such as 28 of "AB"; 1 without letters, as in the number of a row."""
    number = 0
    for letter in letters.decode().lower():
        number = 26 * number + string.ascii_lowercase.index(letter) + 1
    return max(number, 1)
