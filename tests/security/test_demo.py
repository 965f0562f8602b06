"""The demo against other users of the machine: connections without an end, many large questions, half characters."""

import asyncio
import base64
import io
import json
import socket
import threading
import time
from http.client import HTTPConnection

import pytest
from PIL import Image

from dualread.apps.score.results import Failed
from dualread.apps.serve import web
from dualread.apps.serve.demo import page as app
from tests.service import running


class Reader:
    """Stands for a scorer: it refuses every question, after a while."""

    method, notes, bits, ct_windows = "dualread", (), None, None

    def __init__(self):
        self.questions = []

    def each(self, questions):
        self.questions += questions
        return [Failed(error="refused") for _ in questions]


@pytest.fixture
def served():
    reader = Reader()
    with running(app.server(app.application(reader)), app.listen(0)) as port:
        yield reader, port


def _png():
    file = io.BytesIO()
    Image.new("L", (8, 8), 9).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _ask(port, body):
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    here = f"127.0.0.1:{port}"
    try:
        connection.request("POST", "/ask", body, {"Host": here, "Origin": f"http://{here}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_half_sent_heads_keep_nobody_out_and_are_closed(served, monkeypatch):
    monkeypatch.setattr(web, "_SECONDS_FOR_HEAD", 1)
    _, port = served
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    for i, one in enumerate(idle):
        one.settimeout(10)
        one.sendall(b"POST /ask HTTP/1.1\r\nHost: 127.0" if i % 2 else b"")
    assert _ask(port, json.dumps({"image": _png(), "question": "Is it?"}))[0] == 400  # answered: refused by the reader
    time.sleep(0.8)
    idle[1].sendall(b"0")  # a byte now and then gives no more time
    assert all(one.recv(10) == b"" for one in idle)
    for one in idle:
        one.close()


def test_a_connection_that_has_asked_may_ask_again(served, monkeypatch):
    monkeypatch.setattr(web, "_SECONDS_FOR_HEAD", 1)
    _, port = served
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(3):
        connection.request("GET", "/demo.css", headers={"Host": f"127.0.0.1:{port}"})
        assert connection.getresponse().read()
        time.sleep(0.7)
    connection.close()


def test_a_question_that_does_not_arrive_is_given_up(served, monkeypatch):
    monkeypatch.setattr(web, "_SECONDS_FOR_BODY", 0.5)
    _, port = served
    here = f"127.0.0.1:{port}".encode()
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.settimeout(10)
        slow.sendall(
            b"POST /ask HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nContent-Length: 99\r\n\r\n{" % (here, here)
        )
        assert b"408" in slow.recv(100)


@pytest.mark.parametrize("field", ["question", "image", "donor"])
def test_half_of_a_character_is_refused_in_a_sentence(served, field):
    _, port = served
    sent = {"image": _png(), "question": "Is it?"} | {field: "\ud800"}
    status, text = _ask(port, json.dumps(sent))
    assert status == 400
    assert "\n" not in text.strip()


def test_images_are_decoded_one_question_at_a_time(served, monkeypatch):
    reader, port = served
    at_once, most = 0, 0
    read = app.read_question

    def counted(*arguments):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.1)
        try:
            return read(*arguments)
        finally:
            at_once -= 1

    monkeypatch.setattr(app, "read_question", counted)
    body = json.dumps({"image": _png(), "question": "Is it?"})
    threads = [threading.Thread(target=_ask, args=(port, body)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert len(reader.questions) == 8


def test_what_waits_is_bounded_and_one_more_is_told_so(monkeypatch):
    monkeypatch.setattr(app, "_MOST_BYTES", 10_000)
    page = app.application(Reader())
    here = [(b"host", b"127.0.0.1:1"), (b"origin", b"http://127.0.0.1:1")]
    scope = {"type": "http", "method": "POST", "path": "/ask", "query_string": b"", "headers": here}
    said = []

    async def send(message):
        said.append(message)

    async def ask(part):
        parts = [{"type": "http.request", "body": part, "more_body": True}]

        async def receive():
            if parts:
                return parts.pop()
            await asyncio.sleep(3600)

        await page(dict(scope), receive, send)

    async def both():
        waiting = asyncio.create_task(ask(b"x" * 6000))
        await asyncio.sleep(0.1)
        await ask(b"x" * 6000)
        waiting.cancel()

    asyncio.run(both())
    assert said[0]["status"] == 429
    assert b"Ask again" in said[1]["body"]
