"""What became of one request: for its reply, the counts for Prometheus, the log, and the record."""

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from dualread.apps.serve.chat_questions import ActorRequest
from dualread.apps.serve.service import Abstained, Answer, Before, News
from dualread.errors import DataError
from dualread.progress import say

GONE = 499  # the status of a request whose client went away
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
_DECISIONS = {True: "kept", False: "not kept", None: "undecided"}


@dataclass(kw_only=True)
class Outcome:
    """One request and its answers; it came at `began` (`time.monotonic`), and its prompt was read at `first`.

    `asked` is None as long as the request could not be read; `texts` are those of its messages, if they are logged.
    """

    name: str
    began: float = field(default_factory=time.monotonic)
    status: int = GONE
    texts: tuple[str, ...] = ()
    asked: ActorRequest | None = None
    first: float | None = None
    answers: list[Answer] = field(default_factory=list)
    abstained: Abstained | None = None

    @property
    def n_prompt(self) -> int:
        """Number of tokens of the prompt."""
        return 0 if self.asked is None else len(self.asked.encoded.prompt.token_ids)

    @property
    def n_completion(self) -> int:
        """Number of tokens of all answers."""
        return sum(len(answer.completion.token_ids) for answer in self.answers)

    @property
    def is_over(self) -> bool:
        """Whether all answers are there, or none is made."""
        return self.abstained is not None or (self.asked is not None and len(self.answers) == self.asked.sent.n)

    def note(self, news: News) -> None:
        """Note what has become of the request."""
        if isinstance(news, Before):
            self.first = time.monotonic()
        elif isinstance(news, Abstained):
            self.abstained = news
        elif isinstance(news, Answer):
            self.answers.append(news)

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
        """Yield what a record keeps: a row per answer, or claim, that readers judge; equal greedy answers are one."""
        if self.asked is None or self.asked.shown is None:
            return
        sample_id = self.asked.sent.dualread.id or self.name
        for answer in self.answers[: self.asked.encoded.decoding.n_samples]:
            if (reading := answer.reading) is None:
                continue
            shared = {
                "sample_id": sample_id if answer.index == 0 else f"{sample_id}/{answer.index}",
                "image_id": " ".join(self.asked.shown.contents),
                "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "method": method,
            }
            if reading.claims is None:
                keep = None if answer.decision is None else answer.decision.keep
                numbers = {"confidence": answer.confidence, "psr": answer.psr, "per": reading.per, "keep": keep}
                yield shared | {"answer": reading.answer} | numbers
            for k, claim in enumerate(reading.claims or ()):
                place = {"claim": k, "start": claim.start, "end": claim.end, "answer": claim.text}
                yield shared | place | {name: getattr(claim, name) for name in ("confidence", "psr", "per", "keep")}


class Counts:
    """The counts of a server for Prometheus."""

    def __init__(self, *, requests_open: Callable[[], float], completions_open: Callable[[], float]):
        disable_created_metrics()
        self._registry = registry = CollectorRegistry()

        def counter(name: str, words: str, *labels: str) -> Counter:
            return Counter(f"dualread_{name}", words, labels, registry=registry)

        def histogram(name: str, words: str, buckets: Sequence[float] = _SECONDS) -> Histogram:
            return Histogram(f"dualread_{name}", words, buckets=buckets, registry=registry)

        self._requests = counter("requests", "Requests to /v1/chat/completions by status.", "status")
        words = "Answers by decision: kept, not kept, undecided, or without a confidence."
        self._answers = counter("answers", words, "decision")
        self._abstentions = counter("abstentions", "Requests without an answer, because PSR was below the limit.")
        self._disconnects = counter("disconnects", "Requests whose client went away before the end.")
        self._tokens = counter("tokens", "Tokens of prompts and of completions.", "kind")
        self._first = histogram("first_token_seconds", "From a request to its first token.")
        self._seconds = histogram("request_seconds", "From a request to its last byte.")
        self._confidence = histogram("confidence", "Confidences of answers.", [k / 10 for k in range(1, 11)])
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


_START = b'{"sample_id": '  # of a line of a record
_LONGEST = 2**20  # bytes of a line


class Record:
    """What is kept of answers if a server is asked to: no text of a question, and enough to judge the answers later.

    It is a table for `dualread evaluate`, one JSON line per answer that readers judge; one that does not exist has no
    confidence. As soon as the gold answers are known, a column with them is all that is missing. A file that exists is
    continued, without a last line that was cut off; a DataError says that it cannot be written, or is no record.
    """

    def __init__(self, file: Path):
        try:
            if file.is_file():
                _start_a_line(file)
            self._stream = file.open("ab", buffering=0)
        except OSError as error:
            raise DataError(f"{file}: cannot be written ({error.strerror}). Give another --record.") from error

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one line; where that is impossible, say so: answers go on."""
        line = (json.dumps(row) + "\n").encode()  # in ASCII: some readers take U+2028 in an id for the end of a line
        try:
            if (written := self._stream.write(line)) < len(line):  # the disk is full
                self._stream.truncate(self._stream.tell() - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            say(f"--record: an answer is not recorded ({error.strerror})")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _start_a_line(file: Path) -> None:
    """Remove the last line if a server that was killed has written a part of it alone."""
    size = file.stat().st_size
    with file.open("rb+") as stream:
        stream.seek(max(0, size - _LONGEST))
        *_, last = stream.read().split(b"\n")
        if not last:
            return
        if last[: len(_START)] != _START[: len(last)]:
            raise DataError(f"{file}: is no record of answers. Give another --record.")
        stream.truncate(size - len(last))
    say(f"{file}: the last line was cut off, and is removed")
