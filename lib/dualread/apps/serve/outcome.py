"""What became of one request: for its reply, the counts for Prometheus, the log, and the record."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from dualread.apps.serve.chat_questions import ActorRequest
from dualread.apps.serve.service import Abstained, Answer
from dualread.apps.serve.wire import ChatRequest
from dualread.progress import say

GONE = 499  # the status of a request whose client went away
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
_DECISIONS = {True: "kept", False: "not kept", None: "undecided"}


@dataclass(kw_only=True)
class Outcome:
    """One request and its answers.

    Attributes:
        name: Its id.
        began: When it came, on the clock of `time.monotonic`.
        status: The status of the reply; `GONE` if the client went away.
        sent: What it asked for, without messages; None if that could not be read.
        texts: The texts of its messages, if the log is to have them.
        asked: The same as the actor got it.
        first: When its first token was made.
        answers: The whole answers.
        abstained: Why no answer was made, if so.
    """

    name: str
    began: float = field(default_factory=time.monotonic)
    status: int = GONE
    sent: ChatRequest | None = None
    texts: tuple[str, ...] = ()
    asked: ActorRequest | None = None
    first: float | None = None
    answers: list[Answer] = field(default_factory=list)
    abstained: Abstained | None = None

    @property
    def n_prompt(self) -> int:
        """Number of tokens of the prompt."""
        return 0 if self.asked is None else len(self.asked.prompt.token_ids)

    @property
    def n_completion(self) -> int:
        """Number of tokens of all answers."""
        return sum(len(answer.completion.token_ids) for answer in self.answers)

    def log(self) -> None:
        """Log one line: when, which, its status, its tokens, its time, and how far its answers can be trusted."""
        words = [f"{self.n_prompt}+{self.n_completion} tokens", f"{time.monotonic() - self.began:.3f} s"]
        for answer in self.answers:
            words.append("no confidence" if (c := answer.confidence) is None else f"confidence {c:.4f}")
        if self.abstained is not None:
            words.append(f"abstained, PSR {self.abstained.psr:.4f}")
        if self.texts:
            words.append(repr({"asked": self.texts, "answered": [answer.completion.text for answer in self.answers]}))
        say(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {self.name} {self.status} {', '.join(words)}")

    def rows(self, method: str) -> Iterator[dict[str, Any]]:
        """Yield what a record keeps: one row per answer with a confidence; greedy answers of a request are one."""
        if self.sent is None or self.asked is None or self.asked.shown is None:
            return
        sample_id = self.sent.dualread.id or self.name
        for answer in self.answers[: self.asked.decoding.n_samples]:
            if answer.reading is not None:
                yield {
                    "sample_id": sample_id if answer.index == 0 else f"{sample_id}/{answer.index}",
                    "image_id": self.asked.shown.content,
                    "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                    "method": method,
                    "answer": answer.reading.answer,
                    "confidence": answer.confidence,
                    "psr": answer.psr,
                    "per": answer.reading.per,
                    "keep": None if answer.decision is None else answer.decision.keep,
                }


class Counts:
    """The counts of a server for Prometheus."""

    def __init__(self, *, requests_open: Callable[[], float], completions_open: Callable[[], float]):
        disable_created_metrics()
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "dualread_requests", "Requests to /v1/chat/completions by status.", ["status"], registry=registry
        )
        self._answers = Counter(
            "dualread_answers",
            "Answers by decision: kept, not kept, undecided, or without a confidence.",
            ["decision"],
            registry=registry,
        )
        self._abstentions = Counter(
            "dualread_abstentions", "Requests without an answer, because PSR was below the limit.", registry=registry
        )
        self._disconnects = Counter(
            "dualread_disconnects", "Requests whose client went away before the end.", registry=registry
        )
        self._tokens = Counter("dualread_tokens", "Tokens of prompts and of completions.", ["kind"], registry=registry)
        self._first = Histogram(
            "dualread_first_token_seconds", "From a request to its first token.", buckets=_SECONDS, registry=registry
        )
        self._seconds = Histogram(
            "dualread_request_seconds", "From a request to its last byte.", buckets=_SECONDS, registry=registry
        )
        shares = [k / 10 for k in range(1, 11)]
        self._confidence = Histogram(
            "dualread_confidence", "Confidences of answers.", buckets=shares, registry=registry
        )
        for name, words, value in (
            ("requests", "Requests that are being answered or wait.", requests_open),
            ("completions", "Completions that are being made, wait, or still hold memory.", completions_open),
        ):
            Gauge(f"dualread_{name}_open", words, registry=registry).set_function(value)

    def add(self, outcome: Outcome) -> None:
        """Count a request that is over."""
        now = time.monotonic()
        self._requests.labels(str(outcome.status)).inc()
        self._seconds.observe(now - outcome.began)
        self._disconnects.inc(outcome.status == GONE)
        self._abstentions.inc(outcome.abstained is not None)
        self._tokens.labels("prompt").inc(outcome.n_prompt)
        self._tokens.labels("completion").inc(outcome.n_completion)
        if outcome.first is not None:
            self._first.observe(outcome.first - outcome.began)
        for answer in outcome.answers:
            decision = "without a confidence"
            if answer.confidence is not None and answer.decision is not None:
                decision = _DECISIONS[answer.decision.keep]
            self._answers.labels(decision).inc()
            if answer.confidence is not None:
                self._confidence.observe(answer.confidence)

    def text(self) -> bytes:
        """Return all counts, as Prometheus reads them."""
        return generate_latest(self._registry)
