"""`dualread ask --run` against a service that misbehaves: nothing is lost, nothing is guessed."""

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response

from dualread.apps.ask import sending
from dualread.errors import ArtifactError
from tests.apps.ask.conftest import ABOUT, FIRST, ROOT, lines, reply, sent
from tests.service import completion


def flaky(times, bad):
    """The first `times` calls get `bad`, which may be made from the body."""
    is_made = callable(bad) and not isinstance(bad, Response)
    return lambda number, body: (bad(body) if is_made else bad) if number <= times else reply(body)


def test_questions_first_and_then_what_is_asked_about_their_answers(study, service):
    assert sent(study, service) == 0
    assert len(service.bodies) == len(lines()) == FIRST + ABOUT
    texts = [body["messages"][0]["content"][1]["text"] for body in service.bodies]
    assert all("Proposed answer: Lung" in text for text in texts[FIRST:])
    assert not any("Proposed answer" in text for text in texts[:FIRST])
    assert {body["model"] for body in service.bodies} == {"some-model"}
    assert service.keys == {"Bearer secret"}
    assert "secret" not in Path("answers/responses/sent.jsonl").read_text()
    assert sent(study, service) == 0
    assert len(service.bodies) == FIRST + ABOUT  # a second run sends nothing


@pytest.mark.parametrize(
    "bad",
    [
        JSONResponse({"error": {"message": "slow down"}}, 429),
        Response("oops", 500),
        HTMLResponse("<html>bad gateway</html>", 502),
        lambda body: (0.6, reply(body)),  # seconds, longer than the timeout
    ],
    ids=["429", "500", "502", "timeout"],
)
def test_what_passes_is_sent_again(study, service, bad):
    service.behave = flaky(2, bad)
    assert sent(study, service, timeout_seconds=0.3, retries=2) == 0
    assert len(lines()) == FIRST + ABOUT
    assert len(service.bodies) == FIRST + ABOUT + 2
    assert len({line["custom_id"] for line in lines()}) == FIRST + ABOUT


def of_bytes(content, **headers):
    """A reply whose text holds these bytes."""
    return lambda body: Response(json.dumps(reply(body)).encode().replace(b"Lung", content), headers=headers)


def test_a_reply_that_is_not_utf_8_is_kept_with_replaced_characters(study, service):
    service.behave = flaky(1, of_bytes(b"L\xfcng", **{"x-request-id": "r-1"}))
    assert sent(study, service) == 0
    [[text, request_id]] = [
        (line["response"]["body"]["choices"][0]["message"]["content"], line["response"]["request_id"])
        for line in lines()
        if line["response"]["request_id"] is not None
    ]
    assert (text.count("L\ufffdng"), request_id) == (1, "r-1")


def test_the_line_of_an_error_of_http_has_its_status_and_words(study, service):
    service.behave = flaky(1, JSONResponse({"detail": "too  large"}, 413))
    assert sent(study, service) == 1
    [line] = lines(answered=False)
    message = '{"detail":"too large"}'
    assert line["response"] == {"status_code": 413, "request_id": None, "body": {"error": {"message": message}}}
    assert line["error"] is None


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (lambda body: completion("yes", "no", "perhaps"), "the reply has 3 choices, expected"),
        (Response("", 200), "the reply is no JSON"),
        (HTMLResponse("<html>busy</html>", 200), "the reply is no JSON"),
        (Response('{"choices": [{"ind', 200), "the reply is no JSON"),
        (lambda body: Response(b"\xef\xbb\xbf" + json.dumps(reply(body)).encode()), "the reply is no JSON"),
        (lambda body: Response(json.dumps(reply(body)).encode("utf-16")), "the reply is no JSON"),
    ],
    ids=["too many", "nothing", "html", "half", "a byte-order mark", "UTF-16"],
)
def test_what_was_not_asked_for_is_kept_apart_and_asked_in_the_next_run(study, service, bad, said, capsys):
    service.behave = flaky(2, bad)
    assert sent(study, service) == 2
    n_failed = len({line["custom_id"] for line in lines(answered=False)})
    assert n_failed == 2
    assert {line["custom_id"] for line in lines()}.isdisjoint(line["custom_id"] for line in lines(answered=False))
    rejected = lines(answered=False)
    assert len(rejected) == 2
    assert all(line["error"]["message"].startswith(said) for line in rejected)
    assert said in capsys.readouterr().err
    service.behave = lambda _, body: reply(body)
    assert sent(study, service) == 0
    assert len(lines()) == FIRST + ABOUT


def test_the_service_says_how_long_to_wait(study, service):
    service.behave = flaky(1, lambda _: Response("", 429, headers={"retry-after": "2"}))
    assert sent(study, service, at_once=1) == 0
    assert service.times[1] - service.times[0] > 1.9


def test_no_more_requests_per_minute_than_allowed(study, service):
    sent(study, service, per_minute=1200)
    gaps = [b - a for a, b in zip(service.times[:FIRST], service.times[1:FIRST], strict=False)]
    assert sum(gaps) > 0.9 * 0.05 * len(gaps)  # 60 s / 1200 = 50 ms each


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "the key is not accepted"), (403, "the key is not accepted"), (404, "no such model or address")],
)
def test_what_no_other_request_would_pass_stops_at_once(study, service, status, said):
    service.behave = lambda number, body: Response("no", status)
    with pytest.raises(ArtifactError, match=rf"error {status}: no \({said}\)"):
        sent(study, service, at_once=1)
    assert len(service.bodies) == 1


def test_a_service_that_is_down_stops_it_and_keeps_what_was_answered(study, service, monkeypatch):
    monkeypatch.setattr(sending, "_FAILURES_IN_A_ROW", 5)
    service.behave = lambda number, body: reply(body) if number <= 4 else Response("", 503)
    with pytest.raises(ArtifactError, match="5 requests in a row"):
        sent(study, service, retries=0)
    assert len(lines()) == 4
    service.behave = lambda _, body: reply(body)
    assert sent(study, service) == 0
    assert len({line["custom_id"] for line in lines()}) == len(lines()) == FIRST + ABOUT


def test_nobody_listens(study, service, capsys):
    service.address = "http://127.0.0.1:9/v1"
    assert sent(study, service, retries=0) == FIRST
    assert "the connection failed" in capsys.readouterr().err


def test_a_half_written_line_is_ended_and_asked_again(study, service):
    sent(study, service)
    file, n = Path("answers/responses/sent.jsonl"), len(service.bodies)
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])  # the process was killed while it wrote the last line
    assert sent(study, service) == 0
    assert len(service.bodies) == n + 1
    after, before = ({line.rstrip() for line in text.splitlines()} for text in (file.read_bytes(), whole))
    assert before < after
    assert len(after - before) == 1


def test_a_killed_run_loses_nothing_and_the_next_sends_what_is_missing(study, service):
    service.behave = lambda number, body: (0.05, reply(body))  # seconds
    command = [sys.executable, "-m", "dualread", "ask", str(study), "--run", "--to", service.address, "--key", "MY_KEY"]
    variables = {**os.environ, "MY_KEY": "secret", "PYTHONPATH": str(ROOT / "lib")}
    process = subprocess.Popen([*command, "--per-minute", "60000", "--at-once", "2"], env=variables)
    while len(service.bodies) < 6:
        time.sleep(0.01)
    process.kill()
    process.wait()
    time.sleep(0.2)  # the service ends what it was asked
    answered, asked = len(lines()), len(service.bodies)
    assert 3 <= answered < FIRST
    assert asked - answered <= 2  # those under way
    assert sent(study, service) == 0
    assert len(service.bodies) - asked == FIRST + ABOUT - answered
    assert len({line["custom_id"] for line in lines()}) == len(lines()) == FIRST + ABOUT


def test_two_runs_do_not_send_at_once(study, service):
    Path("answers").mkdir()
    with Path("answers/.sending").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArtifactError, match="another `dualread ask --run` is sending"):
            sent(study, service)
    assert service.bodies == []


def test_the_program_sends_says_what_there_is_and_ends_with_1_if_requests_are_not_answered(ask, service, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    service.behave = flaky(1, Response("no", 400))
    refused = ("1 requests are not answered: error 400: no", "1: error 400: no (sent.jsonl:")
    for expected, words in ((1, refused), (0, ["answers: everything is answered"])):
        code, said = ask("--run", "--to", service.address, "--key", "MY_KEY", "--per-minute", "60000")
        assert code == expected
        assert all(word in said for word in words)
        assert "secret" not in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--run"], "--run: expected --to URL"),
        (["--run", "--to", "http://x/v1"], "--run: expected --to URL"),
        (["--run", "--key", "MY_KEY"], "--run: expected --to URL"),
        (["--run", "--to", "http://x/v1", "--key", "NO_KEY"], "--key NO_KEY: no such environment variable"),
        (["--run", "--to", "localhost", "--key", "MY_KEY"], "--to localhost: expected an address"),
        (["--run", "--to", "http://x", "--key", "MY_KEY", "--at-once", "0"], "expected numbers above 0"),
        (["--to", "http://x/v1"], "--to and --key are for sending. Add --run"),
        (["--images", "ftp://x"], "--images ftp://x: expected data, file, or an address"),
    ],
)
def test_nothing_is_sent_without_a_key_and_an_address(ask, service, monkeypatch, options, said):
    monkeypatch.setenv("MY_KEY", "secret")
    monkeypatch.delenv("NO_KEY", raising=False)
    code, found = ask(*options)
    assert code == 1
    assert said in found
    assert service.bodies == []
    assert not Path("answers").exists()
