"""What image files say about how they are to be shown: bits that count, which end is white, the background."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from dualread.data.images import decode, open_image, shown_alike
from dualread.errors import DataError

# Gray levels 20, 90, 140, 200 of 255, in 12 bits: level * 4095 // 255.
SHOWN = [20, 90, 140, 200]
TWELVE = np.array([[321, 1445, 2248, 3211]], dtype=np.uint16)


def _bytes(image, format_name="PNG", **options):
    file = io.BytesIO()
    image.save(file, format=format_name, **options)
    return file.getvalue()


def _levels(content, bits=None):
    return np.asarray(decode(content, bits=bits).image)[0, :, 0].tolist()


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


def test_twelve_bits_in_16_are_refused_unless_someone_says_so():
    for content in (_bytes(Image.fromarray(TWELVE)), _bytes(Image.fromarray(TWELVE), "TIFF")):
        with pytest.raises(DataError, match=r"values end at 3211.*12 would fit"):
            open_image(content)
        assert _levels(content, bits=12) == SHOWN
        assert not decode(content, bits=12).own
        assert _levels(content, bits=16) == [1, 6, 9, 12]  # 3211 / 257 = 12.49
    # 10 bits: 200 * 1023 // 255 = 802, and 802 * 255 / 1023 = 199.9
    assert _levels(_bytes(Image.fromarray(np.array([[802]], dtype=np.uint16))), bits=10) == [200]


def test_significant_bits_of_a_png_are_followed_as_the_standard_has_them_and_as_scanners_write_them():
    assert _levels(png((b"sBIT", b"\x0c"))) == SHOWN  # at the lower end
    shifted = (TWELVE << 4) | (TWELVE >> 8)  # scaled to the full range, as the standard says
    assert _levels(png((b"sBIT", b"\x0c"), values=shifted)) == SHOWN
    dark = np.array([[16, 4080]], dtype=np.uint16)  # 1 and 255 of 4095, shifted: dark, as the file says
    assert _levels(png((b"sBIT", b"\x0c"), values=dark)) == [0, 16]
    assert decode(png((b"sBIT", b"\x0c")), bits=10).own  # the file comes first
    with pytest.raises(DataError, match="values end at 3211"):
        open_image(png((b"sBIT", b"")))


def test_the_largest_value_of_a_tiff_counts_if_it_is_that_of_a_number_of_bits():
    assert _levels(_bytes(Image.fromarray(TWELVE), "TIFF", tiffinfo={281: 4095})) == SHOWN
    whole = Image.fromarray(np.array([[321, 4095]], dtype=np.uint16))
    assert _levels(_bytes(whole, "TIFF", tiffinfo={281: 4095})) == [20, 255]
    with pytest.raises(DataError, match="values end at 3211"):  # the picture's own maximum is no scale
        open_image(_bytes(Image.fromarray(TWELVE), "TIFF", tiffinfo={281: 3211}))


def test_packed_twelve_bits_of_a_tiff():
    # Two values of 12 bits in three bytes: 321 = 0x141 and 3211 = 0xc8b.
    wide = _bytes(Image.fromarray(TWELVE[:, [0, 3]]), "TIFF")
    packed = with_tag(wide, 258, 12).replace(TWELVE[0, [0, 3]].tobytes(), b"\x14\x1c\x8b\0")
    assert _levels(packed) == [20, 200]


def test_white_is_zero_is_turned_in_8_and_16_bits():
    for values in (np.array([[0, 200]], np.uint8), np.array([[0, 200 * 257]], np.uint16)):
        content = _bytes(Image.fromarray(values), "TIFF")
        assert _levels(content) == [0, 200]
        assert _levels(with_tag(content, 262, 0)) == [255, 55]
    twelve = with_tag(_bytes(Image.fromarray(TWELVE), "TIFF"), 262, 0)
    assert _levels(twelve, bits=12) == [255 - level for level in SHOWN]
    with pytest.raises(DataError, match="12 would fit"):
        open_image(twelve)
    with pytest.raises(DataError, match="more than 1023"):
        decode(twelve, bits=10)


def test_the_largest_value_of_a_pgm_is_its_scale():
    body = TWELVE.astype(">u2").tobytes()
    assert _levels(b"P5 4 1 4095\n" + body) == SHOWN


@pytest.mark.parametrize("format_name", ["PNG", "TIFF"])
def test_dark_16_bit_colors_are_refused(format_name):
    values = np.repeat(TWELVE, 3, axis=1)  # 12 values, as 4 pixels of RGB
    made = _png_rgb16 if format_name == "PNG" else _tiff_rgb16
    rows = {scale: made(values * scale) for scale in (1, 16)}
    with pytest.raises(DataError, match="its 16-bit colors end below 3328"):  # (3211 // 256 + 1) * 256
        open_image(rows[1])
    assert max(_levels(rows[1], bits=16)) == 12
    assert not decode(rows[1], bits=16).own
    assert max(_levels(rows[16])) == 200  # 3211 * 16 // 256
    assert shown_alike(rows[16]) is None


def _png_rgb16(values):
    return png(values=values, color=2, channels=3)


def _tiff_rgb16(values):
    """A little-endian TIFF of one row of 16-bit RGB."""
    body, n = values.astype("<u2").tobytes(), values.shape[1] // 3
    tags = [(256, 3, 1, n), (257, 3, 1, 1), (258, 3, 3, 140), (259, 3, 1, 1), (262, 3, 1, 2)]
    tags += [(273, 4, 1, 146), (277, 3, 1, 3), (278, 3, 1, 1), (279, 4, 1, len(body))]
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + b"\0" * 4
    head = b"II*\0" + struct.pack("<I", 8) + directory
    return head.ljust(140, b"\0") + struct.pack("<HHH", 16, 16, 16) + body


def test_signed_values_and_cielab_colors_are_refused_by_name():
    signed = _bytes(Image.fromarray(np.array([[1, 2]], dtype=np.int32)), "TIFF")
    with pytest.raises(DataError, match=r"signed values 1..2"):
        open_image(signed)
    with pytest.raises(DataError, match="has signed values"):
        open_image(_signed_8_bits())
    with pytest.raises(DataError, match="CIELAB"):
        open_image(_bytes(Image.new("LAB", (2, 2)), "TIFF"))


def _signed_8_bits():
    content = _bytes(Image.new("L", (2, 2), 200), "TIFF", tiffinfo={339: 1})
    return with_tag(content, 339, 2)


def test_the_background_of_a_png_is_followed():
    # Pillow does not read the chunk; without it, transparency is on black.
    alpha = np.array([[10, 0, 200, 255]], dtype=np.uint8)  # gray 10 with alpha 0, gray 200 with alpha 255
    content = png(values=alpha, depth=8, color=4, channels=2)
    assert _levels(content) == [0, 200]
    white = png((b"bKGD", b"\0\xff"), values=alpha, depth=8, color=4, channels=2)
    assert _levels(white) == [255, 200]


def test_a_transparent_16_bit_gray_is_background():
    values = np.array([[0, 40_000, 51_400]], dtype=np.uint16)
    assert _levels(png((b"tRNS", struct.pack(">H", 40_000)), values=values)) == [0, 0, 200]
    named = png((b"bKGD", b"\xff\xff"), (b"tRNS", struct.pack(">H", 40_000)), values=values)
    assert _levels(named) == [0, 255, 200]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros((4, 4)), "a single color (0, 0, 0)"),
        (np.array([[0, 255], [128, 0]]), "only 3 gray levels"),
        (np.arange(100, 110)[None], "little contrast (gray levels 100 to 109 of 0 to 255)"),
    ],
)
def test_a_picture_of_which_nothing_is_seen_is_doubted_but_read(values, said):
    [doubt] = decode(_bytes(Image.fromarray(values.astype(np.uint8)))).doubts
    assert said in doubt
    assert decode(_bytes(Image.fromarray(values.astype(np.uint8)))).own


def test_ordinary_pictures_are_not_doubted():
    assert decode(_bytes(Image.fromarray(np.arange(20, dtype=np.uint8)[None] * 10))).doubts == ()
    assert decode(_bytes(Image.fromarray(np.array([SHOWN], dtype=np.uint8)))).doubts == ()
    assert decode(_bytes(Image.fromarray(np.arange(100, 117, dtype=np.uint8)[None]))).doubts == ()  # 16 levels apart
    unseen = Image.new("RGBA", (2, 2))  # black, and drawn in its transparency alone
    unseen.putalpha(Image.fromarray(np.array([[0, 255], [255, 0]], dtype=np.uint8)))
    assert "a single color" in decode(_bytes(unseen)).doubts[0]


def test_a_picture_in_memory_has_the_same_rule():
    with pytest.raises(DataError, match="the image: its 16-bit gray values end at 3211"):
        decode(Image.fromarray(TWELVE))
    assert np.asarray(decode(Image.fromarray(TWELVE), bits=12).image)[0, :, 0].tolist() == SHOWN
