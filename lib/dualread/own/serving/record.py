"""What a server keeps of its answers if asked to: no text of a question, and enough to judge the answers later.

A record is a table for `dualread evaluate`, one JSON line per answer with a confidence: as soon as the gold answers are
known, a column with them is all that is missing.
"""

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dualread.errors import DataError
from dualread.own.drift import ConfidenceSample
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


def read_record(file: Path, method: str) -> ConfidenceSample:
    """Return the confidences of a record.

    Raises:
        DataError: It cannot be read, has no answers, or has those of another method.
    """
    confidences, images = [], []
    try:
        with file.open("rb") as stream:  # whose lines end with a line feed alone
            for number, line in enumerate(stream, start=1):
                try:
                    row = json.loads(line)
                    confidence, image, of = float(row["confidence"]), str(row["image_id"]), row["method"]
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise DataError(
                        f"{file}: line {number} is no line of a record ({error!r}). Expected a file that `dualread"
                        " serve --record` wrote; delete a last line that was cut off."
                    ) from error
                if of != method or not 0 <= confidence <= 1:
                    raise DataError(
                        f"{file}: line {number} has the confidence {confidence} of {of!r:.50}. Expected one from 0 to 1"
                        f" of {method!r}, the method of the bundle."
                    )
                confidences.append(confidence)
                images.append(image)
    except OSError as error:
        raise DataError(
            f"{file}: cannot be read ({error}). Give a file that `dualread serve --record` wrote."
        ) from error
    if not confidences:
        raise DataError(f"{file}: has no answers yet.")
    return ConfidenceSample(np.array(confidences), np.unique(images, return_inverse=True)[1])
