"""/v1/chat/completions: one request from its first byte to its last, and what is counted of it."""

import asyncio
import json
import math
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from dualread.commands.serve import wire
from dualread.commands.serve.counters import Counters
from dualread.commands.serve.streams import GoneError, GrowingText, Listener
from dualread.declared.data import CtWindows
from dualread.errors import DataError
from dualread.models.backbones.encode import Encoder
from dualread.own.serving.asked import ActorRequest
from dualread.own.serving.service import Abstained, Answer, AnsweringService, Failure, News, NextToken

GONE = 499  # the status of a request whose client went away
_SECONDS = 60  # for a body to arrive
_AT_ONCE = 2  # requests whose images are decoded at once; one can take a gigabyte
_JSON = json.JSONEncoder(ensure_ascii=False)  # `json.dumps` makes a new one for each event
_BODIES = 8  # of all requests that are being sent or decoded: so many times the largest one


@dataclass(frozen=True, kw_only=True)
class ClientLimits:
    """How much clients may send.

    Attributes:
        megabytes: Of one request, with its images in base64.
        images: In one request.
        requests: That are answered or wait at once.
    """

    megabytes: int = 32
    images: int = 8
    requests: int = 256


@dataclass(kw_only=True)
class Outcome:
    """What became of one request, for whoever counts, logs or records it.

    Attributes:
        name: Its id.
        began: When it came, on the clock of `time.monotonic`.
        status: The status of the reply; `GONE` if the client went away.
        sent: What it asked for; None if that could not be read.
        asked: The same as the actor got it.
        first: When its first token was made.
        answers: The whole answers.
        abstained: Why no answer was made, if so.
    """

    name: str
    began: float
    status: int = GONE
    sent: wire.ChatRequest | None = None
    asked: ActorRequest | None = None
    first: float | None = None
    answers: list[Answer] = field(default_factory=list)
    abstained: Abstained | None = None

    def usage(self) -> dict[str, int]:
        """Return the counts of tokens."""
        said = sum(len(answer.completion.token_ids) for answer in self.answers)
        return wire.usage(0 if self.asked is None else len(self.asked.prompt.token_ids), said)

    def rows(self, method: str) -> Iterator[dict[str, Any]]:
        """Yield what a record keeps: one row for the answer with a confidence; greedy answers of a request are one."""
        if self.sent is None or self.asked is None or self.asked.shown is None:
            return
        own = self.sent.dualread.id or self.name
        for answer in self.answers[: self.asked.decoding.n_samples]:
            if answer.reading is not None:
                yield {
                    "sample_id": own if answer.index == 0 else f"{own}/{answer.index}",
                    "image_id": self.asked.shown.content,
                    "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                    "method": method,
                    "answer": answer.reading.answer,
                    "confidence": answer.reading.confidence,
                    "psr": answer.psr,
                    "per": answer.reading.per,
                    "keep": None if answer.decision is None else answer.decision.keep,
                }


class _RefusedError(Exception):
    def __init__(self, status: int, message: str, kind: str = "invalid_request_error", code: str | None = None):
        super().__init__(message)
        self.status, self.body = status, wire.error(message, kind, code)


class Chats:
    """Answers requests with a service; an ASGI application.

    Args:
        service: What answers.
        model: The name that requests give.
        limits: How much clients may send.
        bits: How many bits of 16-bit gray images count where their files do not say it.
        ct_windows: Through which CT in DICOM is shown; None for what files say.
        done: Called with every reply when it is over.

    Attributes:
        service: As given.
        model: As given.
    """

    def __init__(
        self,
        service: AnsweringService,
        *,
        model: str,
        limits: ClientLimits = ClientLimits(),
        bits: int | None = None,
        ct_windows: CtWindows | None = None,
        done: Callable[[Outcome], None] = lambda reply: None,
    ):
        self.service, self.model = service, model
        self._limits, self._bits, self._windows, self._done = limits, bits, ct_windows, done
        self._preparing = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="dualread request")
        self._counters = Counters()
        self._open = self._bytes = 0

    def counted(self) -> str:
        """Return all counts, as Prometheus reads them."""
        return self._counters.text({"requests_open": self._open, "completions_open": self.service.n_open})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        reply = Outcome(name=f"chatcmpl-{uuid.uuid4().hex}", began=time.monotonic())
        self._open += 1
        try:
            try:
                await self._reply(scope, receive, send, reply)
            except _RefusedError as refused:
                reply.status = refused.status
                # What is left of a request that is too large is not read.
                headers = {"Connection": "close"} | ({"Retry-After": "1"} if refused.status == 429 else {})
                await JSONResponse(refused.body, refused.status, headers=headers)(scope, receive, send)
        except (GoneError, ClientDisconnect, TimeoutError):
            reply.status = GONE
        finally:
            self._open -= 1
            self._count(reply)
            self._done(reply)

    async def _reply(self, scope: Scope, receive: Receive, send: Send, reply: Outcome) -> None:
        if self._open > self._limits.requests:
            said = f"{self._open - 1} requests are open, and no more may. Ask again later."
            raise _RefusedError(429, said, "rate_limit_error")
        await self._take(Request(scope, receive), reply)
        assert reply.sent is not None
        assert reply.asked is not None
        news = Listener(tokens=bool(reply.sent.stream))
        self.service.submit(reply.name, reply.asked, news.tell)
        watching = asyncio.create_task(news.end_with(receive))
        try:
            first = await news.next()
            if isinstance(first, Failure):
                raise _RefusedError(500, first.error, "server_error")
            if reply.sent.stream:
                await self._stream(send, self._events(first, news, reply), reply)
            else:
                await JSONResponse(await self._whole(first, news, reply))(scope, receive, send)
                reply.status = 200
        finally:
            watching.cancel()
            self.service.abort(reply.name)

    async def _take(self, request: Request, reply: Outcome) -> None:
        """Read what is asked."""
        most, body = self._limits.megabytes * 1_000_000, bytearray()
        try:
            async with asyncio.timeout(_SECONDS):
                async for part in request.stream():
                    body += part
                    self._bytes += len(part)
                    if len(body) > most:
                        said = f"the request has more than {self._limits.megabytes} MB. Shrink its images."
                        raise _RefusedError(413, said)
                    if self._bytes > _BODIES * most:
                        raise _RefusedError(429, "too much is being sent at once. Ask again later.", "rate_limit_error")
            run = asyncio.get_running_loop().run_in_executor
            reply.sent, reply.asked = await run(self._preparing, self._read, bytes(body), reply.name)
        except TimeoutError as error:
            raise _RefusedError(408, "the request did not arrive in time. Ask again.") from error
        except DataError as error:
            raise _RefusedError(400, str(error)) from error
        finally:
            self._bytes -= len(body)

    def _read(self, body: bytes, name: str) -> tuple[wire.ChatRequest, ActorRequest]:
        sent = wire.read(body)
        if sent.model not in (None, self.model):
            raise _RefusedError(404, **wire.unknown_model(sent.model, self.model))
        turns = sent.turns(most_images=self._limits.images, bits=self._bits, ct_windows=self._windows)
        return sent, self.service.read(turns, sent.wanted(), name)

    async def _all(self, first: News, news: Listener, reply: Outcome) -> AsyncIterator[News]:
        """Yield the news of a request to its end, and note what becomes of it."""
        assert reply.asked is not None
        one = first
        while True:
            if isinstance(one, Failure):
                raise _RefusedError(500, one.error, "server_error")
            if isinstance(one, NextToken) and reply.first is None:
                reply.first = time.monotonic()
            if isinstance(one, Abstained):
                reply.abstained = one
            if isinstance(one, Answer):
                reply.answers.append(one)
            yield one
            if reply.abstained is not None or len(reply.answers) == reply.asked.n:
                return
            one = await news.next()

    async def _whole(self, first: News, news: Listener, reply: Outcome) -> Mapping[str, Any]:
        async for _ in self._all(first, news, reply):
            pass
        made = [self._choice(answer, reply) for answer in sorted(reply.answers, key=lambda answer: answer.index)]
        if reply.abstained is not None:
            message = {"role": "assistant", "content": None, "refusal": wire.refusal(reply.abstained)}
            judged = wire.of_abstention(reply.abstained)
            made = [
                {**_ended(i), "message": message, "dualread": judged}
                for i in range(reply.asked.n if reply.asked else 0)
            ]
        return wire.completion(reply.name, self.model, made, reply.usage())

    def _choice(self, answer: Answer, reply: Outcome) -> dict[str, Any]:
        made = answer.completion
        finite = (one if math.isfinite(one) else None for one in made.token_log_probs)
        log_probs = self._log_probs(zip(made.token_ids, finite, strict=True), reply)
        return {
            **_ended(answer.index, made.finish_reason, log_probs),
            "message": {"role": "assistant", "content": made.text, "refusal": None},
            "dualread": self._judged(answer),
        }

    def _judged(self, answer: Answer) -> dict[str, Any]:
        return wire.of_answer(answer, self.service.loaded.threshold)

    def _log_probs(self, tokens: Iterable[tuple[int, float | None]], reply: Outcome) -> list[dict[str, Any]] | None:
        """Return what the reply says about tokens; None if its request does not want it."""
        if reply.sent is None or not reply.sent.logprobs:
            return None
        return [self._log_prob(token, log_prob) for token, log_prob in tokens]

    def _log_prob(self, token: int, log_prob: float | None) -> dict[str, Any]:
        text = self._encoder.tokenizer.decode([token])
        return {"token": text, "logprob": log_prob, "bytes": list(text.encode()), "top_logprobs": []}

    @property
    def _encoder(self) -> Encoder:
        return self.service.loaded.actor.encoder

    async def _events(self, first: News, news: Listener, reply: Outcome) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a stream: PSR first, then the text, and all that is known about it at its end.

        The last one says it in `delta`, too, because a client that adds up a stream keeps only what is there.
        """
        assert reply.asked is not None
        assert reply.sent is not None
        texts = {index: GrowingText(self._encoder) for index in range(reply.asked.n)}
        begun = False
        try:
            async for one in self._all(first, news, reply):
                choices: list[dict[str, Any]] = []
                if not begun:
                    begun, psr = True, None if isinstance(one, NextToken | Answer | Failure) else one.psr
                    head = {"delta": {"role": "assistant", "content": ""}, "dualread": {"psr": psr}}
                    choices += [{**_ended(i, None), **head} for i in texts]
                if isinstance(one, NextToken):
                    texts[one.index].add(one.token, one.log_prob)
                if not isinstance(one, NextToken) or not news.has_more:  # what comes together is sent together
                    choices += [self._part(index, text, reply) for index, text in texts.items() if text.has_part]
                if isinstance(one, Answer):
                    rest = texts[one.index].rest(one.completion.text)
                    judged = self._judged(one)
                    delta = {**({"content": rest} if rest else {}), "dualread": judged}
                    end = _ended(one.index, one.completion.finish_reason)
                    choices.append({**end, "delta": delta, "dualread": judged})
                elif isinstance(one, Abstained):
                    judged = wire.of_abstention(one)
                    delta = {"refusal": wire.refusal(one), "dualread": judged}
                    choices += [{**_ended(i), "delta": delta, "dualread": judged} for i in texts]
                for choice in choices:
                    yield wire.chunk(reply.name, self.model, [choice])
        except _RefusedError as refused:  # the stream has begun, so that its status cannot say it
            reply.status = refused.status
            yield refused.body
            return
        reply.status = 200
        if reply.sent.stream_options is not None and reply.sent.stream_options.include_usage:
            yield wire.chunk(reply.name, self.model, [], usage=reply.usage())

    def _part(self, index: int, text: GrowingText, reply: Outcome) -> dict[str, Any]:
        part, said = text.part()
        return {**_ended(index, None, self._log_probs(said, reply)), "delta": {"content": part}}

    async def _stream(self, send: Send, events: AsyncIterator[dict[str, Any]], reply: Outcome) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for event in events:
            await _send(send, f"data: {_JSON.encode(event)}\n\n", more=True)
        await _send(send, "data: [DONE]\n\n", more=False)

    def _count(self, reply: Outcome) -> None:
        count, now = self._counters, time.monotonic()
        count.add("requests_total", status=str(reply.status))
        count.see("request_seconds", now - reply.began)
        if reply.status == GONE:
            count.add("disconnects_total")
        if reply.first is not None:
            count.see("first_token_seconds", reply.first - reply.began)
        if reply.asked is not None:
            count.add("tokens_total", reply.usage()["prompt_tokens"], kind="prompt")
            count.add("tokens_total", reply.usage()["completion_tokens"], kind="completion")
        if reply.abstained is not None:
            count.add("abstentions_total")
        for answer in reply.answers:
            confidence = None if answer.reading is None else answer.reading.confidence
            keep = "without a confidence"
            if confidence is not None and answer.decision is not None:
                keep = _KEPT[answer.decision.keep]
            count.add("answers_total", decision=keep)
            if confidence is not None:
                count.see("confidence", confidence)


_KEPT = {True: "kept", False: "not kept", None: "undecided"}


def _ended(index: int, reason: str | None = "stop", said: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    log_probs = None if said is None else {"content": said, "refusal": None}
    return {"index": index, "finish_reason": reason, "logprobs": log_probs}


async def _send(send: Send, text: str, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": more})
