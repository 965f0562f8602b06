"""The server that the commands share: clients that take nothing of a reply."""

import asyncio
import socket
import threading
import time

import pytest

from dualread.commands import web


@pytest.fixture
def told():
    return []


@pytest.fixture
def port(told, monkeypatch):
    """A server whose replies are endless; it notes in `told` how each of them ended."""
    monkeypatch.setattr(web, "_SECONDS_TO_TAKE", 0.3)

    async def app(scope, receive, send):
        while (await receive())["type"] != "http.request":
            pass
        watching = asyncio.create_task(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not watching.done():
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            await asyncio.sleep(0)
        told.append((await watching)["type"])

    listening = web.listen(web.LOOPBACK, 0)
    server = web.server(app, connections=10, seconds_to_stop=5)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()
    listening.close()


def test_a_client_that_takes_nothing_keeps_no_place_and_one_that_is_slow_does(port, told):
    with socket.create_connection(("127.0.0.1", port)) as idle, socket.create_connection(("127.0.0.1", port)) as slow:
        for one in (idle, slow):
            one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert slow.recv(2**22)
            time.sleep(0.02)
        assert told == ["http.disconnect"]  # that of `idle`
    while len(told) < 2 and time.monotonic() < end + 10:
        time.sleep(0.02)
    assert told == ["http.disconnect"] * 2
