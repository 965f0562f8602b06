"""`dualread ask --run` sends a study's requests to vLLM's own server; what comes back is compared with our engine.

Both have the checkpoint of one actor. The server renders the checkpoint's chat template and processes images itself.
"""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dualread.apps import main as program
from dualread.apps.ask.study import Asking
from dualread.artifacts.tables import read_parts, read_table
from dualread.artifacts.tensors import read_tensors
from dualread.schema.columns import CHOICES, FEATURES, GENERATIONS
from dualread.study.files import load
from tests.with_vllm.conftest import ROOT
from tests.workflow.checkout import Checkout
from tests.workflow.faults import STUDY

# Images have the size that the model sees: resized ones would differ, because the server resamples otherwise.
OURS = """
study: ours
only: {methods: [rlvr, sequence_likelihood, p_true, sc2]}
backbones:
  qwen3-vl-tiny:   # heads have to be 32 wide
    source: {pretrain: {architecture: {hidden_size: 128}, training: {mixture: {shared: 0.8, p_true: 0.2}}}}
generation: {decoding: {max_completion_tokens: 20}}
views: {samples: {decoding: {n_samples: 2}}}
methods: {sc4: null, sc8: null, semantic_uncertainty: null}
tables: {main: {without: null}}
"""
GIVEN = """
study: given
actors:
  rlvr: {training: null, reward: null, settings: null, answers: {folder: ../answers}}
"""
FILES = [STUDY, "ours.yaml", "given.yaml"]
RUNS = {"ours": "qwen3-vl-tiny/rlvr/17", "given": "qwen3-vl-tiny/rlvr/0"}
SHARDS = ["train/original", "validation/original", "test/original", "test/donor"]
ASKED_ABOUT = SHARDS[1:]
# What a request does not name, a server takes from the checkpoint unless it is told not to.
CHECKPOINTS_OWN = {"do_sample": True, "repetition_penalty": 2.0, "top_k": 1}


@pytest.fixture(scope="module")
def answered(vllm_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with the artifacts of our engine, and those of the server's replies."""
    checkout = Checkout.create(tmp_path_factory.mktemp("ask") / "checkout")
    (checkout.folder / "ours.yaml").write_text(OURS)
    (checkout.folder / "given.yaml").write_text(GIVEN)
    make(checkout, FILES[:2], targets("ours"))
    make(checkout, FILES, ["questions"])
    checkpoint = served(checkout)
    with pytest.MonkeyPatch.context() as patch, serving(vllm_python, checkpoint, checkout.folder.parent) as address:
        patch.chdir(checkout.folder)
        patch.setenv("SERVERS_KEY", "secret")
        sending = ["--run", "--to", address, "--key", "SERVERS_KEY", "--per-minute", "60000"]
        assert program.main(["ask", *FILES, *sending]) == 0
    make(checkout, FILES, targets("given"))
    return checkout


def served(checkout: Checkout) -> Path:
    """A copy of the actor's checkpoint that comes with settings of its own for generation."""
    actor, copy = checkout.folder / "results/ours/actors" / RUNS["ours"], checkout.folder.parent / "served"
    shutil.copytree(actor / "checkpoint", copy)
    settings = copy / "generation_config.json"
    own = json.loads(settings.read_text()) | CHECKPOINTS_OWN
    settings.unlink()  # the store's files, and copies of them, may only be read
    settings.write_text(json.dumps(own))
    return copy


@contextmanager
def serving(python: Path, checkpoint: Path, folder: Path) -> Iterator[str]:
    """Run vLLM's server until the end of the block; yields its address.

    `vllm serve` cannot be used here: it asks for the version of a distribution of the name vllm, which the build for
    CPUs does not have. This module runs the same server.
    """
    (folder / "sitecustomize.py").write_text("from dualread.models.generation._vllm import prepare\n\nprepare()\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(checkpoint)]
    command += ["--served-model-name", "qwen3-vl-tiny", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--api-key", "secret", "--generation-config", "vllm", "--dtype", "float32", "--enforce-eager"]
    command += ["--max-num-seqs", "16", "--kv-cache-memory-bytes", str(2**28)]
    variables = {"PYTHONPATH": f"{folder}:{ROOT / 'lib'}", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    log = folder / "server.log"
    with (
        log.open("w") as said,
        subprocess.Popen(command, env={**os.environ, **variables}, stdout=said, stderr=said) as server,
    ):
        try:
            until_healthy(f"http://127.0.0.1:{port}/health", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def until_healthy(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(url):
                return
        except urllib.error.URLError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.5)
    raise AssertionError(log.read_text())


def make(checkout: Checkout, files: list[str], wanted: list[str]) -> None:
    done = checkout.snakemake(*wanted, study=" ".join(files))
    assert done.returncode == 0, done.text


def targets(study: str) -> list[str]:
    kinds = [("features", "test/original"), ("views", "test/original/p_true")]
    return [f"results/{study}/{kind}/{RUNS[study]}/slake/{shard}/MANIFEST.json" for kind, shard in kinds]


def both(checkout: Checkout, kind: str, shard: str) -> list[Path]:
    """The artifacts of our engine, and of the server."""
    return [checkout.folder / "results" / study / kind / run / "slake" / shard for study, run in RUNS.items()]


def test_every_request_has_one_usable_response(answered, monkeypatch):
    monkeypatch.chdir(answered.folder)
    files = [Path(name) for name in FILES]
    batches = list(Asking(load(files, Path()), files).batches(Path("../answers")))
    names = {"/".join(batch.name.split("/")[3:]): len([*batch.requests()]) for batch in batches}
    assert set(names) == {*SHARDS, *(f"{shard}/{view}" for shard in ASKED_ABOUT for view in ("samples", "p_true"))}
    assert all(names.values())
    assert not any(batch.replied.n_missing or batch.waiting for batch in batches)
    sent = Path("../answers/responses/sent.jsonl").read_text().splitlines()
    assert len(sent) == len({json.loads(line)["custom_id"] for line in sent}) == sum(names.values())
    assert all(json.loads(line)["error"] is None for line in sent)


@pytest.mark.parametrize("shard", SHARDS)
def test_greedy_completions_are_those_of_our_engine(answered, shard):
    ours, given = (read_parts(f, GENERATIONS).sort("sample_id") for f in both(answered, "generations", shard))
    columns = ["sample_id", "condition", "sample_index", "image_id", "n_prompt_tokens", "text", "finish_reason"]
    assert given.select(columns).equals(ours.select(columns))
    # The token that ends the turn is listed, too.
    assert given["token_log_probs"].list.len().equals(ours["token_log_probs"].list.len())
    difference = given["token_log_probs"].explode().to_numpy() - ours["token_log_probs"].explode().to_numpy()
    assert np.abs(difference).max() < 1e-4


def test_the_answers_differ_and_some_are_cut(answered):
    rows = read_parts(both(answered, "generations", "train/original")[1], GENERATIONS)
    assert rows["text"].n_unique() > 10
    assert set(rows["finish_reason"]) == {"stop", "length"}


@pytest.mark.parametrize("shard", SHARDS)
def test_likelihoods_are_those_of_the_replay(answered, shard):
    folders = both(answered, "features", shard)
    ours, given = (read_table(folder / "features.parquet", FEATURES) for folder in folders)
    columns = ["sample_id", "condition", "row", "n_prompt_tokens", "t_close", "answer_positions", "has_answer_block"]
    assert given.select(columns).equals(ours.select(columns))
    of_replay, of_server = (read_tensors(folder / "features.safetensors")["answer_log_prob"] for folder in folders)
    assert np.abs(of_server - of_replay).max() < 1e-4


@pytest.mark.parametrize("shard", ASKED_ABOUT)
def test_yes_and_no_have_the_log_probabilities_of_our_engine(answered, shard):
    """The study's tiny model gives nearly all probability to spellings that are among the 20 most probable tokens."""
    folders = both(answered, "views", f"{shard}/p_true")
    ours, given = (read_table(f / "choices.parquet", CHOICES).sort("sample_id", "choice") for f in folders)
    assert given.drop("log_prob").equals(ours.drop("log_prob"))
    assert np.abs((given["log_prob"] - ours["log_prob"]).to_numpy()).max() < 1e-4


@pytest.mark.parametrize("shard", ASKED_ABOUT)
def test_samples_are_numbered_and_drawn_each_for_itself(answered, shard):
    ours, given = (read_parts(f, GENERATIONS) for f in both(answered, "views", f"{shard}/samples"))
    order = ["sample_id", "sample_index"]
    assert given.sort(order).select(order).equals(ours.sort(order).select(order))
    texts = given.group_by("sample_id").agg(pl.col("text").n_unique())["text"]
    assert texts.eq(2).sum() > len(texts) / 2
