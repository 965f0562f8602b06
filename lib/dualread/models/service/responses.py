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
from typing import IO, Any, NamedTuple

from dualread import limits
from dualread.errors import ArtifactError
from dualread.models.service.replies import ReplyError, ServiceReply, reply_of
from dualread.models.service.requests import ServiceRequest

_SHOWN = 3


class _Place(NamedTuple):
    file: Path
    number: int
    start: int
    length: int

    def __str__(self) -> str:
        return f"{self.file.name}:{self.number}"


class Responses:
    """The lines of the `files` of a `folder`, by custom_id; an ArtifactError refuses one that is longer than any.

    `broken` are the places of lines that are no response, such as half-written ones.
    """

    def __init__(self, folder: Path, files: Sequence[Path]) -> None:
        self.folder = folder
        self.broken: list[_Place] = []
        self._places: dict[str, list[_Place]] = {}
        self._asked: set[str] = set()
        for path in files:
            with path.open("rb") as file:
                for place, line in _lines(path, file):
                    custom_id = _custom_id(line)
                    places = self.broken if custom_id is None else self._places.setdefault(custom_id, [])
                    places.append(place)

    def of(self, custom_id: str) -> Iterator[tuple[_Place, Any]]:
        """Yield the place and the decoded content of each line with a custom_id, which then counts as asked for."""
        for place in self._places.get(custom_id, ()):
            self._asked.add(custom_id)
            try:
                with place.file.open("rb", buffering=0) as opened:
                    opened.seek(place.start)
                    content = json.loads(opened.read(place.length))
            except (OSError, ValueError) as error:
                raise ArtifactError(
                    f"{place.file}: was changed while it was read ({error}). Run the same command again."
                ) from error
            yield place, content

    def strange(self) -> list[_Place]:
        """Return the first place of each custom_id that nobody has asked for."""
        return [places[0] for custom_id, places in self._places.items() if custom_id not in self._asked]


def read_responses(folder: Path) -> Responses:
    """Return the lines of all `*.jsonl` in `folder`; none if there is no such folder."""
    files = sorted(folder.glob("*.jsonl"))
    return _read(folder, tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=1)  # a job reads one folder for all its shards
def _read(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> Responses:
    return Responses(folder, [file for file, _, _ in files])


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[_Place, bytes]]:
    """Yield the place and the text of each line that is not empty."""
    start = number = 0
    while line := file.readline(limits.RESPONSE_BYTES):
        number += 1
        if len(line) == limits.RESPONSE_BYTES:
            raise ArtifactError(
                f"{path}:{number}: a line of more than {limits.RESPONSE_BYTES / 1e6:.0f} MB, which is no response."
                " Expected one response per line (docs/given-answers.md). Remove or split it."
            )
        if line.strip():
            yield _Place(path, number, start, len(line)), line
        start += len(line)


def _custom_id(line: bytes) -> str | None:
    try:
        custom_id = json.loads(line.decode())["custom_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return custom_id if isinstance(custom_id, str) else None


class Found:
    """What `responses` have for the requests that were looked up; `is_open` says of each whether it is not answered."""

    def __init__(self, responses: Responses) -> None:
        self.is_open = bytearray()
        self._responses = responses
        self._reasons: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    @property
    def n_requests(self) -> int:
        """The number of requests that were looked up."""
        return len(self.is_open)

    @property
    def n_missing(self) -> int:
        """The number of requests that are not answered."""
        return self.is_open.count(1)

    @property
    def why(self) -> list[str]:
        """How many of these for which reason, and where; the commonest reasons, and "..." if there are others."""
        common = [f"{n}: {reason}{self._first[reason]}" for reason, n in self._reasons.most_common(_SHOWN)]
        return [*common, "..."] if len(self._reasons) > _SHOWN else common

    def replies(self, requests: Iterable[ServiceRequest]) -> Iterator[tuple[ServiceRequest, ServiceReply]]:
        """Look up `requests` one by one, and yield those that are answered with their replies.

        An ArtifactError says that two responses to a request differ, so that neither can be chosen.
        """
        for request in requests:
            reply = self._reply(request)
            self.is_open.append(reply is None)
            if reply is not None:
                yield request, reply

    def _reply(self, request: ServiceRequest) -> ServiceReply | None:
        usable, where, reason = [], "", "no response"
        for place, line in self._responses.of(request.custom_id):
            try:
                usable.append((place, reply_in(line, request)))
            except ReplyError as error:
                where, reason = f" ({place})", str(error)
        if not usable:
            self._reasons[reason] += 1
            self._first.setdefault(reason, where)
            return None
        if len({repr(reply.choices) for _, reply in usable}) > 1:
            lines = " and ".join(str(place) for place, _ in usable[:2])
            raise ArtifactError(
                f"{self._responses.folder}: {lines} answer the same request ({request.question.sample_id}) differently."
                " Remove all but one of them."
            )
        return usable[0][1]

    def refuse_missing(self, where: str) -> None:
        """Raise an ArtifactError that says how many requests are not answered, why, and what to do, if any are not."""
        if not self.n_missing:
            return
        why = self.why
        if broken := self._responses.broken:
            why.append(f"{len(broken)} lines are no response, such as {broken[0]}")
        raise ArtifactError(
            f"{where}: {self.n_missing} of {self.n_requests} requests are not answered in {self._responses.folder}"
            f" ({'; '.join(why)}). `dualread ask` writes what is still to be asked, and with --run sends it. Then run"
            " the same command again."
        )


def reply_in(line: Any, request: ServiceRequest) -> ServiceReply:
    """Return the reply of a decoded line; a ReplyError says that it holds an error, or not what was asked for."""
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and response.get("status_code", 200) == 200:
        return reply_of(response.get("body"), n=request.n, log_probs=request.log_probs)
    if isinstance(response, dict):
        body = response.get("body")
        error = (body.get("error") if isinstance(body, dict) else None) or error
        raise ReplyError(f"error {response['status_code']}{_detail(error)}")
    raise ReplyError(f"error{_detail(error)}" if error else "has neither a response nor an error")


def _detail(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return f": {' '.join(str(message).split())[:200]}" if message else ""
