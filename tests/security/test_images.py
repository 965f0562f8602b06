"""Images that mean harm: programs, bombs, files without an end, damaged files, DICOM about a patient."""

import ast
import contextlib
import io
import os
import random
import struct
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image, ImageFile

import dualread
from dualread.data.given_images import read, unreadable
from dualread.data.images import decode, open_image, shown_alike
from dualread.data.questions.pictures import Pictures
from dualread.errors import DataError
from dualread.models.service.requests import image_url
from tests.data.dicoms import PATIENT, dataset, dicom, item, saved
from tests.data.questions.test_pictures import row_of
from tests.drawn import attempt

LIBRARY = Path(dualread.__file__).parent
POSTSCRIPT = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 64 64
%%EndComments
/f (VICTIM.txt) (w) file def f (owned) writestring f closefile
showpage
%%EOF
"""


def _png(*chunks):
    every = [(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)), *chunks]
    every += [(b"IDAT", zlib.compress(b"\0\0")), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in every
    )


@pytest.mark.parametrize("name", ["xray.png", "xray.eps", "xray"])
def test_postscript_is_refused_and_ghostscript_never_starts(tmp_path, monkeypatch, name):
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("Ghostscript was started"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.write_bytes(POSTSCRIPT)
    for opened in (open_image, read, image_url("data")):
        with pytest.raises(DataError, match="cannot be decoded"):
            opened(path)
    assert shown_alike(POSTSCRIPT) is None
    with pytest.raises(DataError, match="cannot be decoded"):
        read(POSTSCRIPT)
    assert not Path("VICTIM.txt").exists()


def test_no_other_module_lets_pillow_open_what_others_give():
    for path in LIBRARY.rglob("*.py"):
        for call in (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and ast.unparse(call.func).endswith("Image.open"):
                assert "formats" in [one.arg for one in call.keywords], f"{path}: Image.open without formats"


def test_svg_and_pdf_are_refused(tmp_path):
    svg = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'
    for content in (svg, b"%PDF-1.7\n"):
        (tmp_path / "x.png").write_bytes(content)
        with pytest.raises(DataError, match=r"x\.png: cannot be decoded"):
            read(tmp_path / "x.png")


def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", tmp_path, Path("/dev/zero")):
        for opened in (open_image, read):
            with pytest.raises(DataError, match="is no plain file"):
                opened(path)
    assert "no plain file" in unreadable([tmp_path / "pipe.png"])[0]


def test_paths_that_no_system_takes(tmp_path):
    for name in ("a\0b.png", "x" * 5000, "\ud800.png", "a\0b.png#2"):
        with pytest.raises(DataError):
            read(tmp_path / name)


@pytest.mark.parametrize("kind", [b"iCCP", b"zTXt", b"iTXt"])
def test_metadata_that_unpacks_to_a_gigabyte_is_refused(kind):
    packed = zlib.compressobj(9)
    body = b"".join(packed.compress(bytes(10_000_000)) for _ in range(30)) + packed.flush()
    head = {b"iCCP": b"x\0\0", b"zTXt": b"x\0\0", b"iTXt": b"x\0\1\0\0\0"}[kind]
    began = time.monotonic()
    with pytest.raises(DataError, match="cannot be decoded"):
        read(_png((kind, head + body)))
    assert time.monotonic() - began < 5


def test_a_jpeg_of_very_many_scans_is_refused():
    file = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(noise).save(file, "JPEG", progressive=True)
    content = file.getvalue()
    assert read(content).image.size == (32, 32)
    first = content.index(b"\xff\xda")
    scan = content[first : content.index(b"\xff", first + 20)]
    with pytest.raises(DataError, match="more than 100 scans"):
        read(content[:-2] + scan * 200 + content[-2:])


def test_20_000_x_20_000_pixels_are_refused_before_they_are_decoded():
    header, content = struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0), _png()
    content = content[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + content[33:]
    with pytest.raises(DataError, match=r"the image is too large"):
        read(content)


def test_an_animation_is_not_decoded_as_a_whole():
    file, frames = io.BytesIO(), [Image.new("1", (5000, 4000), i % 2) for i in range(4)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    began = time.monotonic()
    with pytest.raises(DataError, match="several frames"):
        read(file.getvalue())
    assert time.monotonic() - began < 20


def test_a_link_out_of_the_folder_is_noticed(tmp_path):
    (tmp_path / "data").mkdir()
    Image.new("L", (2, 2), 9).save(tmp_path / "secret.png")
    Image.new("L", (2, 2), 8).save(tmp_path / "data" / "own.png")
    (tmp_path / "data" / "out.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "data" / "in.png").symlink_to(tmp_path / "data" / "own.png")
    (tmp_path / "data" / "folder").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "data")  # the folder itself may be a link
    pictures = Pictures(folder=tmp_path / "link")
    for name in ("out.png", "folder/secret.png", "own.png", "in.png"):
        pictures.identity(row_of(tmp_path / "link" / name, name))
    assert sorted(path.name for path, file in pictures.files.items() if file.linked) == ["out.png", "secret.png"]


DRAWN = np.arange(64).reshape(8, 8) * 60


HOSTILE = {
    "cut": dicom(DRAWN)[:400],
    "huge": dicom(DRAWN, Rows=65_535, Columns=65_535),
    "frames": dicom(DRAWN, NumberOfFrames=1_000_000_000),
    "negative frames": dicom(DRAWN, NumberOfFrames=-1),
    "fewer pixels": dicom(DRAWN, Rows=4000, Columns=4000),
    "no rows": dicom(DRAWN, Rows=None),
    "no pixels": dicom(DRAWN, PixelData=None),
    "no photometric": dicom(DRAWN, PhotometricInterpretation=None),
    "slope": dicom(DRAWN, RescaleSlope="1e400", RescaleIntercept=0),
    "window": dicom(DRAWN, WindowCenter=1, WindowWidth=0),
    "palette without colors": dicom(DRAWN, bits=8, photometric="PALETTE COLOR"),
    "photometric": dicom(DRAWN, photometric="HSV"),
    "lut": dicom(DRAWN, VOILUTSequence=item(LUTDescriptor=[0, 0, 255], LUTData=b"")),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HOSTILE)
def test_dicom_that_is_damaged_or_lies_is_refused_in_one_sentence_without_the_patient(name):
    with pytest.raises(DataError) as refused:
        read(HOSTILE[name])
    assert "DICOM" in str(refused.value) or "too large" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert PATIENT not in str(refused.value)


def _within_dicom(elements):
    """Return a DICOM file with these bytes before its last element, which are its pixels."""
    made = dicom(DRAWN)
    at = made.rindex(b"\xe0\x7f\x10\x00")
    return made[:at] + elements + made[at:]


SEQUENCE = struct.pack("<HH2sHI", 0x0040, 0xA730, b"SQ", 0, 0xFFFFFFFF)
ITEM, END = struct.pack("<HHI", 0xFFFE, 0xE000, 0), struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


@pytest.mark.filterwarnings("ignore")
def test_millions_of_empty_items_are_refused_at_once(tmp_path):
    made = _within_dicom(SEQUENCE + ITEM * 1_000_000 + END)  # 8 MB
    (tmp_path / "a.dcm").write_bytes(made)
    started = time.monotonic()
    for source in (made, tmp_path / "a.dcm"):
        with pytest.raises(DataError, match=r"a DICOM file with 1,000,000 items, expected at most 200,000"):
            read(source)
    assert time.monotonic() - started < 10
    assert read(_within_dicom(SEQUENCE + ITEM * 100 + END)).image.size == (8, 8)


@pytest.mark.filterwarnings("ignore")
def test_sequences_within_sequences_are_a_sentence():
    deep = (SEQUENCE + struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)) * 50_000
    with pytest.raises(DataError, match="the DICOM file cannot be decoded"):
        read(_within_dicom(deep))


def test_a_deflated_bomb_is_not_unpacked():
    made = dataset(DRAWN, syntax="1.2.840.10008.1.2.1.99")
    made.add_new(0x00091001, "OB", bytes(300_000_000))
    content = saved(made)
    assert len(content) < 1_000_000
    began = time.monotonic()
    with pytest.raises(DataError, match="deflated"):
        read(content)
    assert time.monotonic() - began < 2


def test_without_pydicom_one_sentence_says_what_it_is_and_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pydicom", None)
    (tmp_path / "IM000001").write_bytes(dicom(DRAWN))
    with pytest.raises(DataError, match=r"IM000001: is a DICOM file\. Run: pip install 'dualread\[dicom\]'"):
        read(tmp_path / "IM000001")
    assert "1 of 1 images are DICOM" in unreadable([tmp_path / "IM000001"])[0]


def _seeds():
    noise = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    for name in ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "JPEG2000", "PPM"):
        file = io.BytesIO()
        Image.fromarray(noise).save(file, name)
        yield file.getvalue()
    yield dicom(DRAWN)
    yield dicom(np.stack([DRAWN, DRAWN]), WindowCenter=40, WindowWidth=400)


@pytest.mark.parametrize("seed", range(8))
def test_changed_bytes_end_in_a_picture_or_in_a_sentence(seed):
    rng, seeds, said = random.Random(seed), list(_seeds()), []
    for _ in range(60):
        content = bytearray(rng.choice(seeds))
        for _ in range(rng.choice([1, 3, 10])):
            at = rng.randrange(min(len(content), rng.choice([80, 10_000])))
            content[at] = rng.choice([0, 255, rng.randrange(256)])
        try:
            assert read(bytes(content)).image.mode == "RGB"
        except DataError as error:
            said.append(str(error))
    assert said
    assert not any(PATIENT in sentence for sentence in said)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "GIF", "BMP", "PPM"])
def test_half_of_a_picture_is_refused_whatever_another_library_has_told_pillow(tmp_path, monkeypatch, kind):
    """Pillow would fill the rest with gray, without a word."""
    content = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3)).astype(np.uint8)
    Image.fromarray(noise).save(content, kind)
    half = content.getvalue()[: len(content.getvalue()) // 2]
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    (tmp_path / "x").write_bytes(half)
    lazy = None
    with contextlib.suppress(OSError):
        lazy = Image.open(io.BytesIO(half))
    for given in (half, tmp_path / "x", lazy):
        if given is not None:
            with pytest.raises(DataError):
                decode(given)
    with ThreadPoolExecutor(4) as pool:
        errors = pool.map(lambda _: attempt(lambda: decode(half), DataError)[1], range(40))
        assert {type(error) for error in errors} == {DataError}
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True
    assert decode(content.getvalue())
