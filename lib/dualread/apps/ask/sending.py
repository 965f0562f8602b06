"""Send requests with the openai client, a few at once, and append each response as it comes.

The client sends again what may pass (timeouts, broken connections, 408, 409, 429, 5xx), as late as the service says. A
reply is kept only if it is what was asked for. What else a service says goes to rejected.jsonl, which nothing reads;
such a request stays open and is sent in the next run.
"""

import asyncio
import base64
import fcntl
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import quote, quote_plus, unquote, urlsplit

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, DefaultAsyncHttpxClient

from dualread.errors import ArtifactError, in_a_line
from dualread.models.service.replies import ReplyError, reply_of
from dualread.models.service.requests import ImageUrl, ServiceRequest
from dualread.progress import say, track

_FOR_ALL = {401: "the key is not accepted", 403: "the key is not accepted", 404: "no such model or address"}
_FAILURES_IN_A_ROW = 20
_MOST_IN_A_ROUND = 50_000  # requests that are in memory, 1 kB each
_MOST_BYTES = 32 * 2**20  # of a reply; 20 answers of 1,024 tokens with log-probabilities have 5
_KEPT = ("id", "object", "created", "model", "choices", "usage")  # of a reply: nothing that echoes what was sent


class ToSend(Protocol):
    """What is sent: batches of requests by the folder of their responses, each after what it is about.

    A batch gives its requests that are not answered (`open`), and the body of each call (`body`).
    """

    folders: list[Path]

    def batches(self, folder: Path) -> Iterator[Any]: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where requests are sent; the key, and a password in the address, are shown and written nowhere."""

    address: str = field(repr=False)
    key: str = field(repr=False)

    def secrets(self) -> list[str]:
        """Return the secrets as a service could write them, longest first: in JSON, addresses, hexadecimal, base64."""
        login = urlsplit(self.address).netloc.rpartition("@")[0]
        forms: set[str] = set()
        for secret in {self.key, login, unquote(login), *(part.partition(":")[2] for part in (login, unquote(login)))}:
            content = secret.encode()
            forms |= {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), quote_plus(secret), content.hex()}
            for before in range(3):  # four characters per three bytes; those that depend on what is beside are left out
                encoded = base64.b64encode(b"." * before + content).decode()
                inside = encoded[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
                forms |= {inside, inside.translate(str.maketrans("+/", "-_"))}
        return sorted((form for form in forms if len(form) > 3), key=len, reverse=True)

    def hidden(self, text: str) -> str:
        """Return the start of `text` in one line, without the secrets."""
        for form in self.secrets():
            text = text.replace(form, "[hidden]")
        return " ".join(text.split())[:200]

    def is_in(self, text: str) -> bool:
        """Return whether a secret is in a text; not one that may be a word, for a service that needs no key."""
        return any(form in text for form in self.secrets() if len(form) > 7 and any(map(str.isdecimal, form)))


@dataclass(frozen=True, kw_only=True)
class SendingLimits:
    """How fast requests are sent, how long a reply may take, and how often the client sends one again."""

    at_once: int
    per_minute: int
    timeout_seconds: float
    retries: int = 5


def send(asking: ToSend, service: Endpoint, limits: SendingLimits, url_of: ImageUrl) -> int:
    """Send all that is still to be asked: first questions, then what is asked about their answers.

    Returns:
        The number of requests that were sent and are not answered.

    Raises:
        ArtifactError: The service refuses the key or the address, or fails again and again; or another process sends.
    """
    sent: set[str] = set()  # whatever comes of it, a run sends no request twice
    n_failed = 0
    for folder in asking.folders:
        (folder / "responses").mkdir(parents=True, exist_ok=True)
        files = folder / "responses/sent.jsonl", folder / "rejected.jsonl"
        with alone(folder), _appended(files[0]) as kept, _appended(files[1]) as rejected:
            while True:
                to_ask = ((batch, request) for batch in asking.batches(folder) for request in batch.open())
                todo = list(islice((pair for pair in to_ask if pair[1].custom_id not in sent), _MOST_IN_A_ROUND))
                if not todo:
                    break
                say(f"{service.hidden(service.address)}: {len(todo)} requests")
                sent |= {request.custom_id for _, request in todo}
                n_failed += asyncio.run(_Sender(service, limits, url_of, kept, rejected).send(todo))
    return n_failed


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


@contextmanager
def _appended(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of lines; one that a killed process has half written is ended, and its request is sent again."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, 2)
            file.write(b"" if file.read() == b"\n" else b"\n")
        yield file


def _write(file: IO[bytes], line: dict[str, Any]) -> None:
    file.write(json.dumps(line).encode() + b"\n")
    file.flush()  # a killed run loses no line


class _Failed(Exception):
    """A request failed; the message says why."""


class _Sender:
    """Sends a list of requests."""

    def __init__(
        self, service: Endpoint, limits: SendingLimits, url_of: ImageUrl, kept: IO[bytes], rejected: IO[bytes]
    ) -> None:
        self._service, self._limits, self._url_of = service, limits, url_of
        self._kept, self._rejected = kept, rejected
        self._next_start, self._in_a_row = 0.0, 0
        self._stopped: str | None = None

    async def send(self, todo: list[tuple[Any, ServiceRequest]]) -> int:
        """Send all of `todo`; return how many failed."""
        queue, reasons = iter(track(todo, total=len(todo), label="requests")), Counter[str]()

        async def work() -> None:
            for batch, request in queue:
                try:
                    await self._ask(client, batch, request)
                    self._in_a_row = 0
                except _Failed as error:
                    reasons[str(error)] += 1
                    self._in_a_row += 1
                if self._in_a_row >= _FAILURES_IN_A_ROW:
                    self._stopped = self._stopped or f"{self._in_a_row} requests in a row failed: {[*reasons][-1]}"
                if self._stopped:
                    return

        client = AsyncOpenAI(
            base_url=self._service.address,
            api_key=self._service.key,
            timeout=self._limits.timeout_seconds,
            max_retries=self._limits.retries,
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),  # else a picture might go elsewhere
        )
        async with client:
            await asyncio.gather(*(work() for _ in range(self._limits.at_once)))
        for reason, n in reasons.most_common(5):
            say(f"{n} requests are not answered: {reason}")
        if self._stopped:
            raise ArtifactError(
                f"{self._service.hidden(self._service.address)}: {self._stopped}. What was answered is kept; run the"
                " same command again to go on."
            )
        return reasons.total()

    async def _ask(self, client: AsyncOpenAI, batch: Any, request: ServiceRequest) -> None:
        """Send one request, and keep the reply if it is what was asked for."""
        start = max(time.monotonic(), self._next_start)
        self._next_start = start + 60 / self._limits.per_minute
        await asyncio.sleep(start - time.monotonic())
        text = ""
        try:
            request_id, text = await self._call(client, batch.body(request, self._url_of))
            body = json.loads(text)
            reply_of(body, n=request.n, log_probs=request.log_probs)
            kept = {name: body[name] for name in _KEPT if name in body}
            if self._service.is_in(json.dumps(kept, ensure_ascii=False)):
                raise ReplyError("holds the key that was sent")
        except (ReplyError, ValueError, RecursionError) as error:
            problem = str(error) if isinstance(error, ReplyError) else "is no JSON"
            reason = self._service.hidden(f"the reply {problem}")
            _write(
                self._rejected, {"custom_id": request.custom_id, "reason": reason, "said": self._service.hidden(text)}
            )
            raise _Failed(reason) from error
        response = {"status_code": 200, "request_id": request_id, "body": kept}
        _write(self._kept, {"custom_id": request.custom_id, "response": response, "error": None})

    async def _call(self, client: AsyncOpenAI, body: dict[str, Any]) -> tuple[str | None, str]:
        """Return the service's own name of the call, and its reply."""
        called = client.chat.completions.with_streaming_response.create(
            model=body["model"], messages=body["messages"], extra_body=body
        )
        content = bytearray()
        try:
            async with called as response, asyncio.timeout(self._limits.timeout_seconds):
                async for piece in response.iter_bytes():
                    content += piece
                    if len(content) > _MOST_BYTES:
                        raise _Failed(f"the reply has more than {_MOST_BYTES / 1e6:.0f} MB")
                request_id = response.headers.get("x-request-id")
                return request_id and self._service.hidden(request_id), content.decode("utf-8", "replace")
        except (APITimeoutError, TimeoutError, httpx2.TimeoutException) as error:
            raise _Failed(f"no reply within {self._limits.timeout_seconds:g} s") from error
        except (APIConnectionError, httpx2.HTTPError) as error:
            why = error.__cause__ if isinstance(error.__cause__, Exception) else error
            raise _Failed(self._service.hidden(f"the connection failed ({in_a_line(why)})")) from error
        except APIStatusError as error:
            code = error.status_code
            reason = f"error {code}: {self._service.hidden(error.response.text) or 'no text'}"
            if code in _FOR_ALL:
                self._stopped = f"{reason} ({_FOR_ALL[code]})"
            raise _Failed(reason) from error
