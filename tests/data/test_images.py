import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from dualread.data.images import extension, open_image, pixel_sha256
from dualread.errors import DataError


def _saved(tmp_path, image, name="x.png", **options):
    path = tmp_path / name
    image.save(path, **options)
    return path


def test_exif_orientation_is_applied(tmp_path):
    image = Image.new("RGB", (4, 2))
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees to see it upright
    assert open_image(_saved(tmp_path, image, "x.jpg", exif=exif)).size == (2, 4)


def test_palette_and_bilevel_become_rgb(tmp_path):
    palette = Image.new("P", (1, 1), 1)
    palette.putpalette([0, 0, 0, 10, 20, 30])
    assert open_image(_saved(tmp_path, palette)).getpixel((0, 0)) == (10, 20, 30)
    assert open_image(_saved(tmp_path, Image.new("1", (1, 1), 1), "y.png")).getpixel((0, 0)) == (255, 255, 255)


def test_transparency_is_composited_on_black(tmp_path):
    half = Image.new("RGBA", (1, 1), (200, 100, 50, 128))  # 200 * 128 / 255 = 100.4, 50.2, 25.1
    assert open_image(_saved(tmp_path, half)).getpixel((0, 0)) == (100, 50, 25)
    palette = Image.new("P", (1, 1), 0)
    palette.putpalette([255, 255, 255])
    assert open_image(_saved(tmp_path, palette, "y.png", transparency=0)).getpixel((0, 0)) == (0, 0, 0)
    gray = Image.new("LA", (1, 1), (255, 0))
    assert open_image(_saved(tmp_path, gray, "z.png")).getpixel((0, 0)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("format_name", "expected"),
    [("PNG", ".png"), ("JPEG", ".jpg"), ("TIFF", ".tiff"), ("BMP", ".bmp"), ("GIF", ".gif")],
)
def test_the_extension_is_that_of_the_content_in_a_file_and_in_bytes(tmp_path, format_name, expected):
    path = tmp_path / "wrong.name"
    Image.new("L", (2, 2)).save(path, format=format_name)
    assert extension(path) == extension(path.read_bytes()) == expected


@pytest.mark.parametrize("format_name", ["PNG", "JPEG", "TIFF", "BMP", "GIF"])
def test_truncated_file_is_refused_by_name(tmp_path, format_name):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, format=format_name)
    path = tmp_path / "cut.jpg"
    path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    with pytest.raises(DataError, match=r"cut\.jpg: cannot be decoded"):
        open_image(path)


@pytest.mark.parametrize("side", [12_000, 60_000])  # beyond Pillow's warning, beyond its error
def test_decompression_bomb_is_refused(tmp_path, side):
    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"") + chunk(b"IEND", b""))
    with pytest.raises(DataError, match=r"bomb\.png: the image is too large"):
        open_image(path)


def test_pixel_digest_sees_pixels_and_size_but_not_the_file(tmp_path):
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    as_png, as_bmp = _saved(tmp_path, image), _saved(tmp_path, image, "x.bmp")
    assert pixel_sha256(open_image(as_png)) == pixel_sha256(open_image(as_bmp))
    flat = Image.frombytes("RGB", (8, 2), image.tobytes())
    assert pixel_sha256(flat) != pixel_sha256(image)
    with pytest.raises(ValueError, match="mode L, expected RGB"):
        pixel_sha256(image.convert("L"))


def test_32_bit_values_have_no_known_range(tmp_path):
    path = _saved(tmp_path, Image.fromarray(np.array([[0.5]], dtype=np.float32)), "x.tiff")
    with pytest.raises(DataError, match=r"x\.tiff: 32-bit values 0\.5\.\.0\.5"):
        open_image(path)
