"""The commands `dualread serve` and `dualread demo` as programs: how they begin, what they keep, and how they end."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import openai
import pytest

from dualread.apps import main as program
from dualread.apps.score.loading import ChosenReaders
from dualread.apps.serve import web
from tests.apps.serve.running import LESION, opened, part, sent, wait_until

PROGRAM = """
import sys
from dualread.apps.main import main
from dualread.grading.contracts import single
from tests.apps.serve.running import whole_answers

single.parse = whole_answers
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.rest
def test_the_command_ends_in_time_while_the_model_computes(study):
    running, port = start(study, "--seconds-to-stop", "2")
    key = {"Authorization": "Bearer secret"}
    body = sent(n=100, temperature=1.0, max_tokens=400)
    thread = threading.Thread(target=_post_and_lose, args=(port, body, key))
    thread.start()
    metrics = f"http://127.0.0.1:{port}/metrics"
    wait_until(
        lambda: re.search(r"completions_open [1-9]", httpx.get(metrics, headers=key).text)
    )  # some may have ended
    began = time.monotonic()
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=30)
    assert time.monotonic() - began < 5
    thread.join()


def _post_and_lose(port, body, headers):
    with contextlib.suppress(httpx.HTTPError):
        httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body, headers=headers, timeout=60)


def start(study, *options, program=PROGRAM):
    command = [sys.executable, "-c", program, "serve", str(study.reader("dualread"))]
    command += ["--checkpoint", str(study.actor), "--port", "0", *options]
    environment = {**os.environ, "DUALREAD_API_KEY": "secret"}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    ready = running.stdout.readline()
    return running, int(re.match(r"http://127\.0\.0\.1:(\d+)/v1 is ready", ready)[1])


def test_the_command_answers_what_it_has_begun_and_logs_no_text(study):
    """And ends well whatever Python waits for, such as a thread that still reads a request."""
    waiting = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    running, port = start(study, "--name", "lung", program=waiting + PROGRAM)
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="secret", max_retries=0) as client:
        asked = {"role": "user", "content": [part(study.image(1)), part(LESION)]}
        ask = partial(client.chat.completions.create, model="lung", messages=[asked], max_tokens=150)
        address, key = f"http://127.0.0.1:{port}/metrics", {"Authorization": "Bearer secret"}
        with ThreadPoolExecutor(4) as threads:
            asking = [threads.submit(ask) for _ in range(4)]
            wait_until(lambda: "requests_open 4" in httpx.get(address, headers=key).text)
            running.send_signal(signal.SIGTERM)
        out, errors = running.communicate(timeout=60)
        assert not [future.exception() for future in asking if future.exception() is not None], errors
        with pytest.raises(openai.APIConnectionError):
            client.models.list()
    assert running.returncode == 0
    assert out == "stopped\n"
    assert len(re.findall(r"chatcmpl-\w+ 200 \d+\+\d+ tokens, .* s, ", errors)) == 4
    assert "lesion" not in errors
    assert "Traceback" not in errors


@pytest.mark.rest
def test_a_server_that_was_killed_starts_again_and_goes_on_with_its_record(study, tmp_path):
    record, port, said = tmp_path / "answers.jsonl", 0, []
    asked = {"role": "user", "content": [part(study.image(1)), part(LESION)]}
    for k in range(2):
        running, port = start(study, "--record", str(record), "--port", str(port))
        with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="secret", max_retries=0) as client:
            own = {"dualread": {"id": f"q{k}"}}
            reply = client.chat.completions.create(model="dualread", messages=[asked], extra_body=own)
            said.append(reply.choices[0].dualread["confidence"])
            stream = client.chat.completions.create(model="dualread", messages=[asked], max_tokens=150, stream=True)
            next(iter(stream))
            running.kill()
            errors = running.communicate(timeout=60)[1]
        assert ("the last line was cut off" in errors) == (k == 1)
        if k == 0:
            record.write_bytes(record.read_bytes() + b'{"sample_id": "cut of')
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    assert [row["sample_id"] for row in rows] == ["q0", "q1"]
    assert [row["confidence"] for row in rows] == pytest.approx(said, abs=1e-9)


def test_options_that_make_no_sense_are_named_before_anything_is_loaded(monkeypatch, capsys):
    monkeypatch.setattr(ChosenReaders, "load", lambda choice: pytest.fail("loaded"))
    with web.listen(web.LOOPBACK, 0) as taken:
        port = str(taken.getsockname()[1])
        for options, said in (
            (["--port", port], f"--port {port}: Address already in use"),
            (["--port", "65536"], "--port 65536"),
            (["--host", "192.0.2.1"], "--host 192.0.2.1, --port 8000: "),
            (["--max-images", "0"], "--max-images 0: expected at least 1"),
            (["--abstain-before", "2", "--port", "0"], "--abstain-before 2: expected a number from 0 to 1"),
        ):
            assert program.main(["serve", "r", *options]) == 1
            assert said in capsys.readouterr().err


def test_a_bundle_without_the_threshold_is_named(study):
    with pytest.raises(program.DualReadError, match="no threshold of the method psr travels"):
        opened(study, abstain_before="threshold").__enter__()


@pytest.mark.rest
def test_the_command_opens_the_page_and_ends_at_a_signal(study):
    """The browser is a program that prints the address."""
    arguments = [study.reader("dualread"), "--checkpoint", study.actor, "--port", "0", "--engine", "transformers"]
    command = [sys.executable, "-m", "dualread", "demo", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={"BROWSER": "echo %s"}) as running:
        address = re.match(r"(http://127\.0\.0\.1:\d+) is ready", running.stdout.readline())[1]
        assert running.stdout.readline() == f"{address}\n"
        assert "Ask about an image" in httpx.get(f"{address}/").text
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "stopped\n")
    assert "Traceback" not in errors
