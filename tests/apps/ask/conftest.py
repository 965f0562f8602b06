"""A study of given answers whose questions are there, and a service on this machine that behaves as a test says."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image

from dualread.apps import main as program
from dualread.apps.ask.sending import Endpoint
from dualread.apps.ask.study import Asking
from dualread.study.files import load
from tests.service import Fake, completion, serving
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
"""
QUESTIONS = {"train": 4, "validation": 3, "test": 3}
ROLES = {"train": ("fit", "stop", "calibration"), "validation": ("validation",), "test": ("test",)}
# Of 10 answers, 6 with samples (no train split), and as many replies about answers.
FIRST, ABOUT = 10 + 6, 6


def counted(folder: Path, **steps: str) -> None:
    """Write the audit of an artifact of questions, with the reasons of its steps."""
    found = {"repetitions": "0 rows repeat another row", **steps}
    pl.DataFrame({"step": list(found), "reason": list(found.values())}).write_parquet(folder / "audit.parquet")


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
        counted(folder)
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


@pytest.fixture
def service() -> Iterator[Fake]:
    with serving(lambda _, body: reply(body)) as fake:
        yield fake


FAST = {"at_once": 3, "per_minute": 60_000, "timeout_seconds": 5.0, "retries": 1}


def sent(study: Path, service: Fake, **limits: Any) -> int:
    """Send what is open; return the number of requests that failed."""
    return send_all(study, Endpoint(address=service.address, key="secret", **FAST | limits))


def send_all(study: Path, to: Endpoint) -> int:
    """Send what is open as the program does."""
    asking = Asking(load([study], Path()), [study])
    return sum(to.send(folder, partial(asking.batches, folder)) for folder in asking.folders)


def lines(*, answered: bool = True) -> list[dict[str, Any]]:
    """Return the responses that were kept; or the lines of requests that were not answered."""
    sent = [json.loads(line) for line in Path("answers/responses/sent.jsonl").read_text().splitlines()]
    return [line for line in sent if ((line["response"] or {}).get("status_code") == 200) is answered]


@pytest.fixture
def ask(study, capsys):
    """Return a function that runs `dualread ask mine.yaml` with options, and returns its exit code and what it says."""

    def called(*options):
        code = program.main(["ask", "mine.yaml", *options])
        said = capsys.readouterr()
        return code, said.out + said.err

    return called
