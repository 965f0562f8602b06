"""Open DICOM files of others within limits: the header, and the stored values of one frame.

pydicom and its decoders are an extra (`pip install 'dualread[dicom]'`), imported for DICOM files alone. Nothing that
they say about values of a file is repeated, because it may be about a patient.
"""

import atexit
import contextlib
import io
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

from dualread import limits
from dualread.data.images import check_size
from dualread.errors import DataError

GRAY = ("MONOCHROME1", "MONOCHROME2")
COLORS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")  # pydicom returns RGB for all of them
_DEFLATED = b"1.2.840.10008.1.2.1.99"  # pydicom unpacks such a file whatever its size
_ITEM_TAGS = (b"\xfe\xff\x00\xe0", b"\xff\xfe\xe0\x00")  # in either order of bytes
# A damaged file can end GDCM, and the process that it is in. A request is a line with the size of a file and the number
# of a frame, and the file; an answer is a line with its size, and an array in numpy's format.
_GDCM = """
import io, sys
import numpy
from pydicom.pixels import pixel_array
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_AS)[1]))
except (ImportError, ValueError, OSError):  # Windows has no such limits
    pass
for request in sys.stdin.buffer:
    size, frame = map(int, request.split())
    content = sys.stdin.buffer.read(size)
    answer = io.BytesIO()
    try:
        numpy.save(answer, pixel_array(io.BytesIO(content), index=frame), allow_pickle=False)
    except Exception:
        pass
    sys.stdout.buffer.write(b"%d\\n" % answer.tell() + answer.getbuffer())
    sys.stdout.buffer.flush()
"""
_lock = threading.Lock()
_processes: list[subprocess.Popen] = []


def is_dicom(content: bytes) -> bool:
    """Return whether the beginning of a file (132 bytes) is that of DICOM, whatever its name is."""
    return content[128:132] == b"DICM"


@contextlib.contextmanager
def opened(content: bytes, name: str, frame: int | None) -> Iterator[Any]:
    """Yield the header of a file; what pydicom raises becomes a DataError, as long as the file is in use.

    What an enhanced file says for the `frame` (from 1; None where there is only one), or for all frames, stands in the
    header itself.
    """
    try:
        from pydicom import dcmread
    except ImportError:
        advice = "Run: pip install 'dualread[dicom]'; or export a PNG with the window applied."
        raise DataError(f"{name}: is a DICOM file. {advice}") from None
    if _DEFLATED in content:
        raise DataError(f"{name}: a deflated DICOM file, which is not read. Save it uncompressed.")
    if (n := sum(map(content.count, _ITEM_TAGS))) > limits.DICOM_ITEMS:
        limit = f"expected at most {limits.DICOM_ITEMS:,}. Export the picture alone."
        raise DataError(f"{name}: a DICOM file with {n:,} items, {limit}")
    logger = logging.getLogger("pydicom")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # it names values, as its warnings do
    try:
        with warnings.catch_warnings(action="ignore"):
            warnings.simplefilter("error", Image.DecompressionBombWarning)  # the header may name fewer pixels
            header = dcmread(io.BytesIO(content), stop_before_pixels=True)
            _check(header, frame, name)
            index = (frame or 1) - 1
            groups = [*(header.get("SharedFunctionalGroupsSequence") or ())[:1]]
            groups += [*(header.get("PerFrameFunctionalGroupsSequence") or ())[index : index + 1]]
            for group in groups:
                for part in ("FrameVOILUTSequence", "PixelValueTransformationSequence"):
                    for item in group.get(part) or ():
                        header.update(item)
            yield header
    except DataError:
        raise
    except Exception as error:  # pydicom raises errors of all kinds for damaged files; their texts name values
        kind = type(error).__name__
        raise DataError(f"{name}: the DICOM file cannot be decoded ({kind}). Restore or export it again.") from None
    finally:
        logger.setLevel(level)


def _check(header: Any, frame: int | None, name: str) -> None:
    """Refuse what cannot be shown, before any pixel is read."""
    if header.get("Rows") is None or header.get("Columns") is None:
        raise DataError(f"{name}: a DICOM file with no picture (a report or a directory?). Give a file with a picture.")
    check_size(name, int(header.Columns), int(header.Rows))
    n = int(header.get("NumberOfFrames") or 1)
    if (frame is None and n != 1) or not 1 <= (1 if frame is None else frame) <= n:
        mismatch = "none is named" if frame is None else f"none has the number {frame}"
        advice = "Write the number behind the file's name, such as x.dcm#1 for the first."
        raise DataError(f"{name}: a DICOM file of {n} frames, of which {mismatch}. {advice}")
    allocated, stored, highest = header.BitsAllocated, header.BitsStored, header.get("HighBit", header.BitsStored - 1)
    if allocated not in (1, 8, 16) or not 1 <= stored <= allocated or highest != stored - 1:
        layout = f"{stored} bits stored of {allocated}, the highest is {highest}"
        raise DataError(f"{name}: DICOM with {layout}; expected the lower ones of 1, 8 or 16. Export it again.")
    if header.get("PresentationLUTSequence"):
        raise DataError(f"{name}: DICOM with a presentation LUT, which is not read. Export a PNG as it is shown.")
    if (kind := str(header.PhotometricInterpretation)) not in (*GRAY, *COLORS, "PALETTE COLOR"):
        raise DataError(f"{name}: DICOM with the photometric interpretation {kind[:16]!r}, which is not read.")


def stored_values(content: bytes, syntax: Any, frame: int, name: str) -> np.ndarray:
    """Return the stored values of a frame (from 0) [height, width], or [height, width, 3] for colors."""
    from pydicom.pixels.decoders.base import get_decoder
    from pydicom.pixels.utils import pixel_array

    if not syntax.is_compressed:
        return pixel_array(io.BytesIO(content), index=frame)
    try:
        plugins = get_decoder(syntax).available_plugins
    except NotImplementedError:
        plugins = ()
    if not plugins:
        raise DataError(
            f"{name}: no decoder for the DICOM transfer syntax ({syntax.name[:64]}). Run: pip install"
            " 'dualread[dicom]'; or export it uncompressed."
        )
    if decoder := next((plugin for plugin in ("pydicom", "pillow") if plugin in plugins), None):
        with contextlib.suppress(Exception):  # Pillow does not decode each file of its syntaxes; GDCM is asked next
            return pixel_array(io.BytesIO(content), index=frame, decoding_plugin=decoder)
    try:
        return _decoded_by_gdcm(content, frame)
    except (OSError, ValueError, EOFError):
        raise DataError(
            f"{name}: the compressed pixels of the DICOM file cannot be decoded. Export it uncompressed."
        ) from None


def _decoded_by_gdcm(content: bytes, frame: int) -> np.ndarray:
    """Return the stored values of a frame; OSError, ValueError or EOFError if they cannot be decoded."""
    with _lock:
        if not _processes:
            command = [sys.executable, "-P", "-W", "ignore", "-c", _GDCM, str(limits.GDCM_BYTES)]
            pipe, nothing = subprocess.PIPE, subprocess.DEVNULL  # decoders write what they like on standard error
            _processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing))
        process: Any = _processes[0]
        watch = threading.Timer(limits.GDCM_SECONDS, process.kill)
        watch.start()
        try:
            process.stdin.write(b"%d %d\n" % (len(content), frame) + content)
            process.stdin.flush()
            return np.load(io.BytesIO(process.stdout.read(int(process.stdout.readline()))), allow_pickle=False)
        except (OSError, ValueError):  # it has ended
            _end_gdcm()
            raise
        finally:
            watch.cancel()


@atexit.register
def _end_gdcm() -> None:
    while _processes:
        process = _processes.pop()
        process.kill()
        process.communicate()
