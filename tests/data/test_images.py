"""What image files say about how they are to be shown: bits that count, which end is white, the background."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from dualread.data.images import decode, extension, open_image, pixel_sha256, shown_alike
from dualread.errors import DataError

# Gray levels 20, 90, 140, 200 of 255, in 12 bits: level * 4095 // 255.
SHOWN = [20, 90, 140, 200]
TWELVE = np.array([[321, 1445, 2248, 3211]], dtype=np.uint16)
COLORS = np.repeat(TWELVE, 3, axis=1)  # 12 values, as 4 pixels of RGB


def saved(image, format_name="PNG", **options):
    """The bytes of a file with a Pillow image, or with gray values."""
    file = io.BytesIO()
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(file, format=format_name, **options)
    return file.getvalue()


def gray(*values, dtype=np.uint16):
    return np.array([values], dtype=dtype)


def palette(index, *levels):
    image = Image.new("P", (1, 1), index)
    image.putpalette(levels)
    return image


def png(*chunks, values=TWELVE, depth=16, color=0, channels=1):
    """A PNG with more chunks before its pixels; `values` are those of all channels, pixel after pixel."""
    rows = b"".join(b"\0" + row.astype(">u2" if depth == 16 else "u1").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", values.shape[1] // channels, values.shape[0], depth, color, 0, 0, 0)
    every = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in every
    )


def with_tag(content, tag, value):
    """A little-endian TIFF whose short tag has another value."""
    at = struct.unpack("<I", content[4:8])[0]
    for i in range(struct.unpack("<H", content[at : at + 2])[0]):
        entry = at + 2 + 12 * i
        if struct.unpack("<H", content[entry : entry + 2])[0] == tag:
            return content[: entry + 8] + struct.pack("<H", value) + content[entry + 10 :]
    raise AssertionError(f"no tag {tag}")


def negative(values):
    """A TIFF in which white is 0."""
    return with_tag(saved(values, "TIFF"), 262, 0)


def tiff_of_colors(values):
    """A little-endian TIFF of one row of 16-bit RGB."""
    body, n = values.astype("<u2").tobytes(), values.shape[1] // 3
    tags = [(256, 3, 1, n), (257, 3, 1, 1), (258, 3, 3, 140), (259, 3, 1, 1), (262, 3, 1, 2)]
    tags += [(273, 4, 1, 146), (277, 3, 1, 3), (278, 3, 1, 1), (279, 4, 1, len(body))]
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + b"\0" * 4
    head = b"II*\0" + struct.pack("<I", 8) + directory
    return head.ljust(140, b"\0") + struct.pack("<HHH", 16, 16, 16) + body


SIGNIFICANT, ALPHA, TRANSPARENT = (b"sBIT", b"\x0c"), gray(10, 0, 200, 255), (b"tRNS", struct.pack(">H", 40_000))
OF_ALPHA = {"values": ALPHA, "depth": 8, "color": 4, "channels": 2}  # gray 10 with alpha 0, gray 200 with alpha 255
KEYED = {"values": gray(0, 40_000, 51_400)}
# Files, the bits that somebody says to be those that count, and the levels that are shown.
LEVELS = {
    "12 of 16 bits": (saved(TWELVE), 12, SHOWN),
    "12 of 16 bits in a TIFF": (saved(TWELVE, "TIFF"), 12, SHOWN),
    "all of 16 bits": (saved(TWELVE), 16, [1, 6, 9, 12]),  # 3211 / 257 = 12.49
    # 10 bits: 200 * 1023 // 255 = 802, and 802 * 255 / 1023 = 199.9
    "10 of 16 bits": (saved(gray(802)), 10, [200]),
    "significant bits at the lower end, as scanners write them": (png(SIGNIFICANT), None, SHOWN),
    "significant bits scaled to all, as the standard says": (
        *(png(SIGNIFICANT, values=(TWELVE << 4) | (TWELVE >> 8)), None),
        SHOWN,
    ),
    # 1 and 255 of 4095, shifted: dark, as the file says
    "significant bits of a dark picture": (png(SIGNIFICANT, values=gray(16, 4080)), None, [0, 16]),
    "the largest value of a TIFF": (saved(TWELVE, "TIFF", tiffinfo={281: 4095}), None, SHOWN),
    "the largest value of a TIFF that occurs": (saved(gray(321, 4095), "TIFF", tiffinfo={281: 4095}), None, [20, 255]),
    # Two values of 12 bits in three bytes: 321 = 0x141 and 3211 = 0xc8b.
    "packed bits": (
        with_tag(saved(gray(321, 3211), "TIFF"), 258, 12).replace(gray(321, 3211).tobytes(), b"\x14\x1c\x8b\0"),
        None,
        [20, 200],
    ),
    "black is 0": (saved(gray(0, 200, dtype=np.uint8), "TIFF"), None, [0, 200]),
    "white is 0": (negative(gray(0, 200, dtype=np.uint8)), None, [255, 55]),
    "black is 0 in 16 bits": (saved(gray(0, 200 * 257), "TIFF"), None, [0, 200]),
    "white is 0 in 16 bits": (negative(gray(0, 200 * 257)), None, [255, 55]),
    "white is 0 in 12 bits": (negative(TWELVE), 12, [255 - level for level in SHOWN]),
    "the largest value of a PGM": (b"P5 4 1 4095\n" + TWELVE.astype(">u2").tobytes(), None, SHOWN),
    "dark 16-bit colors": (png(values=COLORS, color=2, channels=3), 16, [1, 5, 8, 12]),  # of 256
    "dark 16-bit colors of a TIFF": (tiff_of_colors(COLORS), 16, [1, 5, 8, 12]),
    "16-bit colors": (png(values=COLORS * 16, color=2, channels=3), None, [20, 90, 140, 200]),
    "16-bit colors of a TIFF": (tiff_of_colors(COLORS * 16), None, [20, 90, 140, 200]),
    "transparency is on black": (png(**OF_ALPHA), None, [0, 200]),
    "transparency is on the background that is named": (png((b"bKGD", b"\0\xff"), **OF_ALPHA), None, [255, 200]),
    "a transparent 16-bit gray": (png(TRANSPARENT, **KEYED), None, [0, 0, 200]),
    "a transparent 16-bit gray on white": (png((b"bKGD", b"\xff\xff"), TRANSPARENT, **KEYED), None, [0, 255, 200]),
    "a picture in memory": (Image.fromarray(TWELVE), 12, SHOWN),
}
REFUSED = {
    "16 bits": (saved(TWELVE), None, r"values end at 3211.*12 would fit"),
    "16 bits of a TIFF": (saved(TWELVE, "TIFF"), None, r"values end at 3211.*12 would fit"),
    "no significant bits": (png((b"sBIT", b"")), None, "values end at 3211"),
    # the picture's own maximum is no scale
    "the largest value of a TIFF": (saved(TWELVE, "TIFF", tiffinfo={281: 3211}), None, "values end at 3211"),
    "white is 0": (negative(TWELVE), None, "12 would fit"),
    "white is 0, and there are more bits": (negative(TWELVE), 10, "more than 1023"),
    # (3211 // 256 + 1) * 256
    "colors": (png(values=COLORS, color=2, channels=3), None, "its 16-bit colors end below 3328"),
    "colors of a TIFF": (tiff_of_colors(COLORS), None, "its 16-bit colors end below 3328"),
    "signed values": (saved(gray(1, 2, dtype=np.int32), "TIFF"), None, r"signed values 1..2"),
    "8 signed bits": (
        with_tag(saved(Image.new("L", (2, 2), 200), "TIFF", tiffinfo={339: 1}), 339, 2),
        None,
        "has signed values",
    ),
    "32-bit values have no known range": (saved(gray(0.5, dtype=np.float32), "TIFF"), None, r"32-bit values 0\.5"),
    "CIELAB": (saved(Image.new("LAB", (2, 2)), "TIFF"), None, "CIELAB"),
    "a picture in memory": (Image.fromarray(TWELVE), None, "the image: its 16-bit gray values end at 3211"),
}


@pytest.mark.parametrize(("content", "bits", "levels"), LEVELS.values(), ids=LEVELS)
def test_levels(content, bits, levels):
    decoded = decode(content, bits=bits)
    assert np.asarray(decoded.image)[0, :, 0].tolist() == levels
    assert decoded.own == (bits is None)


@pytest.mark.parametrize(("content", "bits", "said"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_known_range_is_refused(content, bits, said):
    with pytest.raises(DataError, match=said):
        decode(content, bits=bits)


def test_what_the_file_says_comes_first():
    assert decode(png(SIGNIFICANT), bits=10).own
    assert shown_alike(png(values=COLORS * 16, color=2, channels=3)) is None
    assert shown_alike(tiff_of_colors(COLORS * 16)) is None


@pytest.mark.parametrize(
    ("image", "options", "pixel"),
    [
        (palette(1, 0, 0, 0, 10, 20, 30), {}, (10, 20, 30)),
        (Image.new("1", (1, 1), 1), {}, (255, 255, 255)),
        (Image.new("RGBA", (1, 1), (200, 100, 50, 128)), {}, (100, 50, 25)),  # 200 * 128 / 255 = 100.4, 50.2, 25.1
        (palette(0, 255, 255, 255), {"transparency": 0}, (0, 0, 0)),
        (Image.new("LA", (1, 1), (255, 0)), {}, (0, 0, 0)),
    ],
)
def test_palettes_and_transparency_become_rgb_on_black(image, options, pixel):
    assert open_image(saved(image, **options)).getpixel((0, 0)) == pixel


def test_exif_orientation_is_applied():
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees to see it upright
    assert open_image(saved(Image.new("RGB", (4, 2)), "JPEG", exif=exif)).size == (2, 4)


@pytest.mark.parametrize(
    ("format_name", "expected"),
    [("PNG", ".png"), ("JPEG", ".jpg"), ("TIFF", ".tiff"), ("BMP", ".bmp"), ("GIF", ".gif")],
)
def test_the_extension_is_that_of_the_content_in_a_file_and_in_bytes(tmp_path, format_name, expected):
    path = tmp_path / "wrong.name"
    path.write_bytes(saved(Image.new("L", (2, 2)), format_name))
    assert extension(path) == extension(path.read_bytes()) == expected


def test_pixel_digest_sees_pixels_and_size_but_not_the_file():
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    assert pixel_sha256(open_image(saved(image))) == pixel_sha256(open_image(saved(image, "BMP")))
    assert pixel_sha256(Image.frombytes("RGB", (8, 2), image.tobytes())) != pixel_sha256(image)
    with pytest.raises(ValueError, match="mode L, expected RGB"):
        pixel_sha256(image.convert("L"))


UNSEEN = Image.new("RGBA", (2, 2))  # black, and drawn in its transparency alone
UNSEEN.putalpha(Image.fromarray(np.array([[0, 255], [255, 0]], dtype=np.uint8)))


@pytest.mark.parametrize(
    ("image", "doubts"),
    [
        (np.zeros((4, 4), np.uint8), ["a single color (0, 0, 0)"]),
        (np.array([[0, 255], [128, 0]], np.uint8), ["only 3 gray levels"]),
        (gray(*range(100, 110), dtype=np.uint8), ["little contrast (gray levels 100 to 109 of 0 to 255)"]),
        (UNSEEN, ["a single color (0, 0, 0)"]),
        (gray(*range(100, 117), dtype=np.uint8), []),  # 16 levels apart
        (gray(*SHOWN, dtype=np.uint8), []),
    ],
)
def test_a_picture_of_which_nothing_is_seen_is_doubted_but_read(image, doubts):
    assert decode(saved(image)).doubts == tuple(f"the picture has {doubt}" for doubt in doubts)
