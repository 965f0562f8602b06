"""A study of given answers whose questions are there, and a service on this machine that behaves as a test says."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dualread.commands.ask.sending import Limits, Service, send
from dualread.commands.ask.study import Asking
from dualread.models.service.bodies import image_url
from dualread.study.files import load
from tests.stages.shards import manifest_rows, write

ROOT = Path(__file__).parents[3]
STUDY = """
study: given
only: {backbones: [qwen3-vl-tiny], actors: [rlvr], datasets: [slake], methods: [rlvr, sequence_likelihood, p_true, sc2]}
backbones: {qwen3-vl-tiny: {source: {pretrain: null, service: some-model}}}
datasets: {slake: {pairing: null}}
actors:
  base: null
  rlcr: null
  dcpo: null
  vl_calibration: null
  rlvr: {training: null, reward: null, settings: null, answers: {folder: answers}}
conditions: {donor: null, donor_fixed_prefix: null, shuffled_image: null}
views: {samples: {decoding: {n_samples: 2}}}
methods: {base: null, rlcr: null, dcpo: null, vl_calibration: null}
contrasts: null
tables: {channel: null, reliability: null, ccg_denom: null, base_models: null, thresholds: null, controls: null,
         main: {without: null}, ood_acc: null, calib: null, ccg_ood: null}
figures: null
tuning: null
"""
QUESTIONS = {"train": 4, "validation": 3, "test": 3}
ROLES = {"train": ("fit", "stop", "calibration"), "validation": ("validation",), "test": ("test",)}
# Of 10 answers, 6 with samples (no train split), and as many replies about answers.
FIRST, ABOUT = 10 + 6, 6


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study's file, in a folder like that of the repository, which is the working folder."""
    (tmp_path / "config.yaml").write_text((ROOT / "config.yaml").read_text())
    (tmp_path / "mine.yaml").write_text(STUDY)
    for split, n in QUESTIONS.items():
        folder = tmp_path / "results/given/manifests/slake" / split
        write(folder, "manifest", manifest_rows(n, split=split, roles=ROLES[split]))
        (folder / "images").mkdir()
        for i in range(n):
            Image.new("RGB", (4, 4), (i, 0, 0)).save(folder / f"images/{i}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.yaml"


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """What a good service replies."""
    text = body["messages"][0]["content"][1]["text"]
    if "Proposed answer: Lung" in text:
        top = [{"token": "Yes", "logprob": -0.25}, {"token": "No", "logprob": -1.5}]
        logprobs = {"content": [{**top[0], "top_logprobs": top}]}
        return completion("Yes", logprobs=logprobs)
    answer = "<answer>Lung</answer><confidence>80</confidence>"
    logprobs = {"content": [{"token": answer, "logprob": -0.5}]} if body.get("logprobs") else None
    return completion(*[answer] * body["n"], logprobs=logprobs)


def completion(*texts: str, logprobs: Any = None) -> dict[str, Any]:
    choices = [
        {"index": i, "message": {"content": text}, "finish_reason": "stop", "logprobs": logprobs}
        for i, text in enumerate(texts)
    ]
    return {"choices": choices, "usage": {"prompt_tokens": 5}}


class Fake:
    """A service. `behave` gets the number of the call and its body, and returns a response, JSON or seconds."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.times: list[float] = []
        self.behave: Callable[[int, dict[str, Any]], Any] = lambda _, body: reply(body)
        self.address = ""

    async def answer(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.times.append(time.monotonic())
        self.bodies.append(body)
        self.keys.add(request.headers["authorization"])
        said = self.behave(len(self.bodies), body)
        if isinstance(said, float):
            await asyncio.sleep(said)
            said = reply(body)
        return said if isinstance(said, Response) else JSONResponse(said)


@pytest.fixture
def service() -> Iterator[Fake]:
    fake = Fake()
    app = Starlette(routes=[Route("/v1/chat/completions", fake.answer, methods=["POST"])])
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    fake.address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    yield fake
    server.should_exit = True
    thread.join()
    listening.close()


FAST = {"at_once": 3, "per_minute": 60_000, "timeout_seconds": 5.0, "first_wait_seconds": 0.01}


def sent(study: Path, service: Fake, **limits: Any) -> int:
    """Send what is open; return the number of requests that failed."""
    asking = Asking(load([study], Path()), [study])
    to = Service(address=service.address, key="secret")
    return send(asking, to, Limits(**FAST | limits), image_url("data"))


def lines(name: str = "responses/sent.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("answers", name).read_text().splitlines()]
