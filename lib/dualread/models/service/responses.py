"""Read the responses of a service: JSON lines in the output format of the Batch API, in the files of one folder.

A line has `custom_id`, and either `response` (`status_code`, `body`) or `error`. Lines that cannot be read, errors and
replies that are not what was asked for are counted and named; the request then counts as not answered. Nothing else is
taken in its place.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from dualread.errors import ArtifactError
from dualread.models.service.replies import Reply, ReplyError, reply_of
from dualread.models.service.requests import Request

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a file, which `where` names."""

    where: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Responses:
    """The lines of a folder.

    Attributes:
        folder: The folder.
        lines: By custom_id.
        broken: Places of lines that are no response: half-written ones, and others.
    """

    folder: Path
    lines: dict[str, list[Line]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the responses have for some requests.

    Attributes:
        replies: By custom_id, of those that are answered.
        missing: Requests that are not answered.
        why: How many of these for which reason, and where.
    """

    replies: dict[str, Reply]
    missing: Sequence[Request]
    why: Sequence[str]


def read_responses(folder: Path) -> Responses:
    """Return the lines of all `*.jsonl` in `folder`; none if there is no such folder."""
    files = sorted(folder.glob("*.jsonl"))
    return _read(folder, tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=1)  # a job reads one folder for all its shards
def _read(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> Responses:
    responses = Responses(folder=folder)
    for file, _, _ in files:
        for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
            if not line.strip():
                continue
            where = f"{file.name}:{number}"
            try:
                text = line.decode()
                custom_id = json.loads(text)["custom_id"]
            except (ValueError, TypeError, KeyError, RecursionError):
                custom_id = text = None
            if isinstance(custom_id, str) and text is not None:
                responses.lines.setdefault(custom_id, []).append(Line(where=where, text=text))
            else:
                responses.broken.append(where)
    return responses


def find(requests: Iterable[Request], responses: Responses) -> Found:
    """Return what the responses have for `requests`.

    Raises:
        ArtifactError: Two responses to a request differ, so that neither can be chosen.
    """
    replies, missing, reasons, places = {}, [], Counter(), {}
    for request in requests:
        usable, failed = [], []
        for line in responses.lines.get(request.custom_id, ()):
            try:
                usable.append((line.where, reply_in(json.loads(line.text), request)))
            except ReplyError as error:
                failed.append((line.where, str(error)))
        if len({repr(reply.choices) for _, reply in usable}) > 1:
            lines = " and ".join(where for where, _ in usable[:2])
            raise ArtifactError(
                f"{responses.folder}: {lines} answer the same request ({request.question.sample_id}) differently."
                " Remove all but one of them."
            )
        if usable:
            replies[request.custom_id] = usable[0][1]
            continue
        missing.append(request)
        where, reason = failed[-1] if failed else ("", "no response")
        reasons[reason] += 1
        places.setdefault(reason, where)
    why = [f"{n}: {reason}{f' ({places[reason]})' if places[reason] else ''}" for reason, n in reasons.most_common()]
    return Found(replies=replies, missing=missing, why=why)


def reply_in(line: Any, request: Request) -> Reply:
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


def complaint(found: Found, n_requests: int, where: str, responses: Responses) -> str:
    """Return one sentence on the requests that are not answered, and what to do."""
    shown = "; ".join(found.why[:_SHOWN]) + ("; ..." if len(found.why) > _SHOWN else "")
    broken = (
        f"; {len(responses.broken)} lines are no response, such as {responses.broken[0]}" if responses.broken else ""
    )
    return (
        f"{where}: {len(found.missing)} of {n_requests} requests are not answered in {responses.folder}"
        f" ({shown}{broken}). `dualread ask` writes what is still to be asked, and with --run sends it. Then run the"
        " same command again."
    )


def _said(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return f": {' '.join(str(message).split())[:200]}" if message else ""
