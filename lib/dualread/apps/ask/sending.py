"""Requests in files that a batch service takes, or sent with the openai client, and each response as it comes.

The client sends again what may pass (timeouts, broken connections, 408, 409, 429, 5xx), as late as the service says.
Responses are lines of the Batch API. A reply is kept only if it is what was asked for; else its line holds an error,
and the request stays open and is sent in the next run.
"""

import asyncio
import base64
import fcntl
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import compress, islice
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote, quote_plus, unquote, urlsplit

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, DefaultAsyncHttpxClient

from dualread import limits
from dualread.errors import ArtifactError, in_a_line
from dualread.models.service.replies import ReplyError, reply_of
from dualread.models.service.requests import ServiceRequest, judge_body
from dualread.models.service.responses import Found, Responses
from dualread.progress import say, track

# The limits of OpenAI's Batch API, the narrowest that we know: requests, and bytes with room to spare.
_MOST_LINES, _MOST_BYTES_OF_A_FILE = 50_000, 190_000_000
_FOR_ALL = {401: "the key is not accepted", 403: "the key is not accepted", 404: "no such model or address"}
_FAILURES_IN_A_ROW = 20
_KEPT = ("id", "object", "created", "model", "choices", "usage")  # of a reply: nothing that echoes what was sent


@dataclass(frozen=True, kw_only=True)
class RequestBatch:
    """Requests of one kind, such as those of a shard."""

    # Gives all that can be asked by now, again and again in the same order; none is kept in memory.
    requests: Callable[[], Iterator[ServiceRequest]]
    body: Callable[[ServiceRequest], dict[str, Any]]  # gives the body of a call, with its messages
    replied: Found  # which of them are answered
    name: str = ""  # what lines for people call it
    waiting: int = 0  # how many answers, or shards of samples, are not there yet to ask about

    @classmethod
    def of_judge(cls, requests: Callable[[], Iterator[ServiceRequest]], responses: Responses, **about: Any) -> Self:
        """Return the requests of a judge, looked up in `responses`."""
        replied = Found(responses)
        deque(replied.replies(requests()), maxlen=0)
        return cls(requests=requests, body=judge_body, replied=replied, **about)

    def open(self) -> Iterator[ServiceRequest]:
        """Return the requests that are not answered."""
        return compress(self.requests(), self.replied.is_open)


def write_requests(folder: Path, batches: Iterable[RequestBatch]) -> dict[Path, int]:
    """Write files that a batch service takes, in place of earlier ones; return the number of requests of each."""
    for old in folder.glob("requests-*.jsonl"):
        old.unlink()
    written: dict[Path, int] = {}
    path, size = folder, 0
    for batch in batches:
        for request in batch.open():
            call = {"method": "POST", "url": "/v1/chat/completions", "body": batch.body(request)}
            line = json.dumps({"custom_id": request.custom_id, **call}).encode() + b"\n"
            if not written or written[path] == _MOST_LINES or size + len(line) > _MOST_BYTES_OF_A_FILE:
                path, size = folder / f"requests-{len(written) + 1:03d}.jsonl", 0
            with path.open("ab") as file:
                file.write(line)
            written[path], size = written.get(path, 0) + 1, size + len(line)
    return written


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where requests are sent, and how fast; the key, and a password in the address, are shown and written nowhere."""

    address: str = field(repr=False)
    key: str = field(repr=False)
    at_once: int
    per_minute: int
    timeout_seconds: float  # the longest wait for a reply
    retries: int = 5  # of the client

    def secrets(self) -> list[str]:
        """Return the secrets as a service could write them, longest first: in JSON, addresses, hexadecimal, base64."""
        login = urlsplit(self.address).netloc.rpartition("@")[0]
        logins = {login, unquote(login)}
        forms: set[str] = set()
        for secret in {self.key, *logins, *(part.partition(":")[2] for part in logins)}:
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

    def send(self, folder: Path, batches: Callable[[], Iterable[RequestBatch]]) -> int:
        """Send all that is open of `batches`, asked for until there is nothing new; return how many are not answered.

        Responses are appended to responses/sent.jsonl in the `folder`.

        Raises:
            ArtifactError: The service refuses the key or the address, fails again and again, or another process sends.
        """
        sent: set[str] = set()  # whatever comes of it, a run sends no request twice
        n_failed = 0
        (folder / "responses").mkdir(parents=True, exist_ok=True)
        with (folder / ".sending").open("w") as lock, (folder / "responses/sent.jsonl").open("ab+") as file:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ArtifactError(f"{folder}: another `dualread ask --run` is sending. Wait for its end.") from error
            if file.tell():  # a line that a killed process has half written is ended, and its request is sent again
                file.seek(-1, 2)
                file.write(b"" if file.read() == b"\n" else b"\n")
            while True:
                opened = ((batch, request) for batch in batches() for request in batch.open())
                todo = list(islice((pair for pair in opened if pair[1].custom_id not in sent), _MOST_LINES))
                if not todo:
                    return n_failed
                say(f"{self.hidden(self.address)}: {len(todo)} requests")
                sent |= {request.custom_id for _, request in todo}
                n_failed += asyncio.run(_Sender(self, file).send(todo))


class _Sender:
    """Sends requests, and writes what comes of each into a file."""

    def __init__(self, service: Endpoint, file: IO[bytes]) -> None:
        self._service, self._file = service, file
        self._next_start, self._in_a_row = 0.0, 0
        self._stopped: str | None = None

    async def send(self, todo: list[tuple[RequestBatch, ServiceRequest]]) -> int:
        """Send all of `todo`; return how many are not answered."""
        queue, reasons = iter(track(todo, total=len(todo), label="requests")), Counter[str]()

        async def work() -> None:
            for batch, request in queue:
                if (reason := await self._ask(client, batch, request)) is not None:
                    reasons[reason] += 1
                self._in_a_row = 0 if reason is None else self._in_a_row + 1
                if self._in_a_row >= _FAILURES_IN_A_ROW:
                    self._stopped = self._stopped or f"{self._in_a_row} requests in a row failed: {reason}"
                if self._stopped:
                    return

        async with AsyncOpenAI(
            base_url=self._service.address,
            api_key=self._service.key,
            timeout=self._service.timeout_seconds,
            max_retries=self._service.retries,
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),  # else a picture might go elsewhere
        ) as client:
            await asyncio.gather(*(work() for _ in range(self._service.at_once)))
        for reason, n in reasons.most_common(5):
            say(f"{n} requests are not answered: {reason}")
        if self._stopped:
            raise ArtifactError(
                f"{self._service.hidden(self._service.address)}: {self._stopped}. What was answered is kept; run the"
                " same command again to go on."
            )
        return reasons.total()

    async def _ask(self, client: AsyncOpenAI, batch: RequestBatch, request: ServiceRequest) -> str | None:
        """Send one request and write what came of it; return why it is not answered, None if it is."""
        start = max(time.monotonic(), self._next_start)
        self._next_start = start + 60 / self._service.per_minute
        await asyncio.sleep(start - time.monotonic())
        hidden, text = self._service.hidden, ""
        response = reason = None
        try:
            request_id, text = await self._call(client, batch.body(request))
            body = json.loads(text)
            reply_of(body, n=request.n, log_probs=request.log_probs)
            kept = {name: body[name] for name in _KEPT if name in body}
            if self._service.is_in(json.dumps(kept, ensure_ascii=False)):
                raise ReplyError("holds the key that was sent")
            response = {"status_code": 200, "request_id": request_id and hidden(request_id), "body": kept}
        except ReplyError as error:
            reason = f"the reply {error}"
        except (ValueError, RecursionError):
            reason = "the reply is no JSON"
        except (APITimeoutError, TimeoutError, httpx2.TimeoutException):
            reason = f"no reply within {self._service.timeout_seconds:g} s"
        except (APIConnectionError, httpx2.HTTPError) as error:
            why = error.__cause__ if isinstance(error.__cause__, Exception) else error
            reason = f"the connection failed ({in_a_line(why)})"
        except APIStatusError as error:
            code, detail = error.status_code, hidden(error.response.text)
            reason = f"error {code}: {detail or 'no text'}"
            response = {"status_code": code, "request_id": None, "body": {"error": {"message": detail}}}
            if code in _FOR_ALL:
                self._stopped = f"{reason} ({_FOR_ALL[code]})"
        reason = reason and hidden(reason)
        problem = None if response else {"message": reason, "reply": hidden(text)}
        line = {"custom_id": request.custom_id, "response": response, "error": problem}
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()  # a killed run loses no line
        return reason

    async def _call(self, client: AsyncOpenAI, body: dict[str, Any]) -> tuple[str | None, str]:
        """Return the service's own name of the call, and its whole reply; nothing of one that ends too late."""
        called = client.chat.completions.with_streaming_response.create(
            model=body["model"], messages=body["messages"], extra_body=body
        )
        content = bytearray()
        async with called as response, asyncio.timeout(self._service.timeout_seconds):
            async for piece in response.iter_bytes():
                content += piece
                if len(content) > limits.REPLY_BYTES:
                    raise ReplyError(f"has more than {limits.REPLY_BYTES / 1e6:.0f} MB")
            return response.headers.get("x-request-id"), content.decode("utf-8", "replace")
