"""Read the responses of a service: JSON lines in the output format of the Batch API, in the files of one folder.

A line has `custom_id`, and either `response` (`status_code`, `body`) or `error`. Lines that cannot be read, errors and
replies that are not what was asked for are counted and named; the request then counts as not answered. Nothing else is
taken in its place.

Only the places of the lines are kept in memory, 400 bytes each. A line is read again when its request comes.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from dualread import limits
from dualread.errors import ArtifactError
from dualread.models.service.replies import ReplyError, ServiceReply, reply_of
from dualread.models.service.requests import ServiceRequest

_SHOWN = 3
_Place = tuple[Path, int, int, int]  # of a line: its file, number, first byte, length


class Responses:
    """The lines of a folder, by custom_id.

    Attributes:
        folder: The folder.
        n_broken: How many lines are no response: half-written ones, and others.
        first_broken: The place of one of them.
    """

    def __init__(self, folder: Path, files: Sequence[Path]) -> None:
        """Find the lines of `files`.

        Raises:
            ArtifactError: A line is longer than any response.
        """
        self.folder, self.n_broken, self.first_broken = folder, 0, ""
        self._places: dict[str, list[_Place]] = {}
        self._asked: set[str] = set()
        for path in files:
            with path.open("rb") as file:
                for number, start, line in _lines(file):
                    place = (path, number, start, len(line))
                    if (custom_id := _custom_id(line)) is not None:
                        self._places.setdefault(custom_id, []).append(place)
                    else:
                        self.n_broken += 1
                        self.first_broken = self.first_broken or _where(place)

    def of(self, custom_id: str) -> Iterator[tuple[str, Any]]:
        """Yield the place and the decoded content of each line with a custom_id, which then counts as asked for."""
        for place in self._places.get(custom_id, ()):
            self._asked.add(custom_id)
            path, _, start, length = place
            try:
                with path.open("rb", buffering=0) as opened:
                    opened.seek(start)
                    content = json.loads(opened.read(length))
            except (OSError, ValueError) as error:
                raise ArtifactError(
                    f"{path}: was changed while it was read ({error}). Run the same command again."
                ) from error
            yield _where(place), content

    def strange(self) -> tuple[int, str]:
        """Return how many custom_ids nobody has asked for, and where the first one is."""
        strange = [places[0] for custom_id, places in self._places.items() if custom_id not in self._asked]
        return len(strange), _where(strange[0]) if strange else ""


def _where(place: _Place) -> str:
    return f"{place[0].name}:{place[1]}"


def read_responses(folder: Path) -> Responses:
    """Return the lines of all `*.jsonl` in `folder`; none if there is no such folder."""
    files = sorted(folder.glob("*.jsonl"))
    return _read(folder, tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=1)  # a job reads one folder for all its shards
def _read(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> Responses:
    return Responses(folder, [file for file, _, _ in files])


def _lines(file: IO[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number, the first byte and the text of each line that is not empty."""
    start = number = 0
    while line := file.readline(limits.RESPONSE_BYTES):
        number += 1
        if len(line) == limits.RESPONSE_BYTES:
            raise ArtifactError(
                f"{file.name}:{number}: a line of more than {limits.RESPONSE_BYTES / 1e6:.0f} MB, which is no response."
                " Expected one response per line (docs/given-answers.md). Remove or split it."
            )
        if line.strip():
            yield number, start, line
        start += len(line)


def _custom_id(line: bytes) -> str | None:
    try:
        custom_id = json.loads(line.decode())["custom_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return custom_id if isinstance(custom_id, str) else None


class Found:
    """What the responses have for some requests.

    Attributes:
        n_requests: How many requests were looked up.
        is_open: For each of them in their order, whether it is not answered.
    """

    def __init__(self, responses: Responses) -> None:
        """Look in `responses`."""
        self.n_requests, self.is_open = 0, bytearray()
        self._responses = responses
        self._reasons: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    @property
    def n_missing(self) -> int:
        """The number of requests that are not answered."""
        return self.is_open.count(1)

    @property
    def why(self) -> list[str]:
        """How many of these for which reason, and where."""
        counted = self._reasons.most_common()
        return [f"{n}: {reason}{f' ({self._first[reason]})' if self._first[reason] else ''}" for reason, n in counted]

    def replies(self, requests: Iterable[ServiceRequest]) -> Iterator[tuple[ServiceRequest, ServiceReply]]:
        """Look up `requests` one by one, and yield those that are answered with their replies.

        Raises:
            ArtifactError: Two responses to a request differ, so that neither can be chosen.
        """
        for request in requests:
            reply = self._reply(request)
            self.n_requests += 1
            self.is_open.append(reply is None)
            if reply is not None:
                yield request, reply

    def _reply(self, request: ServiceRequest) -> ServiceReply | None:
        usable, failed = [], []
        for where, line in self._responses.of(request.custom_id):
            try:
                usable.append((where, reply_in(line, request)))
            except ReplyError as error:
                failed.append((where, str(error)))
        if len(usable) > 1 and len({repr(reply.choices) for _, reply in usable}) > 1:
            lines = " and ".join(where for where, _ in usable[:2])
            raise ArtifactError(
                f"{self._responses.folder}: {lines} answer the same request ({request.question.sample_id}) differently."
                " Remove all but one of them."
            )
        if usable:
            return usable[0][1]
        where, reason = failed[-1] if failed else ("", "no response")
        self._reasons[reason] += 1
        self._first.setdefault(reason, where)
        return None

    def refuse_missing(self, where: str) -> None:
        """Refuse requests that are not answered.

        Raises:
            ArtifactError: There are some; the message says in one sentence why, and what to do.
        """
        if not self.n_missing:
            return
        why, source = self.why, self._responses
        shown = "; ".join(why[:_SHOWN]) + ("; ..." if len(why) > _SHOWN else "")
        broken = f"; {source.n_broken} lines are no response, such as {source.first_broken}" if source.n_broken else ""
        raise ArtifactError(
            f"{where}: {self.n_missing} of {self.n_requests} requests are not answered in {source.folder}"
            f" ({shown}{broken}). `dualread ask` writes what is still to be asked, and with --run sends it. Then run"
            " the same command again."
        )


def reply_in(line: Any, request: ServiceRequest) -> ServiceReply:
    """Return the reply of a decoded line.

    Raises:
        ReplyError: The line holds an error, or not what was asked for.
    """
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and response.get("status_code", 200) == 200:
        return reply_of(response.get("body"), n=request.n, log_probs=request.log_probs)
    if isinstance(response, dict):
        body = response.get("body")
        error = (body.get("error") if isinstance(body, dict) else None) or error
        raise ReplyError(f"error {response['status_code']}{_said(error)}")
    raise ReplyError(f"error{_said(error)}" if error else "has neither a response nor an error")


def _said(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return f": {' '.join(str(message).split())[:200]}" if message else ""
