"""The server that the commands share: clients that take nothing of a reply."""

import asyncio
import signal
import socket
import subprocess
import sys
import time

import pytest

from dualread import limits
from dualread.apps.serve import web
from tests.service import running


@pytest.fixture
def told():
    return []


@pytest.fixture
def port(told, monkeypatch):
    """A server whose replies are endless; it notes in `told` how each of them ended."""
    monkeypatch.setattr(limits, "SECONDS_TO_TAKE", 0.3)

    async def app(scope, receive, send):
        while (await receive())["type"] != "http.request":
            pass
        watching = asyncio.create_task(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not watching.done():
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            await asyncio.sleep(0)
        told.append((await watching)["type"])

    with running(web.server(app, connections=10, seconds_to_stop=5), web.listen(web.LOOPBACK, 0)) as port:
        yield port


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


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("[::1]:8000", True),
        ("192.0.2.7:80", True),  # no page can send an address of another site
        ("backend:8000", True),
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:8000", False),
        ("backend:8000:1", False),
        ("", False),
    ],
)
def test_names_that_a_site_may_have_pointed_here_are_unknown(host, is_known):
    assert web.is_here(host, ["Backend"]) is is_known


@pytest.mark.parametrize("busy", ["time.sleep(60)", "re.match('(a*)*b', 'a' * 60)"], ids=["a thread", "code in C"])
def test_a_signal_ends_a_server_in_time_whatever_its_threads_do(busy):
    """The second one holds the lock of the interpreter for ever."""
    command = [sys.executable, "-c", BUSY.format(busy=busy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "ready\n"
        began = time.monotonic()
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) != 0
        assert time.monotonic() - began < 5


BUSY = """
import re, signal, threading, time
from dualread.apps.serve import web

async def app(scope, receive, send):
    pass

class Server(web.WebServer):
    def handle_exit(self, sig, frame):
        super().handle_exit(sig, frame)
        threading.Thread(target=lambda: {busy}).start()

server = web.server(app, connections=9, seconds_to_stop=2)
made = Server(server.config)
threading.Timer(0.5, print, ("ready",), dict(flush=True)).start()
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    made.run(sockets=[web.listen(web.LOOPBACK, 0)])
except KeyboardInterrupt:
    pass
"""
