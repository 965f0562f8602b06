"""/v1/chat/completions: one request from its first byte to its last."""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from dualread.apps.serve import wire
from dualread.apps.serve.listening import GoneError, Listener
from dualread.apps.serve.outcome import GONE, Counts, Outcome
from dualread.apps.serve.replies import ReplyWriter, encode
from dualread.apps.serve.service import Abstained, Answer, AnsweringService, Failure, News
from dualread.errors import DataError
from dualread.models.actor import TokenEvent
from dualread.schema.data import CtWindows

_SECONDS = 60  # for a body to arrive
_AT_ONCE = 2  # requests that are parsed and whose images are decoded at once; one can take half a gigabyte
_BODIES = 8  # of all requests that are being sent or decoded: so many times the largest one
# Proxies pass the events of a stream on as they come (nginx collects them otherwise).
_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}


@dataclass(frozen=True, kw_only=True)
class ClientLimits:
    """How much clients may send.

    Attributes:
        megabytes: Of one request, with its images in base64.
        images: In one request.
        megapixels: Of all images of one request.
        requests: That are answered or wait at once.
    """

    megabytes: int = 32
    images: int = 8
    megapixels: int = 50
    requests: int = 256


class RefusedError(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: int, message: str, kind: str = "invalid_request_error", code: str | None = None):
        super().__init__(message)
        self.status, self.body = status, wire.error(message, kind, code)


def _bug(error: Exception) -> RefusedError:
    """Print what nobody expected, such as a lack of memory, and return what the client is told of it."""
    traceback.print_exception(error)
    return RefusedError(500, f"the server cannot answer this ({type(error).__name__}).", "server_error")


class JsonReply(JSONResponse):
    """A reply in JSON that every client can read: ASCII alone, and no NaN."""

    def render(self, content: object) -> bytes:
        """Return the bytes of the reply."""
        return encode(content).encode()


class Chats:
    """Answers requests with a service; an ASGI application.

    Args:
        service: What answers.
        model: The name that requests give.
        limits: How much clients may send.
        bits: How many bits of 16-bit gray images count where their files do not say it.
        ct_windows: Through which CT in DICOM is shown; None for what files say.
        keeps_texts: Whether outcomes have the texts of requests.
        done: Called with every outcome when the request is over.

    Attributes:
        service: As given.
        model: As given.
        counts: What is counted of requests.
        n_open: How many requests are open.
    """

    def __init__(
        self,
        service: AnsweringService,
        *,
        model: str,
        limits: ClientLimits = ClientLimits(),
        bits: int | None = None,
        ct_windows: CtWindows | None = None,
        keeps_texts: bool = False,
        done: Callable[[Outcome], None] = lambda outcome: None,
    ):
        self.service, self.model, self.n_open = service, model, 0
        self.counts = Counts(requests_open=lambda: self.n_open, completions_open=lambda: service.n_open)
        self._limits, self._bits, self._windows = limits, bits, ct_windows
        self._keeps_texts, self._done = keeps_texts, done
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="dualread request")
        self._reading: dict[str, float] = {}  # since when a thread reads a request
        self._n_bytes = 0

    @property
    def seconds_stuck(self) -> float:
        """For how long the model has given nothing, or a request has been read."""
        now = time.monotonic()
        return max([self.service.seconds_stuck, *(now - began for began in list(self._reading.values()))])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        outcome = Outcome(name=f"chatcmpl-{scope['request_id']}")
        self.n_open += 1
        try:
            await self._answer(Request(scope, receive), send, outcome)
        except (GoneError, ClientDisconnect):
            outcome.status = GONE
        except Exception as error:
            refused = error if isinstance(error, RefusedError) else _bug(error)
            outcome.status = refused.status
            # What is left of a request that is too large is not read.
            headers = {"connection": "close"} | ({"retry-after": "1"} if refused.status == 429 else {})
            await JsonReply(refused.body, refused.status, headers=headers)(scope, receive, send)
        finally:
            self.n_open -= 1
            self.counts.add(outcome)
            self._done(outcome)

    async def _answer(self, request: Request, send: Send, outcome: Outcome) -> None:
        if self.n_open > self._limits.requests:
            text = f"{self.n_open - 1} requests are open, and no more may. Ask again later."
            raise RefusedError(429, text, "rate_limit_error")
        body, listener = await self._body(request), Listener()
        watching = asyncio.create_task(listener.end_with(request.receive))
        reading = self._threads.submit(self._read, body, outcome, listener)
        reading.add_done_callback(listener.calls(self._release, len(body)))
        del body  # what waits for the model has no file in memory
        try:
            news = self._news(listener, outcome)
            first = await anext(news)  # what refuses the request is raised here, before a reply begins
            assert outcome.sent is not None
            writer = ReplyWriter(outcome, self.service, self.model)
            if outcome.sent.stream:
                outcome.status = await self._stream(send, writer, first, news, listener)
                return
            async for _ in news:
                pass
            await JsonReply(writer.whole())(request.scope, request.receive, send)
            outcome.status = 200
        finally:
            watching.cancel()
            reading.cancel()
            reading.add_done_callback(lambda _: self.service.abort(outcome.name))

    async def _body(self, request: Request) -> bytes:
        """Return the body of a request; its bytes are counted until they are read."""
        most, body = self._limits.megabytes * 1_000_000, bytearray()
        try:
            async with asyncio.timeout(_SECONDS):
                async for part in request.stream():
                    body += part
                    self._n_bytes += len(part)
                    if len(body) > most:
                        text = f"the request has more than {self._limits.megabytes} MB. Shrink its images."
                        raise RefusedError(413, text)
                    if self._n_bytes > _BODIES * most:
                        raise RefusedError(429, "too much is being sent at once. Ask again later.", "rate_limit_error")
        except BaseException as error:
            self._release(len(body))
            if isinstance(error, TimeoutError):
                raise RefusedError(408, "the request did not arrive in time. Ask again.") from error
            raise
        return bytes(body)

    def _release(self, n_bytes: int) -> None:
        self._n_bytes -= n_bytes

    def _read(self, body: bytes, outcome: Outcome, listener: Listener) -> None:
        """Read what is asked, and have it answered; a thread of its own does it, because images take long."""
        self._reading[outcome.name] = time.monotonic()
        limits = self._limits
        try:
            sent = wire.read(body)
            if sent.model not in (None, self.model):
                raise RefusedError(404, **wire.unknown_model(sent.model, self.model))
            turns = sent.turns(
                most_images=limits.images,
                most_pixels=limits.megapixels * 1_000_000,
                bits=self._bits,
                ct_windows=self._windows,
            )
            outcome.texts = tuple(sent.texts()) if self._keeps_texts else ()
            outcome.asked = self.service.read(turns, sent.wanted(), outcome.name)
            outcome.sent = sent.model_copy(update={"messages": []})
            listener.tokens = sent.stream
            self.service.submit(outcome.name, outcome.asked, listener.tell)
        except RefusedError as refused:
            listener.tell(refused)
        except DataError as error:
            listener.tell(RefusedError(400, str(error)))
        except Exception as error:
            listener.tell(_bug(error))
        finally:
            del self._reading[outcome.name]

    async def _news(self, listener: Listener, outcome: Outcome) -> AsyncIterator[News]:
        """Yield the news of a request to its end, and note what becomes of it."""
        is_over = False
        while not is_over:
            news = await listener.next()
            if isinstance(news, Failure):
                raise RefusedError(500, news.error, "server_error")
            if isinstance(news, TokenEvent) and outcome.first is None:
                outcome.first = time.monotonic()
            if isinstance(news, Abstained):
                outcome.abstained = news
            if isinstance(news, Answer):
                outcome.answers.append(news)
            assert outcome.asked is not None
            is_over = outcome.abstained is not None or len(outcome.answers) == outcome.asked.n
            yield news

    async def _stream(
        self, send: Send, writer: ReplyWriter, first: News, rest: AsyncIterator[News], listener: Listener
    ) -> int:
        """Send events as things happen; return the status that the reply would have had if it had not begun before."""

        async def write(event: str) -> None:
            await send({"type": "http.response.body", "body": f"data: {event}\n\n".encode(), "more_body": True})

        headers = [(name.encode(), value.encode()) for name, value in _STREAM.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        news, status = first, 200
        try:
            while news is not None:
                for event in writer.events(news, has_more=listener.has_more):
                    await write(encode(event))
                news = await anext(rest, None)
            for event in writer.end():
                await write(encode(event))
        except GoneError:
            raise
        except Exception as error:
            refused = error if isinstance(error, RefusedError) else _bug(error)
            status = refused.status
            await write(encode(refused.body))
        await write("[DONE]")
        await send({"type": "http.response.body", "body": b""})
        return status
