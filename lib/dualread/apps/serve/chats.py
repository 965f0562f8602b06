"""/v1/chat/completions: one request from its first byte to its last."""

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from dualread import limits
from dualread.apps.serve import wire
from dualread.apps.serve.outcome import GONE, Counts, Outcome
from dualread.apps.serve.replies import ReplyWriter
from dualread.apps.serve.service import AnswerError, AnsweringService, News
from dualread.apps.serve.web import JsonReply, RefusedError, encode
from dualread.data.given_images import read
from dualread.data.images import Decoded
from dualread.errors import DataError
from dualread.limits import REQUESTS_READ, ClientLimits

# Proxies pass the events of a stream on as they come (nginx collects them otherwise).
_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-accel-buffering": "no"}


class _Listener:
    """Brings news from other threads to a coroutine, and errors, which are raised there.

    It is woken once for all that has come meanwhile: with many streams, a wake per token costs more than the token.
    """

    def __init__(self) -> None:
        self._loop, self._come = asyncio.get_running_loop(), asyncio.Event()
        self.news: deque[News | Exception] = deque()
        self._woken = False

    def tell(self, news: News | Exception) -> None:
        """Take news; any thread may call it."""
        self.news.append(news)
        if not self._woken:
            self._woken = True
            self.on_loop(self._come.set)

    def on_loop(self, call: Callable[[], None]) -> None:
        """Have the loop call something; any thread may ask for it."""
        with suppress(RuntimeError):  # the loop has ended, and nobody listens
            self._loop.call_soon_threadsafe(call)

    async def end_with(self, receive: Receive) -> None:
        """Wait until the client goes away, and let `next` say so."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.tell(ClientDisconnect())

    async def next(self, outcome: Outcome) -> News:
        """Return the next news when they come, noted in `outcome`; raise what another thread told."""
        while not self.news:
            self._woken = False  # before another look: who tells now wakes again
            if not self.news:
                await self._come.wait()
            self._come.clear()
        if isinstance(news := self.news.popleft(), Exception):
            raise news
        outcome.note(news)
        return news


class Chats:
    """Answers requests to `model` with a service; an ASGI application.

    `read_image` decodes an image's file. `done` is called with the outcome of each request that is over, which has its
    texts if `keeps_texts`.
    """

    def __init__(
        self,
        service: AnsweringService,
        *,
        model: str,
        limits: ClientLimits,
        read_image: Callable[[bytes], Decoded] = read,
        keeps_texts: bool = False,
        done: Callable[[Outcome], None] = lambda outcome: None,
    ):
        self.service, self.model, self.n_open = service, model, 0
        self.counts = Counts(requests_open=lambda: self.n_open, completions_open=lambda: service.n_open)
        self.limits, self._read_image = limits, read_image
        self._keeps_texts, self._done = keeps_texts, done
        self._threads = ThreadPoolExecutor(REQUESTS_READ, thread_name_prefix="dualread request")
        self._reading: dict[str, float] = {}  # since when a thread reads a request
        self._n_bytes = 0  # of all bodies that are being sent or read

    @property
    def seconds_stuck(self) -> float:
        """For how long the model has given nothing, or a request has been read."""
        now = time.monotonic()
        return max([self.service.seconds_stuck, *(now - began for began in list(self._reading.values()))])

    def unknown_model(self, name: str) -> RefusedError:
        """Return the refusal of a request to a model that is not here."""
        return RefusedError(404, f"no model {name[:200]!r} here. Known: {self.model}.", code="model_not_found")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        outcome = Outcome(name=f"chatcmpl-{scope['request_id']}")
        self.n_open += 1
        try:
            await self._answer(Request(scope, receive), send, outcome)
        except ClientDisconnect:
            outcome.status = GONE
        except Exception as error:
            refused = _refusal(error)
            outcome.status = refused.status
            # What is left of a request that is too large is not read.
            headers = {"connection": "close"} | ({"retry-after": "1"} if refused.status == 429 else {})
            await refused.reply(headers)(scope, receive, send)
        finally:
            self.n_open -= 1
            self.counts.add(outcome)
            self._done(outcome)

    async def _answer(self, request: Request, send: Send, outcome: Outcome) -> None:
        if self.n_open > self.limits.requests:
            text = f"{self.n_open - 1} requests are open, and no more may. Ask again later."
            raise RefusedError(429, text, "rate_limit_error")
        body, listener = await self._body(request), _Listener()
        watching = asyncio.create_task(listener.end_with(request.receive))
        reading, release = self._threads.submit(self._read, body, outcome, listener), partial(self._release, len(body))
        del body  # what waits for the model has no file in memory
        reading.add_done_callback(lambda _: listener.on_loop(release))
        try:
            first = await listener.next(outcome)  # what refuses the request is raised here, before a reply begins
            writer = ReplyWriter(outcome, self.service, self.model)
            if writer.is_stream:
                outcome.status = await self._stream(send, writer, first, outcome, listener)
                return
            while not outcome.is_over:
                await listener.next(outcome)
            await JsonReply(writer.whole())(request.scope, request.receive, send)
            outcome.status = 200
        finally:
            watching.cancel()
            reading.cancel()
            reading.add_done_callback(lambda _: self.service.abort(outcome.name))

    async def _body(self, request: Request) -> bytes:
        """Return the body of a request, whose bytes count until they are released."""
        body, most = bytearray(), self.limits.megabytes * 1_000_000
        try:
            async with asyncio.timeout(limits.SECONDS_FOR_BODY):
                async for part in request.stream():
                    body += part
                    self._n_bytes += len(part)
                    if len(body) > most:
                        text = f"the request has more than {self.limits.megabytes} MB. Shrink its images."
                        raise RefusedError(413, text)
                    if self._n_bytes > limits.BODIES * most:
                        raise RefusedError(429, "too much is being sent at once. Ask again later.", "rate_limit_error")
        except BaseException as error:
            self._release(len(body))
            if isinstance(error, TimeoutError):
                raise RefusedError(408, "the request did not arrive in time. Ask again.") from error
            raise
        return bytes(body)

    def _release(self, n_bytes: int) -> None:
        self._n_bytes -= n_bytes

    def _read(self, body: bytes, outcome: Outcome, listener: _Listener) -> None:
        """Read what is asked, and have it answered; a thread of its own does it, because images take long."""
        self._reading[outcome.name] = time.monotonic()
        try:
            sent = wire.read(body)
            if sent.model not in (None, self.model):
                raise self.unknown_model(sent.model)
            turns = sent.turns(self.limits, self._read_image)
            outcome.texts = tuple(sent.texts()) if self._keeps_texts else ()
            without_messages = sent.model_copy(update={"messages": []})
            outcome.asked = self.service.requests.read(turns, without_messages, outcome.name)
            self.service.submit(outcome.asked, listener.tell)
        except Exception as error:
            listener.tell(error)
        finally:
            del self._reading[outcome.name]

    async def _stream(self, send: Send, writer: ReplyWriter, news: News, outcome: Outcome, listener: _Listener) -> int:
        """Send events as things happen; return the status that the reply would have had if it had not begun before."""

        async def write(event: str) -> None:
            await send({"type": "http.response.body", "body": f"data: {event}\n\n".encode(), "more_body": True})

        headers = [(name.encode(), value.encode()) for name, value in _STREAM.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        status = 200
        try:
            while True:
                for event in writer.events(news, has_more=bool(listener.news)):
                    await write(encode(event))
                if outcome.is_over:
                    break
                news = await listener.next(outcome)
        except ClientDisconnect:
            raise
        except Exception as error:
            refused = _refusal(error)
            status = refused.status
            await write(encode(refused.body))
        await write("[DONE]")
        await send({"type": "http.response.body", "body": b""})
        return status


def _refusal(error: Exception) -> RefusedError:
    """Return what a client is told of an error; of one that nobody expected, such as a lack of memory, print all."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, DataError):
        return RefusedError(400, str(error))
    if isinstance(error, AnswerError):
        return RefusedError(500, str(error), "server_error")
    traceback.print_exception(error)
    return RefusedError(500, f"the server cannot answer this ({type(error).__name__}).", "server_error")
