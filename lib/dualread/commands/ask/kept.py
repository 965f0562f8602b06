"""The files that `dualread ask --run` appends to, one process at a time."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dualread.errors import ArtifactError
from dualread.models.service.requests import ServiceRequest
from dualread.progress import say

_PIECE = 2**20  # bytes that are read at once


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Refuse a second process that sends for the same folder.

    Raises:
        ArtifactError: Another one is at work.
    """
    with (folder / ".sending").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ArtifactError(f"{folder}: another `dualread ask --run` is sending. Wait for its end.") from error
        yield


class ResponseFiles:
    """The file of responses, and that of what was rejected. A line is written at once: a killed run loses none."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, list[IO[bytes]]()

    def __enter__(self) -> "ResponseFiles":
        for name in ("responses/sent.jsonl", "rejected.jsonl"):
            file = (self._folder / name).open("ab+")
            _cut_fragment(file)
            self._files.append(file)
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def response(self, request: ServiceRequest, request_id: str | None, body: Any) -> None:
        """Append a response in the format of the Batch API; `request_id` is the service's own."""
        said = {"status_code": 200, "request_id": request_id, "body": body}
        self._append(0, {"custom_id": request.custom_id, "response": said, "error": None})

    def rejected(self, request: ServiceRequest, reason: str, said: str) -> None:
        """Append what the service said instead of what was asked for, and why it is none."""
        self._append(1, {"custom_id": request.custom_id, "reason": reason, "said": said})

    def _append(self, which: int, line: dict[str, Any]) -> None:
        self._files[which].write(json.dumps(line).encode() + b"\n")
        self._files[which].flush()


def _cut_fragment(file: IO[bytes]) -> None:
    """Remove a half-written line at the end, which a killed process leaves; its request is open and is sent again."""
    size = start = file.seek(0, 2)
    whole = 0
    while start and not whole:  # from the end, because the file may not fit into the memory
        before, start = start, max(start - _PIECE, 0)
        file.seek(start)
        if (at := file.read(before - start).rfind(b"\n")) >= 0:
            whole = start + at + 1
    if whole < size:
        say(f"{file.name}: removed a half-written line at its end ({size - whole} bytes)")
        file.truncate(whole)
    file.seek(0, 2)
