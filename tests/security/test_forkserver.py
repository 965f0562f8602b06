"""Whoever connects to the server of jobs and says nothing, too much, or is another user, holds up nobody (D4)."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest

from dualread.store.forked import ADDRESS
from tests.store.test_forked import _SLOW, library, serve

__all__ = ["library", "serve"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the server needs Linux")

# Connects as another user, sends some bytes, and says what comes back.
_OTHER = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.settimeout(5)
s.connect("\\0" + sys.argv[1])
try:
    s.sendall(b"x" * 1000)
    print(s.recv(1))
except OSError as error:
    print(type(error).__name__)
"""


def connected(served):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(5)
    connection.connect(f"\0{served.variables[ADDRESS]}/write_text")
    return connection


def test_idle_connections_hold_up_no_job(library, serve):
    served = serve()
    assert served.run("first")[0] == 0
    idle = [connected(served) for _ in range(5)]
    started = time.monotonic()
    code, said = served.run("second")
    assert (code, said.count("done")) == (0, 0), said
    assert time.monotonic() - started < 8  # each of them cost ten seconds
    for connection in idle:
        connection.close()


@pytest.mark.parametrize(
    "content",
    [b"", b"[" * 2 * 10**5, b"{}", b"null", b"\xff\xff", b'{"arguments": [], "folder": ".", "environment": 1}', None],
    ids=range(7),
)
def test_what_is_no_request_is_dropped_at_once(library, serve, content):
    served = serve()
    connection = connected(served)
    reading, writing = os.pipe()
    if content is None:
        socket.send_fds(connection, [b"+"], [0, 1, 2, reading])  # nobody ever writes into it
    else:
        with open(os.memfd_create("job"), "wb", buffering=0) as request:
            request.write(content)
            socket.send_fds(connection, [b"+"], [0, 1, 2, request.fileno()])
    assert connection.recv(1) == b""
    connection.close()
    os.close(reading)
    os.close(writing)
    assert served.run()[0] == 0
    assert served.wrote() == "Hello"


def test_bytes_without_files_are_dropped_at_once(library, serve):
    connection = connected(serve())
    connection.sendall(b"x")
    assert connection.recv(1) == b""
    connection.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_is_not_read(library, serve):
    served = serve()
    address = f"{served.variables[ADDRESS]}/write_text"
    started = time.monotonic()
    asked = subprocess.run([sys.executable, "-c", _OTHER, address], capture_output=True, text=True, check=True)
    assert asked.stdout.strip() in ("b''", "ConnectionResetError", "BrokenPipeError")
    assert time.monotonic() - started < 5
    assert served.run()[0] == 0


def test_a_large_environment_is_read(library, serve):
    served = serve()
    large = {f"LARGE_{i}": "x" * 100_000 for i in range(10)}
    code, _ = served.run("pieces", **large)  # it has another environment, and runs by itself
    assert code == 0
    assert "LARGE_0" in (library.root / "head.log").read_text()
    assert json.loads((library.root / "job.json").read_text())


def test_a_byte_that_is_no_signal_ends_no_job(library, serve):
    library.write("words.py", _SLOW)
    served = serve()
    job = served.start("one")
    served.child("one")
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    said = subprocess.run([sys.executable, "-c", program], env=served.variables, capture_output=True, check=True).stdout
    with connected(served) as connection, open(os.memfd_create("job"), "w+") as request:
        arguments = ["write_text", json.dumps(served._job("two"))]
        asked = {"arguments": arguments, "folder": str(library.root), "environment": json.loads(said)}
        request.write(json.dumps(asked))
        request.flush()
        socket.send_fds(connection, [b"+"], [0, 1, 2, request.fileno()])
        assert connection.recv(1) == b"+"
        connection.sendall(b"\xff")
        served.go()
        assert connection.recv(16) == b"0"
    assert "starts again" not in job.communicate(timeout=60)[1]
    assert (job.returncode, served.wrote("one"), served.wrote("two")) == (0, "one", "two")
