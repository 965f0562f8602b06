"""A service that echoes the key it was sent, or sends replies that take all memory or never end (D3, D5)."""

import asyncio
import base64
import gzip
import json
import time
import zlib
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from dualread.apps.ask import sending
from dualread.apps.ask.sending import Endpoint
from dualread.errors import ArtifactError
from tests.apps.ask.conftest import ABOUT, FAST, FIRST, lines, reply, send_all

KEY = "sk-Live+4/f9?~>?~>?a1c7+e2"  # its base64 has + or / wherever it begins
# The ways in which a service or a proxy shows what it was sent.
ECHOES = {
    "plain": KEY,
    "header": f"Authorization: Bearer {KEY}",
    "json": json.dumps({"headers": {"authorization": f"Bearer {KEY}"}}),
    "quoted": quote(KEY, safe=""),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64 of the header": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "base64 of a pair": base64.urlsafe_b64encode(f"me:{KEY}!".encode()).decode(),
    "hexadecimal": KEY.encode().hex(),
}


def sent(study, service, address=None, key=KEY, **limits):
    return send_all(study, Endpoint(address=address or service.address, key=key, **FAST | limits))


def written():
    """Return all that is in the folder of answers."""
    return "".join(path.read_text() for path in Path("answers").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda text: Response(text, 400),
        lambda text: Response(text, 200),
        lambda text: JSONResponse({"error": {"message": text}}, 422),
        lambda text: JSONResponse({"choices": [text]}, 200),
        lambda text: Response("{", 200, headers={"content-type": f"text/{text}"}),
        lambda text: Response("moved", 307, headers={"location": f"http://127.0.0.1:9/{quote(text)}"}),
    ],
    ids=["400", "no JSON", "422", "choices", "type", "redirect"],
)
def test_an_echo_of_the_key_is_shown_and_written_nowhere(study, service, capsys, wrong):
    """Each way twice, in replies of their own, which no other one can push out of what is shown."""
    echoes = [*ECHOES.values(), *ECHOES.values()]
    service.behave = lambda number, body: wrong(echoes.pop()) if echoes else reply(body)
    sent(study, service)
    assert not echoes
    for text in (written(), capsys.readouterr().err):
        assert [echo for echo in (KEY, *ECHOES.values()) if echo in text] == []


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_an_error_about_the_key_does_not_show_it(study, service, capsys, monkeypatch, status):
    monkeypatch.setattr(sending, "_FAILURES_IN_A_ROW", 2)
    service.behave = lambda number, body: Response(f"Incorrect API key provided: {KEY}", status)
    with pytest.raises(ArtifactError) as stopped:
        sent(study, service)
    assert KEY not in str(stopped.value) + capsys.readouterr().err + written()


def test_an_answer_with_the_key_is_none_and_other_fields_lose_it(study, service):
    def behave(number, body):
        if number == 1:
            return json.loads(json.dumps(reply(body)).replace("Lung", KEY))
        made = {**reply(body), "debug": {"sent": [KEY, 1]}, KEY: 2}
        return JSONResponse(made, headers={"x-request-id": f"r-{KEY}"})

    service.behave = behave
    assert sent(study, service) == 1
    assert KEY not in written()
    [rejected] = lines(answered=False)
    assert rejected["error"]["message"] == "the reply holds the key that was sent"
    assert set(lines()[0]["response"]["body"]) <= {"choices", "usage"}
    assert lines()[0]["response"]["request_id"] == "r-[hidden]"


@pytest.mark.parametrize("key", ["Lung", "answer", "none", "x", "prompt_tokens", "confidence"])
def test_a_key_that_is_a_word_changes_no_answer(study, service, key):
    """Services on this machine that need none take any text."""
    assert sent(study, service, key=key) == 0
    assert len(lines()) == FIRST + ABOUT
    for body in (line["response"]["body"] for line in lines()):
        assert body["usage"]["prompt_tokens"] == 5
        assert body["choices"][0]["message"]["content"] in ("Yes", "<answer>Lung</answer><confidence>80</confidence>")


def test_a_password_in_the_address_is_shown_and_written_nowhere(study, service, capsys):
    address = service.address.replace("http://", "http://me:p%40ss-w0rd@")
    basic = base64.b64encode(b"me:p@ss-w0rd").decode()
    service.behave = lambda number, body: Response(f"{address} p@ss-w0rd {basic}", 400) if number <= 2 else reply(body)
    sent(study, service, address)
    said = capsys.readouterr().err
    assert "http://[hidden]@127.0.0.1" in said
    for text in (said, written()):
        assert "ss-w0rd" not in text
        assert basic not in text


@pytest.mark.parametrize(
    "options",
    [
        ["--to", "me:p4ssw0rd@host/v1", "--key", "MY_KEY"],
        ["--to", "http://me:p4ssw0rd@127.0.0.1:99999/v1", "--key", "MY_KEY"],
        ["--to", "http://x/v1", "--key", "sk-p4ssw0rd"],
    ],
)
def test_wrong_options_do_not_show_a_password_or_a_key(ask, monkeypatch, options):
    monkeypatch.setenv("MY_KEY", KEY)
    code, said = ask("--run", *options)
    assert code == 1
    assert "p4ssw0rd" not in said


def test_a_service_shows_no_secret_where_python_prints_it():
    service = Endpoint(address="http://me:p4ssw0rd@x/v1", key=KEY, **FAST)
    shown = repr(service) + repr(service.secrets)
    assert KEY not in shown
    assert "p4ssw0rd" not in shown


def test_a_redirect_is_not_followed(study, service):
    """It would carry question and picture elsewhere."""
    seen = []
    service.behave = lambda number, body: seen.append(number) or RedirectResponse(service.address + "/elsewhere")
    assert sent(study, service) == FIRST
    assert len(seen) == FIRST


def packed(encoding, content):
    return Response(content, 200, headers={"content-encoding": encoding, "content-type": "application/json"})


@pytest.mark.parametrize(("encoding", "bits"), [("gzip", 31), ("deflate", 15)])
def test_a_packed_reply_is_unpacked_to_a_bound(study, service, encoding, bits, capsys):
    """Of 8.7 GB in the case, and of 300 MB here, 34 MB are unpacked."""
    packer = zlib.compressobj(9, wbits=bits)
    bomb = b"".join(packer.compress(bytes(10**6)) for _ in range(300)) + packer.flush()
    assert len(bomb) < 10**6
    service.behave = lambda number, body: packed(encoding, bomb) if number == 1 else reply(body)
    assert sent(study, service) == 1
    assert "1 requests are not answered: the reply has more than 34 MB" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", gzip.compress(b"{}" * 1000, mtime=0)[:-10], b"no gzip"])
def test_a_reply_that_cannot_be_unpacked_is_asked_again(study, service, content):
    service.behave = lambda number, body: packed("gzip", content) if number <= 2 else reply(body)
    assert sent(study, service) == 2
    assert sent(study, service) == 0


def test_a_packed_reply_is_read(study, service):
    service.behave = lambda _, body: packed("gzip", gzip.compress(json.dumps(reply(body)).encode()))
    assert sent(study, service) == 0
    assert len(lines()) == FIRST + ABOUT


def test_a_reply_that_comes_byte_by_byte_ends_at_the_timeout(study, service):
    async def drip():
        for _ in range(100):
            yield b" "
            await asyncio.sleep(0.1)

    service.behave = lambda number, body: StreamingResponse(drip()) if number <= 1 else reply(body)
    started = time.monotonic()
    assert sent(study, service, timeout_seconds=0.5) == 1
    assert time.monotonic() - started < 9


@pytest.mark.parametrize("wait", ["nan", "-inf", "-5", "soon", "1e400"])
def test_a_wait_that_is_none_is_not_kept_to(study, service, wait):
    busy = Response("busy", 429, headers={"retry-after": wait})
    service.behave = lambda number, body: busy if number == 1 else reply(body)
    assert sent(study, service) == (wait == "1e400")  # one without end is not waited for
