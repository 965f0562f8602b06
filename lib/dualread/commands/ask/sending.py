"""Send requests to a service with the OpenAI API, a few at once, and append each response as it comes.

A reply is kept only if it is what was asked for. What else a service says goes to rejected.jsonl, which nothing reads,
and the request stays open. Requests that fail for a while (timeouts, 408, 409, 429, 5xx, replies that are no JSON) are
sent again, later and later, or when the service says (Retry-After).
"""

import asyncio
import json
import math
import random
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import httpx

from dualread.commands.ask.files import OpenBatch, ToSend
from dualread.commands.ask.kept import ResponseFiles, alone
from dualread.commands.ask.secrets import Secrets
from dualread.errors import ArtifactError, ConfigError, in_a_line
from dualread.models.service.bodies import ImageUrl
from dualread.models.service.replies import ReplyError, reply_of
from dualread.models.service.requests import ServiceRequest
from dualread.progress import say, track

_TRIES = 6
_LONGEST_WAIT_SECONDS = 60.0  # of ours; what the service asks for is kept to
_TOO_LONG_SECONDS = 3600.0
_FOR_A_WHILE = {408, 409, 425, 429}
_FOR_ALL = {401, 403, 404}  # the key, or the address: no other request would fare better
_FAILURES_IN_A_ROW = 20
_SHOWN = 5
_MOST_IN_A_ROUND = 50_000  # requests that are in memory, 1 kB each
_MOST_BYTES = 32 * 2**20  # of a reply, unpacked; 20 answers of 1,024 tokens with log-probabilities have 5
_PACKED = ("gzip", "x-gzip", "deflate")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where requests are sent; the key, and a password in the address, are shown and written nowhere."""

    address: str = field(repr=False)
    key: str = field(repr=False)

    @property
    def url(self) -> str:
        """The address of a call."""
        return f"{self.address.rstrip('/')}/chat/completions"

    @cached_property
    def secrets(self) -> Secrets:
        """What must not be shown of what the service says."""
        return Secrets.of(self.key, self.address)

    @property
    def shown(self) -> str:
        """The address of a call for messages."""
        return self.secrets.hidden(self.url)


@dataclass(frozen=True, kw_only=True)
class SendingLimits:
    """How fast requests are sent, and how long a reply may take."""

    at_once: int
    per_minute: int
    timeout_seconds: float
    first_wait_seconds: float = 1.0


class _Stop(Exception):
    """No further request is sent; the message says why."""


class _Failed(Exception):
    """A request failed.

    Attributes:
        reason: Why.
        is_over: Whether to send it again is of no use.
        wait_seconds: What the service asks to wait; None if it does not say.
        content: What the service said.
    """

    def __init__(self, reason: str, *, is_over: bool = False, wait: float | None = None, content: str = "") -> None:
        super().__init__(reason)
        self.reason, self.is_over, self.wait_seconds, self.content = reason, is_over, wait, content


def send(asking: ToSend, service: Endpoint, limits: SendingLimits, url_of: ImageUrl) -> int:
    """Send all that is still to be asked: first questions, then what is asked about their answers.

    Returns:
        The number of requests that were sent and are not answered.

    Raises:
        ArtifactError: The service refuses the key or the address, or fails again and again; or another process sends.
    """
    sent: set[str] = set()  # whatever comes of it, a run sends no request twice
    failed: set[str] = set()
    for folder in asking.folders:
        (folder / "responses").mkdir(parents=True, exist_ok=True)
        with alone(folder), ResponseFiles(folder) as kept:
            while todo := _todo(asking, folder, sent):
                say(f"{service.shown}: {len(todo)} requests")
                sent |= {request.custom_id for _, request in todo}
                failed |= asyncio.run(_Sender(service, limits, url_of, kept).send(todo))
    return len(failed)


def _todo(asking: ToSend, folder: Path, sent: set[str]) -> list[tuple[OpenBatch, ServiceRequest]]:
    """Return what is open and was not sent, a part of it if it is much."""
    open_ = ((batch, request) for batch in asking.batches(folder) for request in batch.open())
    return [*islice((one for one in open_ if one[1].custom_id not in sent), _MOST_IN_A_ROUND)]


class _Sender:
    """Sends a list of requests."""

    def __init__(self, service: Endpoint, limits: SendingLimits, url_of: ImageUrl, kept: ResponseFiles) -> None:
        self._service, self._limits, self._url_of, self._kept = service, limits, url_of, kept
        self._not_before = 0.0
        self._in_a_row = 0

    async def send(self, todo: list[tuple[OpenBatch, ServiceRequest]]) -> set[str]:
        """Send all of `todo`; return the ids of those that failed."""
        queue = iter(todo)
        done = iter(track(todo, total=len(todo), label="requests"))
        reasons: Counter[str] = Counter()
        failed: set[str] = set()

        async def work(client: httpx.AsyncClient) -> None:
            for batch, request in queue:
                try:
                    await self._ask(client, batch, request)
                except _Failed as error:
                    reasons[error.reason] += 1
                    failed.add(request.custom_id)
                next(done, None)

        headers = {"Authorization": f"Bearer {self._service.key}", "Accept-Encoding": "gzip"}
        async with httpx.AsyncClient(headers=headers, timeout=self._limits.timeout_seconds) as client:
            workers = [asyncio.create_task(work(client)) for _ in range(self._limits.at_once)]
            try:
                await asyncio.gather(*workers)
            except _Stop as stop:
                raise ArtifactError(f"{self._service.shown}: {stop}") from stop
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        next(done, None)
        for reason, n in reasons.most_common(_SHOWN):
            say(f"{n} requests are not answered: {reason}")
        if len(reasons) > _SHOWN:
            say(f"... and {len(reasons) - _SHOWN} other reasons")
        return failed

    async def _ask(self, client: httpx.AsyncClient, batch: OpenBatch, request: ServiceRequest) -> None:
        """Send one request until it is answered or all tries are used up."""
        for number in range(1, _TRIES + 1):
            await self._wait_for_turn()
            try:
                request_id, body = await self._call(client, batch, request)
            except _Failed as error:
                if error.content:
                    self._kept.rejected(request, error.reason, error.content)
                self._count_failure(error)
                if error.is_over or number == _TRIES:
                    raise
                self._pause(error, number)
            else:
                self._in_a_row = 0
                self._kept.response(request, request_id, body)
                return

    async def _call(
        self, client: httpx.AsyncClient, batch: OpenBatch, request: ServiceRequest
    ) -> tuple[str | None, Any]:
        """Return the service's own name of the call, and the body of its reply."""
        secrets = self._service.secrets
        try:
            content = batch.body(request, self._url_of)
            async with asyncio.timeout(self._limits.timeout_seconds):  # httpx waits as long for each piece
                async with client.stream("POST", self._service.url, json=content) as response:
                    text = await _read(response)
        except (httpx.TimeoutException, TimeoutError) as error:
            raise _Failed(f"no reply within {self._limits.timeout_seconds:g} s") from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            why = secrets.hidden(str(error))
            raise ConfigError(f"--to {secrets.hidden(self._service.address)}: {why}. Expected an address.") from error
        except httpx.HTTPError as error:
            raise _Failed(secrets.hidden(f"the connection failed ({in_a_line(error)})")) from error
        request_id = response.headers.get("x-request-id")
        return request_id and secrets.hidden(request_id), _checked(response, text, request, secrets)

    def _count_failure(self, error: _Failed) -> None:
        self._in_a_row += 1
        if self._in_a_row >= _FAILURES_IN_A_ROW:
            raise _Stop(
                f"{self._in_a_row} replies in a row failed, the last one: {error.reason}. What was answered is kept;"
                " run the same command again to go on."
            )

    def _pause(self, error: _Failed, number: int) -> None:
        """Let all wait if the service says so, or this long: twice as long after each try, and not all at once."""
        wait = error.wait_seconds
        if wait is None:
            wait = self._limits.first_wait_seconds * 2 ** (number - 1) * random.uniform(0.5, 1.0)
            wait = min(wait, _LONGEST_WAIT_SECONDS)
        if wait > _TOO_LONG_SECONDS:
            raise _Stop(f"{error.reason}, and the service asks to wait {wait:.0f} s. Run the same command again then.")
        self._not_before = max(self._not_before, time.monotonic() + wait)

    async def _wait_for_turn(self) -> None:
        start = max(time.monotonic(), self._not_before)
        self._not_before = start + 60 / self._limits.per_minute
        await asyncio.sleep(start - time.monotonic())


async def _read(response: httpx.Response) -> str:
    """Return the text of a response. It is unpacked here, because httpx would unpack whatever comes."""
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in (*_PACKED, "identity", ""):
        raise _Failed(f"the reply is packed as {packed[:20]!r}, expected gzip or nothing", is_over=True)
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed in _PACKED else None  # 32: gzip or zlib
    content = bytearray()
    async for piece in response.aiter_raw():
        room = _MOST_BYTES + 1 - len(content)
        try:
            content += piece[:room] if unpack is None else unpack.decompress(piece, room)
        except zlib.error as error:
            raise _Failed("the reply cannot be unpacked") from error
        if len(content) > _MOST_BYTES:
            raise _Failed(f"the reply has more than {_MOST_BYTES / 1e6:.0f} MB", is_over=True)
    if unpack is not None and content and not unpack.eof:
        raise _Failed("the reply cannot be unpacked")
    return content.decode("utf-8", "replace")


def _checked(response: httpx.Response, said: str, request: ServiceRequest, secrets: Secrets) -> Any:
    """Return the body of a response, whose text is `said`, if it is what was asked for."""
    status, text = response.status_code, secrets.hidden(said)
    if status in _FOR_ALL:
        what = "the model or the address is not known" if status == 404 else "the key is not accepted"
        raise _Stop(f"error {status}: {what} ({_start(text)}). Nothing else was sent.")
    if status in _FOR_A_WHILE or status >= 500:
        raise _Failed(f"error {status}", wait=_retry_after(response))
    if status != 200:
        raise _Failed(f"error {status}: {_start(text)}", is_over=True, content=text)
    try:
        body = json.loads(said)
    except (ValueError, RecursionError) as error:
        kind = secrets.hidden(response.headers.get("content-type", "no type").partition(";")[0])
        said = f"{kind}, not JSON" if text.strip() else "nothing"
        raise _Failed(f"the reply is {said}", content=text) from error
    try:
        reply_of(body, n=request.n, log_probs=request.log_probs)
    except ReplyError as error:
        raise _Failed(secrets.hidden(f"the reply {error}"), is_over=True, content=text) from error
    if secrets.in_answers(body):
        raise _Failed("the reply holds the key that was sent", is_over=True, content=text)
    # Answers stay as they are: a key that is a word, for a service that needs none, may be one of them.
    return {"choices": body.pop("choices"), **secrets.hidden_in(body)}


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds that the service asks to wait."""
    value = response.headers.get("retry-after", "")
    try:
        return max(float(value), 0.0) if not math.isnan(float(value)) else None
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None


def _start(text: str) -> str:
    return " ".join(text.split())[:200] or "no text"
