"""Images as people give them: files of one or several frames, bytes, file objects, arrays, and pictures in memory."""

import io

import numpy as np
import pytest
from PIL import Image

from dualread.data.given_images import read, stored, unreadable
from dualread.data.images import open_image
from dualread.errors import DataError
from tests.data.dicoms import dicom
from tests.data.test_images import saved

GRAY = np.array([[10, 60], [120, 250]], dtype=np.uint8)
COLOR = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20
LIGHT, DARK = Image.new("L", (6, 4), 200), Image.new("L", (6, 4), 0)


def frames(folder, format_name, *images, name="x", **options):
    path = folder / f"{name}.{format_name.lower()}"
    images[0].save(path, format=format_name, save_all=True, append_images=images[1:], **options)
    return path


def level(given):
    return int(np.asarray(read(given).image)[..., 0].mean().round())


def test_every_form_of_one_picture_gives_the_same_pixels(tmp_path):
    content = saved(GRAY)
    path = tmp_path / "x.png"
    path.write_bytes(content)
    (skipped := io.BytesIO(b"skipped" + content)).seek(7)  # a file object is read from where it is
    with path.open("rb") as file:
        given = [path, str(path), content, bytearray(content), memoryview(content), io.BytesIO(content), file, skipped]
        given += [Image.fromarray(GRAY), Image.open(path), GRAY, np.asfortranarray(GRAY), np.stack([GRAY] * 3, -1)]
        for one in given:
            assert np.array_equal(np.asarray(read(one).image)[..., 0], GRAY)
    assert np.array_equal(np.asarray(read(COLOR).image), COLOR)


(CLOSED := io.BytesIO(saved(GRAY))).close()
NOISE = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (GRAY.astype(np.float32) / 255, "array of float32. Expected 8-bit values"),
        (GRAY.astype(np.uint16), "array of uint16"),
        (GRAY > 100, "array of bool"),
        (COLOR.transpose(2, 0, 1)[:, :1], r"array of shape \(3, 1, 2\)\. Expected \[height, width\]"),
        (np.zeros((2, 2, 4), np.uint8), r"shape \(2, 2, 4\)"),
        (np.zeros((0, 2), np.uint8), r"shape \(0, 2\)"),
        (np.zeros(3, np.uint8), r"shape \(3,\)"),
        (None, "the image is a NoneType"),
        ([1, 2], "the image is a list"),
        (io.StringIO("text"), "gives text. Open the file in binary mode"),
        (io.BytesIO(), "is at its end"),
        (CLOSED, r"cannot be read .*Open it again"),
        (Image.open(io.BytesIO(saved(NOISE)[:2000])), "the image: cannot be decoded"),
    ],
)
def test_what_is_no_picture_is_refused_in_a_sentence(given, said):
    with pytest.raises(DataError, match=said):
        read(given)


def test_what_cannot_be_read_is_found_in_many_files_and_said_in_few_sentences(tmp_path):
    good, dark, black, two = (tmp_path / name for name in ("good.png", "dark.png", "black.png", "IM0"))
    contents = (saved(GRAY), saved(GRAY.astype(np.uint16)), saved(GRAY * 0), dicom(np.stack([GRAY, GRAY]), bits=8))
    for path, content in zip((good, dark, black, two), contents, strict=True):
        path.write_bytes(content)
    assert unreadable([good] * 1000) == []
    assert unreadable([]) == []
    [problem] = unreadable([dark] * 100)
    assert "12 would fit" not in problem
    assert "8 would fit" in problem
    assert unreadable([dark], bits=9) == []
    [problem] = unreadable([good, two, two])
    assert problem.startswith("2 of 3 images are DICOM: ")
    assert "DICOM file of 2 frames" in problem
    assert unreadable([black]) == [f"{black}: the picture has a single color (0, 0, 0)"]
    assert len(unreadable([tmp_path / f"absent{i}.png" for i in range(100)])) == 5


# --- Several frames


@pytest.mark.parametrize("format_name", ["TIFF", "GIF", "PNG", "WEBP"])
def test_one_of_several_frames_is_named_or_the_file_is_refused(tmp_path, format_name):
    options = {"lossless": True} if format_name == "WEBP" else {}
    path = frames(tmp_path, format_name, DARK, LIGHT, DARK, **options)
    for given in (path, path.read_bytes()):
        with pytest.raises(DataError, match="several frames"):
            read(given)
    for frame, expected in ((1, 0), (2, 200), (3, 0)):
        named = path.with_name(f"{path.name}#{frame}")
        found = read(named)
        assert level(named) == expected
        assert found.notes == (f"a named frame is shown (frame {frame})",)
        assert not found.own
    for frame in (0, 4, 1001, 999_999_999):
        with pytest.raises(DataError, match=rf"#{frame}: (has no )?frame {frame}"):
            read(path.with_name(f"{path.name}#{frame}"))


@pytest.mark.parametrize("format_name", ["TIFF", "PNG"])
def test_equal_frames_are_one_picture(tmp_path, format_name):
    path = frames(tmp_path, format_name, LIGHT, LIGHT.copy(), LIGHT.copy())
    assert level(path) == 200
    assert read(path).own


def test_smaller_copies_and_masks_in_a_tiff_are_no_pictures_of_their_own(tmp_path):
    small, mask, picture = LIGHT.resize((3, 2)), DARK.copy(), LIGHT.copy()
    for image, kind in ((small, 1), (mask, 4), (picture, 0)):  # NewSubfileType: 1 is a reduced copy
        image.encoderinfo = {"tiffinfo": {254: kind}}
    assert level(frames(tmp_path, "TIFF", LIGHT, small)) == 200
    path = frames(tmp_path, "TIFF", LIGHT, mask, name="mask")
    assert level(path) == 200
    assert stored(read(path)) is None  # every program shows the first page
    behind = frames(tmp_path, "TIFF", DARK.resize((3, 2)), picture, name="behind", tiffinfo={254: 1})
    assert read(behind).image.size == (6, 4)
    assert level(open_image(stored(read(behind)))) == 200


def test_a_camera_s_jpeg_shows_its_main_picture_and_says_so(tmp_path):
    path = frames(tmp_path, "MPO", LIGHT, DARK)
    assert level(path) == 200
    assert read(path).notes == ("the file holds several pictures: its main one is shown",)
    assert read(path).own


def test_a_file_of_this_very_name_comes_before_a_frame(tmp_path):
    LIGHT.save(tmp_path / "x.png#2", format="PNG")
    DARK.save(tmp_path / "x.png")
    assert (level(tmp_path / "x.png#2"), level(tmp_path / "x.png#1")) == (200, 0)
    with pytest.raises(DataError):
        read(tmp_path / "y.png#1")


def test_more_pixels_than_one_image_may_have_are_not_decoded_to_compare_frames(tmp_path, monkeypatch):
    two, one = frames(tmp_path, "TIFF", LIGHT, LIGHT.copy()), frames(tmp_path, "PNG", LIGHT, name="one")
    # Two frames have 48 pixels; 72 are those of a third one, too.
    for most, path, said in ((47, two, "several frames"), (72, two, None), (24, one, None), (23, one, "too large")):
        monkeypatch.setattr("dualread.limits.IMAGE_PIXELS", most)
        if said is None:
            assert level(path) == 200
        else:
            with pytest.raises(DataError, match=said):
                read(path)


def test_a_picture_in_memory_shows_the_frame_that_it_is_at(tmp_path):
    with Image.open(frames(tmp_path, "TIFF", DARK, LIGHT)) as image:
        image.seek(1)
        assert level(image) == 200
    assert read(Image.open(io.BytesIO(saved(LIGHT)))).notes == ()
