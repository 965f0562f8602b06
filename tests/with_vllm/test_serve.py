"""`dualread serve` on vLLM: its answers, states and confidences are those of `dualread score` with transformers."""

import inspect
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import openai
import pytest

from dualread.apps.score.scorer import Scorer
from dualread.grading.contracts import single
from tests.apps.score import small
from tests.apps.serve import reports
from tests.apps.serve.reports import CLAIMS
from tests.apps.serve.running import LESION, user, whole_answers
from tests.tiny import build, image
from tests.with_vllm.conftest import ROOT

PARTS = ("confidence", "psr", "per")
METHODS = ["question_prior", "rlvr", "sequence_likelihood", "p_state"]
CLAIM_METHODS = ["question_prior", "sequence_likelihood", "p_state"]  # `rlvr` waits for the end of a report


# An untrained actor never says a valid answer block; the tests' modules are not in the environment of vLLM.
PROGRAM = f"""
import sys
from dualread.apps.main import main
from dualread.grading.canonical import canonical
from dualread.grading.contracts import single
from dualread.grading.parse import Parsed

{inspect.getsource(whole_answers)}
single.parse = whole_answers
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module", autouse=True)
def answers():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single, "parse", whole_answers)
        yield


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """An exported bundle of a study of each family; vLLM's attention on CPUs needs heads of width 32 or more."""
    return {family: _bundle(family, tmp_path_factory.mktemp(family)) for family in ("qwen3_vl", "gemma3")}


def _bundle(family: str, folder: Path) -> Path:
    study = small.build(build(family, folder / "checkpoint", hidden_size=64), folder / "results" / "small")
    return small.exported(study, folder / "bundle", *METHODS, thresholds={"dualread": 0.5})


def _command(vllm_python: Path, bundle: Path, *options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [str(vllm_python), "-c", PROGRAM, "serve", str(bundle), "--port", "0", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


@contextmanager
def _serving(vllm_python: Path, bundle: Path, *options: str):
    """A client of a running server, and the server's process."""
    running = _command(vllm_python, bundle, *options)
    try:
        ready = running.stdout.readline()  # type: ignore[union-attr]
        assert "is ready" in ready, running.communicate()[1]
        with openai.OpenAI(base_url=ready.split()[0], api_key="none", max_retries=0, timeout=300) as client:
            yield client, running.pid
    finally:
        running.send_signal(signal.SIGTERM)
        out, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert out.endswith("stopped\n")
    assert "4 of 4 stored answers are the same" in errors
    assert "Traceback" not in errors


@pytest.fixture(scope="module")
def client(vllm_python, bundles):
    with _serving(vllm_python, bundles["qwen3_vl"], "--methods", *METHODS) as (connected, _):
        yield connected


@pytest.fixture(scope="module")
def scorer(bundles):
    return Scorer.load(bundles["qwen3_vl"], methods=METHODS)


def _ask(client, *given, **parameters):
    return client.chat.completions.create(**{"model": "dualread", "messages": [user(*given)], **parameters})


def _same(judged, scored):
    assert [judged[name] for name in PARTS] == pytest.approx([getattr(scored, name) for name in PARTS], abs=1e-5)
    for name, of in scored.methods.items():
        assert judged["methods"][name]["confidence"] == pytest.approx(of.confidence, abs=1e-5), name
    assert (judged["abstain"] is False) == scored.decision.keep


def test_answers_and_confidences_are_those_of_score(client, scorer):
    """At once and again: the second time, images and prompts are in vLLM's cache, and their states are not computed."""
    asked = [(image(i % 5), f"{LESION} {i % 9}") for i in range(60)]
    scored = [scorer(*one) for one in asked]
    for _ in range(2):
        with ThreadPoolExecutor(24) as pool:
            replies = list(pool.map(lambda one: _ask(client, *one), asked))
        for reply, one in zip(replies, scored, strict=True):
            assert reply.choices[0].message.content == one.completion
            _same(reply.choices[0].dualread, one)
    assert len({one.confidence for one in scored}) > 20


def test_a_stream_says_the_same(client, scorer):
    for seed in (1, 2):
        scored = scorer(image(seed), LESION)
        first, *middle, last = _ask(client, image(seed), LESION, stream=True)
        assert first.choices[0].dualread["psr"] == pytest.approx(scored.psr, abs=1e-5)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in (*middle, last)) == scored.completion
        _same(last.choices[0].dualread, scored)


def test_other_requests_are_answered_without_a_confidence_and_disturb_no_other_one(client, scorer):
    scored = scorer(image(7), LESION)
    requests = [
        {"temperature": 1.0, "n": 3, "seed": 1},
        {"messages": [user(image(7), image(8), LESION)]},
        {"messages": [user(LESION)]},
        {"messages": [{"role": "system", "content": "Be brief."}, user(image(7), LESION)]},
        {"max_tokens": 3},
        {},
    ] * 3
    with ThreadPoolExecutor(len(requests)) as pool:
        replies = list(pool.map(lambda more: _ask(client, image(7), LESION, **more), requests))
    for more, reply in zip(requests, replies, strict=True):
        if not more:
            assert reply.choices[0].message.content == scored.completion
            _same(reply.choices[0].dualread, scored)
        for choice in reply.choices if more else ():
            assert choice.dualread["confidence"] is None
            assert choice.dualread["notes"][0].startswith("no confidence: ")
    sampled = [[choice.message.content for choice in reply.choices] for reply in replies[::6]]
    assert len(set(map(tuple, sampled))) == 1  # of one seed
    assert len(set(sampled[0])) > 1


def test_bad_requests_disturb_nothing(client, scorer):
    for bad in ({"max_tokens": 0}, {"messages": [user(b"no image", LESION)]}, {"messages": [user(image(1), " ")]}):
        with pytest.raises(openai.BadRequestError):
            _ask(client, image(1), LESION, **bad)
    _same(_ask(client, image(1), LESION).choices[0].dualread, scorer(image(1), LESION))


def _counted(client, name):
    lines = httpx.get(str(client.base_url.join("/metrics"))).text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def _wait_until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.02)


LONG = {"temperature": 1.0, "n": 16, "max_tokens": 280}  # about half of a random model's completions are so long
LONGEST = {**LONG, "n": 128}  # eight batches


@pytest.fixture(scope="module")
def whole(client):
    """How many seconds this machine takes for all of the longest request."""
    begun = time.monotonic()
    assert len(_ask(client, image(1), LESION, **LONGEST).choices) == LONGEST["n"]
    return time.monotonic() - begun


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_request(client, scorer, whole, stream):
    body = {"messages": [user(image(1), LESION)], **LONGEST, "stream": stream}
    with httpx.Client(base_url=str(client.base_url), timeout=60 if stream else whole / 4) as leaving:
        if stream:
            with leaving.stream("POST", "chat/completions", json=body) as reply:
                lines = reply.iter_lines()  # dropping it would close the connection
                assert next(lines).startswith("data: ")
                # Few completions have ended so soon, but one may.
                assert _counted(client, "dualread_completions_open") > LONGEST["n"] / 2
        else:
            with pytest.raises(httpx.ReadTimeout):
                leaving.post("chat/completions", json=body)
    left = time.monotonic()
    _wait_until(lambda: _counted(client, "dualread_completions_open") == 0)
    assert time.monotonic() - left < whole / 4, "the completions were made to their end"
    _same(_ask(client, image(1), LESION).choices[0].dualread, scorer(image(1), LESION))


def test_what_was_begun_is_answered_when_the_server_is_told_to_end(vllm_python, bundles):
    """Its two processes are told, as a system's service manager does."""
    with ThreadPoolExecutor(4) as pool:
        with _serving(vllm_python, bundles["qwen3_vl"]) as (client, server):
            waiting = openai.OpenAI(base_url=str(client.base_url), api_key="none", max_retries=0)
            asked = [pool.submit(_ask, waiting, image(k), LESION, **LONG) for k in range(4)]
            _wait_until(lambda: _counted(client, "dualread_requests_open") == 4)
            _wait_until(lambda: _counted(client, "dualread_completions_open") > 0)
            os.kill(_engine(server), signal.SIGTERM)
        assert [len(one.result().choices) for one in asked] == [16] * 4
        waiting.close()


def test_without_vllms_process_the_server_says_that_it_is_broken(vllm_python, bundles):
    with _serving(vllm_python, bundles["qwen3_vl"]) as (client, server), ThreadPoolExecutor(1) as pool:
        health = str(client.base_url.join("/health"))
        assert httpx.get(health).text == "ok"
        asked = pool.submit(_ask, client, image(1), LESION, **LONGEST)
        _wait_until(lambda: _counted(client, "dualread_completions_open") > 0)
        os.kill(_engine(server), signal.SIGKILL)
        for of in (asked.result, lambda: _ask(client, image(1), LESION)):
            with pytest.raises(openai.InternalServerError, match="vLLM's process has ended"):
                of()
        assert httpx.get(health).status_code == 503


def test_vllms_process_ends_when_the_server_is_killed(vllm_python, bundles):
    running = _command(vllm_python, bundles["qwen3_vl"])
    assert "is ready" in running.stdout.readline()  # type: ignore[union-attr]
    running.kill()
    running.communicate(timeout=20)  # vLLM's process holds the other end of these pipes, too


def _engine(server: int) -> int:
    """vLLM's process, which a server has started."""
    [child] = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return int(child)


def test_an_engine_that_reads_images_in_another_way_is_refused(vllm_python, bundles):
    """vLLM's build for CPUs reads Gemma 3's image tokens causally, without a warning."""
    running = _command(vllm_python, bundles["gemma3"])
    out, errors = running.communicate(timeout=300)
    assert running.returncode == 1
    assert out == ""
    assert "this engine does not read what was read when the bundle was written" in errors


def test_a_bundle_without_stored_answers_is_refused(vllm_python, bundles, tmp_path):
    """A bundle without stored answers, by which vLLM could be checked."""
    bundle = bundles["qwen3_vl"]
    (bundle / "stored.safetensors").rename(tmp_path / "stored.safetensors")
    try:
        running = _command(vllm_python, bundle)
        assert "no stored answers travel with this reader" in running.communicate(timeout=300)[1]
    finally:
        (tmp_path / "stored.safetensors").rename(bundle / "stored.safetensors")


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """An exported bundle whose readers judge claims, of an actor that says reports."""
    study = reports.study("qwen3_vl", tmp_path_factory.mktemp("ward"))
    return small.exported(study, tmp_path_factory.mktemp("exported") / "bundle", *CLAIM_METHODS)


def _streamed(client, question, seed):
    early, last = [], {}
    for chunk in _ask(client, image(seed), question, stream=True):
        [choice] = chunk.choices
        last = getattr(choice, "dualread", None) or {}
        early += last["claims"] if choice.finish_reason is None and "claims" in last else []
    return early, last["claims"]


def test_claims_are_those_of_score_at_once_and_while_a_report_goes_on(vllm_python, ward):
    """An untrained actor's answers are patched in `PROGRAM`; the claims of a report need no valid answer."""
    scorer = Scorer.load(ward, methods=CLAIM_METHODS)
    asked = [(seed, question) for seed in (1, 2, 3) for question in CLAIMS] * 2
    with _serving(vllm_python, ward, "--methods", *CLAIM_METHODS) as (client, _), ThreadPoolExecutor(9) as pool:
        told = list(pool.map(lambda one: _streamed(client, one[1], one[0]), asked))
    # How many come early is a matter of time: this engine makes a whole report in the time in which one is divided.
    assert any(early for early, _ in told)
    for (seed, question), (early, last) in zip(asked, told, strict=True):
        assert [claim["text"] for claim in last] == CLAIMS[question]
        if question == "Open?":  # vLLM may have ended it meanwhile
            assert [claim["text"] for claim in early] == ["Axial ct.", "The lesion is small."][: len(early)]
        else:
            assert early == last[: len(early)]
        for claim, of_score in zip(last, scorer(image(seed), question).claims or (), strict=True):
            assert [claim[n] for n in PARTS] == pytest.approx([getattr(of_score, n) for n in PARTS], abs=1e-5)
            for name, of in of_score.methods.items():
                assert claim["methods"][name]["confidence"] == pytest.approx(of.confidence, abs=1e-5), name
