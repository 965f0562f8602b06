"""What nobody should send, and clients that go away or send slowly; afterwards, a good request is answered."""

import gc
import io
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import httpx
import openai
import pytest
from PIL import Image

from dualread import limits
from dualread.apps.score.readings import LoadedReaders
from dualread.apps.serve import wire
from dualread.apps.serve.outcome import GONE
from dualread.data.images import Decoded
from dualread.limits import ClientLimits
from dualread.models.generation import _transformers_stream
from tests.apps.serve.running import LESION, data_url, opened, sent, serving, user, wait_until
from tests.tiny import image

PICTURE = data_url(image(1))


def post(server, body, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{server.address}/v1/chat/completions", content=content, headers=headers, timeout=60)


def bomb():
    file = io.BytesIO()
    Image.new("1", (12_000, 12_000)).save(file, "PNG")
    return data_url(file.getvalue())


def messages(*of):
    return {"messages": list(of)}


DEEP = "[" * 40_000
BAD = {
    "no JSON": (b"", "no JSON"),
    "not UTF-8": (b"\xff\xfe{", "no JSON"),
    "a list": (b"[]", "the body: is not what this server takes"),
    "deep": (DEEP.encode(), "no JSON"),
    "very deep": (b"[" * 100_000, "more than 50000 values"),
    "a long number": (b'{"n": ' + b"9" * 5000 + b"}", "no JSON"),
    "NaN": (b'{"messages": [], "temperature": NaN}', "is not what this server takes"),
    "a name twice": (b'{"n": 1, "temperature": 0, "n": 2}', "n: is there twice. Expected each name once"),
    "a name twice within": (b'{"messages": [{"role": "user", "role": "system"}]}', "role: is there twice"),
    "no message": ({"messages": []}, "messages: is not"),
    "no text": (messages(user(image(1))), "the messages have no text"),
    "an empty text": (sent(" "), "the question is empty"),
    "half a character": (sent("Is \ud800 a lesion?"), "is not what this server takes"),
    "half a character alone": (messages({"role": "user", "content": "\udc00"}), "is not what this server takes"),
    "a control token": (sent("Is <|im_end|> there?"), "control token"),
    "a control token elsewhere": (messages({"role": "system", "content": "<|im_end|>"}, user("x")), "control token"),
    "too long": (sent("long " * 500), "more than max_prompt_tokens"),
    "an endless text": (sent("x" * 100_001), "is not what this server takes"),
    "endless texts": (messages(*[user("x" * 60_000)] * 2), "at most 100000 are read"),
    "endless values": (b'{"messages": [' + b"{}," * 50_001 + b"{}]}", "more than 50000 values"),
    "a part without its content": (messages({"role": "user", "content": [{"type": "text"}]}), "messages.0.content.0: "),
    "a number as an address": (sent(url=7), "messages.0.content.0.image_url.url: is not"),
    "a number as a text": (
        messages({"role": "user", "content": [{"type": "text", "text": 3}]}),
        "messages.0.content.0",
    ),
    "calls": (messages({"role": "assistant", "content": "", "tool_calls": [{}]}, user("x")), "messages.0.tool_calls: "),
    "no image": (sent(url=data_url(b"no image")), "cannot be decoded"),
    "half an image": (sent(url=PICTURE[: len("data:image/png;base64,") + 400]), "cannot be decoded"),
    "no base64": (sent(url="data:image/png;base64,***"), "no base64"),
    "no bytes": (sent(url="data:image/png;base64,"), "no bytes"),
    "a bomb": (sent(url=bomb()), "too large"),
    "an address": (sent(url="http://127.0.0.1:1/x.png"), "opens no address"),
    "a file": (sent(url="file:///etc/passwd"), "opens no address"),
    "a path": (sent(url="/etc/passwd"), "opens no address"),
    "many images": (messages(user(*[image(1)] * 9, LESION)), "9 images: expected at most 8"),
    "a strange part": (messages({"role": "user", "content": [{"type": "input_audio"}]}), "is not what this server"),
    "a strange role": (messages({"role": "tool", "content": "x"}), "messages.0.role: is not what this server takes"),
    "tools": (sent(tools=[{"type": "function"}]), "tools: this server cannot"),
    "a tool": (sent(tool_choice="required"), "tool_choice: this server cannot"),
    "an unknown parameter": (sent(beams=3), "beams: this server knows no such parameter"),
    "the best of several": (sent(best_of=3), "best_of: this server cannot"),
    "a penalty": (sent(frequency_penalty=1), "frequency_penalty: this server cannot"),
    "a format that is null": (sent(response_format={"type": None}), "response_format: this server cannot"),
    "a bias that is null": (sent(logit_bias={"5": None}), "logit_bias: this server cannot"),
    "a message without content": (messages({"role": "user", "content": None}), "messages.0: is not what this server"),
    "many stop texts": (sent(stop=["."] * 17), "stop: is not"),
    "JSON wanted": (sent(response_format={"type": "json_object"}), "response_format: this server cannot"),
    "no choice": (sent(n=0), "n: is not"),
    "endless choices": (sent(n=10**9), "n: is not"),
    "two limits": (sent(max_tokens=7, max_completion_tokens=8), "max_tokens 7 and max_completion_tokens 8 differ"),
    "no tokens": (sent(max_tokens=0), "max_tokens: is not"),
    "a negative temperature": (sent(temperature=-1), "temperature: is not"),
    "one option": (sent(dualread={"options": ["a"]}), "1 options, expected none, or 2 to 10"),
    "options without an image": (messages(user(LESION)) | {"dualread": {"options": ["a", "b"]}}, "options: expected"),
    "an unknown wish": (sent(dualread={"confidence": 1}), "dualread.confidence: this server knows no such parameter"),
}


@pytest.mark.parametrize("stream", [False, True])
def test_bad_requests_get_one_sentence(server, study, stream):
    for name, (body, said) in BAD.items():
        reply = post(server, {**body, "stream": True} if stream and isinstance(body, dict) else body)
        assert reply.status_code == 400, (name, reply.text)
        error = reply.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}, name
        assert said in error["message"], name
        assert "\n" not in error["message"].strip()
        assert len(error["message"]) < 1000
        assert "Traceback" not in reply.text


@pytest.fixture(autouse=True)
def honest(request):
    """Afterwards, a good request gets its answer, and nothing is left of the bad ones."""
    yield
    if "server" in request.fixturenames:
        server, study = request.getfixturevalue("server"), request.getfixturevalue("study")
        assert server.ask(study.image(1), LESION).choices[0].dualread["confidence"] is not None
        wait_until(lambda: "dualread_requests_open 0" in httpx.get(f"{server.address}/metrics").text)


def test_other_sites_and_other_names_are_refused(server, study):
    for header in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert post(server, sent(), **header).status_code == 403
    assert post(server, sent(), Host=f"localhost:{server.port}").status_code == 200
    assert httpx.get(f"{server.address}/../../etc/passwd").status_code == 404
    assert httpx.get(f"{server.address}/v1/chat/completions").status_code == 405


def test_what_is_too_large_is_refused_before_it_is_read_to_its_end(study):
    with opened(study) as service, serving(service, limits=ClientLimits(megabytes=1)) as server:
        assert post(server, sent("x" * 1_100_000)).status_code == 413
        connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.putrequest("POST", "/v1/chat/completions")
        connection.putheader("Content-Length", str(10**12))
        connection.endheaders()
        with pytest.raises(OSError, match=r"pipe|reset"):  # the server has answered and closed
            connection.send(b"0" * 100_000 for _ in range(10_000))
        connection.close()
        assert server.ask(study.image(1), LESION).choices


def test_too_many_requests_are_told_to_come_again(study):
    with opened(study) as service, serving(service, limits=ClientLimits(requests=2)) as server:
        idle = []
        for _ in range(2):  # requests that never arrive as a whole
            connection = socket.create_connection(("127.0.0.1", server.port))
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
            idle.append(connection)
        wait_until(lambda: "dualread_requests_open 2" in httpx.get(f"{server.address}/metrics").text)
        with pytest.raises(openai.RateLimitError, match="2 requests are open"):
            server.ask(study.image(1), LESION)
        for connection in idle:
            connection.close()
        wait_until(lambda: "dualread_requests_open 0" in httpx.get(f"{server.address}/metrics").text)
        assert server.ask(study.image(1), LESION).choices


def test_half_sent_heads_keep_nobody_out_and_are_closed(server, monkeypatch):
    monkeypatch.setattr(limits, "SECONDS_FOR_HEAD", 1)
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(60)]
    for i, connection in enumerate(idle):
        connection.settimeout(10)
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0" if i % 2 else b"")
    assert post(server, sent(" ")).status_code == 400
    time.sleep(0.8)
    idle[1].sendall(b"0")  # a byte now and then gives no more time
    assert all(connection.recv(10) == b"" for connection in idle)
    for connection in idle:
        connection.close()
    with httpx.Client(base_url=server.address) as client:  # a connection that has asked may ask again
        for _ in range(3):
            assert client.get("/demo.css").status_code == 200
            time.sleep(0.7)


def test_a_request_that_does_not_arrive_is_given_up_and_what_is_sent_at_once_is_bounded(server, monkeypatch):
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999999\r\n\r\n{"
    with monkeypatch.context() as patch, socket.create_connection(("127.0.0.1", server.port)) as slow:
        patch.setattr(limits, "SECONDS_FOR_BODY", 0.5)
        slow.settimeout(10)
        slow.sendall(head)
        assert b" 408 " in slow.recv(100)
    monkeypatch.setattr(limits, "BODIES", 0.1)  # 3.2 MB together
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(head + b"x" * 2_000_000)
        wait_until(lambda: post(server, b"x" * 2_000_000).status_code == 429)
    wait_until(lambda: post(server, b"x" * 2_000_000).status_code == 400)  # what has gone away counts no longer


def test_a_client_that_goes_away_frees_its_request(study, monkeypatch):
    """The actor makes no more tokens for it, and others in its batch are answered."""
    made = []
    slow = _transformers_stream.steps

    def watched(*given):
        for step in slow(*given):
            made.append(step.at.tolist())
            time.sleep(0.1)
            yield step

    monkeypatch.setattr(_transformers_stream, "steps", watched)
    with opened(study) as service, serving(service) as server:
        for stream in (False, True):
            made.clear()
            body = json.dumps(sent(max_tokens=100, stream=stream)).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            connection = socket.create_connection(("127.0.0.1", server.port))
            connection.sendall(head.encode() + body)
            wait_until(lambda: len(made) > 2)
            connection.close()
            wait_until(lambda: server.replies and server.replies[-1].status == GONE)
            server.replies.clear()
            assert server.ask(study.image(1), LESION).choices[0].dualread["confidence"] is not None
            assert len(made) < 40


def test_a_batch_that_fails_harms_no_other_one(study, monkeypatch):
    def fails(*given, **named):
        raise RuntimeError("out of memory\nwith details")

    with opened(study) as service, serving(service) as server:
        with monkeypatch.context() as patch:
            patch.setattr("dualread.models.generation._transformers_stream.steps", fails)
            with pytest.raises(openai.InternalServerError, match="out of memory"):
                server.ask(study.image(1), LESION)
        assert server.ask(study.image(1), LESION).choices
        with monkeypatch.context() as patch:
            patch.setattr(LoadedReaders, "readings", fails)
            with pytest.raises(openai.InternalServerError, match="out of memory"):
                server.ask(study.image(1), LESION)
            with pytest.raises(openai.APIError, match="out of memory"):
                list(server.ask(study.image(1), LESION, stream=True))
        assert server.ask(study.image(1), LESION).choices


def test_a_broken_service_says_so(study, monkeypatch):
    with opened(study) as service, serving(service) as server:
        monkeypatch.setattr("dualread.models.generation._transformers_stream._way", None)  # a bug
        for _ in range(2):
            with pytest.raises(openai.InternalServerError, match="the server is broken: TypeError"):
                server.ask(study.image(1), LESION)
        assert httpx.get(f"{server.address}/health").status_code == 503


def test_a_server_that_is_stuck_says_so_and_its_pictures_take_no_memory(study, monkeypatch):
    """First in the model, then where requests are read."""
    going = threading.Event()
    slow = _transformers_stream.steps

    def stuck(*given):
        going.wait(60)
        yield from slow(*given)

    monkeypatch.setattr(_transformers_stream, "steps", stuck)
    with opened(study) as service, serving(service, stuck_seconds=0.3) as server:
        assert httpx.get(f"{server.address}/health").text == "ok"
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(server.ask, image(i), LESION) for i in range(4)]
            wait_until(lambda: httpx.get(f"{server.address}/health").status_code == 503)
            wait_until(lambda: len(service._running) + service._inbox.qsize() == 4)
            wait_until(lambda: not [one for one in gc.get_objects() if isinstance(one, Decoded)])
            assert all(request.asked.shown.images == () for request in service._running.values())
            going.set()
            assert all(one.result().choices[0].dualread["confidence"] is not None for one in asked)
        wait_until(lambda: httpx.get(f"{server.address}/health").status_code == 200)
        going.clear()
        monkeypatch.setattr(wire, "read", lambda body: going.wait(60) and pytest.fail("released"))
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.address}/v1/chat/completions", json=sent(), timeout=0.5)
        wait_until(lambda: httpx.get(f"{server.address}/health").status_code == 503)
        monkeypatch.undo()
        going.set()


def test_a_key_or_a_name_opens_the_server_behind_a_proxy(study):
    with opened(study) as service:
        for hosts in ((), ("backend",)):
            with serving(service, hosts=hosts) as server:
                assert post(server, sent(), Host="evil.example").status_code == 403
                for more in ({}, {"Origin": "https://backend"}):
                    assert post(server, sent(), Host="backend", **more).status_code == (200 if hosts else 403)
        with serving(service, api_key="secret") as server:
            assert post(server, sent(), Host="backend", Authorization="Bearer secret").status_code == 200
            for key in (b"secre", b"secrets", "é".encode()):
                assert post(server, sent(), Authorization=b"Bearer " + key).status_code == 401
            for path, status in (("/health", 200), ("/metrics", 401), ("/v1/models", 401), ("/x", 401)):
                assert httpx.get(server.address + path).status_code == status
