"""A process that decodes compressed DICOM pixels, because a damaged file can end GDCM, and the process that it is in.

Run as a program, it answers requests on standard input until that ends. It runs as text, so that its code is that of a
result's key, and it imports no more than pydicom. A request is a line of JSON, {"path", "size", "frame"}, and `size`
bytes of a file if `path` is null. An answer is a line of JSON, {"shape", "dtype"} or {"error"}, and the bytes of the
array.
"""

import atexit
import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np

SECONDS = 60  # for one image
_BYTES = 8_000_000_000  # of memory that the process may ask for
_lock = threading.Lock()
_running: list[subprocess.Popen] = []


def decode(source: Path | bytes, frame: int) -> np.ndarray | None:
    """Return the stored values of one frame; None if they cannot be decoded.

    Args:
        source: A DICOM file, or its bytes.
        frame: The frame, from 0.
    """
    content = source if isinstance(source, bytes) else b""
    request = {"path": None if content else str(source), "size": len(content), "frame": frame}
    with _lock:
        process = _process()
        watch = threading.Timer(SECONDS, process.kill)
        watch.start()
        try:
            return _asked(process, request, content)
        except (OSError, ValueError):  # it has ended
            _stop()
            return None
        finally:
            watch.cancel()


def _asked(process: subprocess.Popen, request: dict[str, Any], content: bytes) -> np.ndarray | None:
    to, back = process.stdin, process.stdout
    assert to is not None
    assert back is not None
    to.write(json.dumps(request).encode() + b"\n" + content)
    to.flush()
    says = json.loads(back.readline())
    if "error" in says:
        return None
    values = np.empty(says["shape"], dtype=says["dtype"])
    return np.frombuffer(back.read(values.nbytes), dtype=values.dtype).reshape(values.shape)


def _process() -> subprocess.Popen:
    if not _running:
        from dualread import (
            source_snapshot as source_snapshot,  # here, because the program needs no more of the library than this file
        )

        program = source_snapshot.read(Path(__file__)).decode()
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL  # decoders write what they like on standard error
        _running.append(
            subprocess.Popen([sys.executable, "-P", "-c", program], stdin=pipe, stdout=pipe, stderr=nothing)
        )
    return _running[0]


@atexit.register
def _stop() -> None:
    for process in _running:
        process.kill()
        process.communicate()
    _running.clear()


def _answer(requests: IO[bytes], answers: IO[bytes]) -> None:
    import warnings

    from pydicom.pixels.utils import pixel_array

    warnings.simplefilter("ignore")
    for line in requests:
        asked = json.loads(line)
        content = requests.read(asked["size"])
        try:
            with open(asked["path"], "rb") if asked["path"] is not None else io.BytesIO(content) as file:
                values = np.ascontiguousarray(pixel_array(file, index=asked["frame"]))
        except Exception as error:  # pydicom raises errors of all kinds
            answers.write(json.dumps({"error": type(error).__name__}).encode() + b"\n")
        else:
            says = {"shape": values.shape, "dtype": values.dtype.str}
            answers.write(json.dumps(says).encode() + b"\n" + values.tobytes())
        answers.flush()


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, ValueError, OSError):  # Windows has no such limits
        return


if __name__ == "__main__":
    _limit_memory()
    _answer(sys.stdin.buffer, sys.stdout.buffer)
