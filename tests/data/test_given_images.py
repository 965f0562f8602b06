import io

import numpy as np
import pytest
from PIL import Image

from dualread.data.given_images import read, unreadable
from dualread.errors import DataError
from tests.data.dicoms import dicom

GRAY = np.array([[10, 60], [120, 250]], dtype=np.uint8)
COLOR = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20


def _png(values=GRAY):
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    return file.getvalue()


def test_every_form_of_one_picture_gives_the_same_pixels(tmp_path):
    content = _png()
    path = tmp_path / "x.png"
    path.write_bytes(content)
    with path.open("rb") as file:
        given = [path, str(path), content, bytearray(content), memoryview(content), io.BytesIO(content), file]
        given += [Image.fromarray(GRAY), Image.open(path), GRAY, np.asfortranarray(GRAY), np.stack([GRAY] * 3, -1)]
        for one in given:
            assert np.array_equal(np.asarray(read(one).image)[..., 0], GRAY)
    assert np.array_equal(np.asarray(read(COLOR).image), COLOR)


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
        (3, "the image is a int"),
        ([1, 2], "the image is a list"),
        (io.StringIO("text"), "gives text. Open the file in binary mode"),
        (io.BytesIO(), "is at its end"),
    ],
)
def test_what_is_no_picture_is_refused_in_a_sentence(given, said):
    with pytest.raises(DataError, match=said):
        read(given)


def test_a_closed_file_object_and_a_truncated_picture_in_memory(tmp_path):
    file = io.BytesIO(_png())
    file.close()
    with pytest.raises(DataError, match=r"cannot be read .*Open it again"):
        read(file)
    lazy = Image.open(io.BytesIO(_png(np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8))[:2000]))
    with pytest.raises(DataError, match="the image: cannot be decoded"):
        read(lazy)


def test_what_cannot_be_read_is_found_in_many_files_and_said_in_few_sentences(tmp_path):
    good, dark = tmp_path / "good.png", tmp_path / "dark.png"
    good.write_bytes(_png())
    dark.write_bytes(_png(GRAY.astype(np.uint16)))
    assert unreadable([good] * 1000) == []
    assert unreadable([]) == []
    [problem] = unreadable([dark] * 100)
    assert "12 would fit" not in problem
    assert "8 would fit" in problem
    assert unreadable([dark], bits=9) == []
    frames = tmp_path / "IM0"
    frames.write_bytes(dicom(np.stack([GRAY, GRAY]), bits=8))
    [problem] = unreadable([good, frames, frames])
    assert problem.startswith("2 of 3 images are DICOM: ")
    assert "DICOM file of 2 frames" in problem
    black = tmp_path / "black.png"
    black.write_bytes(_png(GRAY * 0))
    assert unreadable([black]) == [f"{black}: the picture has a single color (0, 0, 0)"]
    assert len(unreadable([tmp_path / f"absent{i}.png" for i in range(100)])) == 5


def test_a_file_object_is_read_from_where_it_is():
    file = io.BytesIO(b"skipped" + _png())
    file.seek(7)
    assert np.array_equal(np.asarray(read(file).image)[..., 0], GRAY)
