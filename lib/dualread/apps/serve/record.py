"""What a server keeps of its answers if asked to: no text of a question, and enough to judge the answers later.

A record is a table for `dualread evaluate`, one JSON line per answer that readers judge; one that does not exist has no
confidence. As soon as the gold answers are known, a column with them is all that is missing.
"""

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.errors import DataError
from dualread.progress import say

_START = b'{"sample_id": '  # of a line
_LONGEST = 2**20  # bytes of a line


class Record:
    """A file to which lines are added; one that exists is continued, without a last line that was cut off.

    Raises:
        DataError: The file cannot be written, or is no record.
    """

    def __init__(self, file: Path):
        try:
            if file.is_file():
                _start_a_line(file)
            self._stream = file.open("ab", buffering=0)
        except OSError as error:
            raise DataError(f"{file}: cannot be written ({error.strerror}). Give another --record.") from error

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one line; where that is impossible, say so: answers go on."""
        line = (json.dumps(row) + "\n").encode()  # in ASCII: some readers take U+2028 in an id for the end of a line
        try:
            if (written := self._stream.write(line)) < len(line):  # the disk is full
                self._stream.truncate(self._stream.tell() - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            say(f"--record: an answer is not recorded ({error.strerror})")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _start_a_line(file: Path) -> None:
    """Remove the last line if a server that was killed has written a part of it alone."""
    size = file.stat().st_size
    with file.open("rb+") as stream:
        stream.seek(max(0, size - _LONGEST))
        *_, last = stream.read().split(b"\n")
        if not last:
            return
        if last[: len(_START)] != _START[: len(last)]:
            raise DataError(f"{file}: is no record of answers. Give another --record.")
        stream.truncate(size - len(last))
    say(f"{file}: the last line was cut off, and is removed")
