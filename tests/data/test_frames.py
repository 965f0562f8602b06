import io

import numpy as np
import pytest
from PIL import Image

from dualread.data.given_images import read, stored
from dualread.data.images import open_image
from dualread.errors import DataError

LIGHT, DARK = Image.new("L", (6, 4), 200), Image.new("L", (6, 4), 0)


def shown(given):
    return read(given).image


def _saved(folder, format_name, frames, name="x", **options):
    path = folder / f"{name}.{format_name.lower()}"
    frames[0].save(path, format=format_name, save_all=True, append_images=frames[1:], **options)
    return path


def _level(image):
    return int(np.asarray(image)[..., 0].mean().round())


@pytest.mark.parametrize("format_name", ["TIFF", "GIF", "PNG", "WEBP"])
def test_one_of_several_frames_is_named_or_the_file_is_refused(tmp_path, format_name):
    options = {"lossless": True} if format_name == "WEBP" else {}
    path = _saved(tmp_path, format_name, [DARK, LIGHT, DARK], **options)
    with pytest.raises(DataError, match="several frames"):
        shown(path)
    with pytest.raises(DataError, match="several frames"):
        shown(path.read_bytes())
    for frame, level in ((1, 0), (2, 200), (3, 0)):
        found = read(path.with_name(f"{path.name}#{frame}"))
        assert _level(found.image) == level
        assert found.notes == (f"a named frame is shown (frame {frame})",)
        assert not found.own
    for frame in (0, 4, 1001, 999_999_999):
        with pytest.raises(DataError, match=rf"#{frame}: (has no )?frame {frame}"):
            shown(path.with_name(f"{path.name}#{frame}"))


@pytest.mark.parametrize("format_name", ["TIFF", "PNG"])
def test_equal_frames_are_one_picture(tmp_path, format_name):
    path = _saved(tmp_path, format_name, [LIGHT, LIGHT.copy(), LIGHT.copy()])
    assert _level(shown(path)) == 200
    assert read(path).own


def test_smaller_copies_and_masks_in_a_tiff_are_no_pictures_of_their_own(tmp_path):
    small = LIGHT.resize((3, 2))
    small.encoderinfo = {"tiffinfo": {254: 1}}  # NewSubfileType: a reduced copy
    assert _level(shown(_saved(tmp_path, "TIFF", [LIGHT, small]))) == 200
    mask = DARK.copy()
    mask.encoderinfo = {"tiffinfo": {254: 4}}
    path = _saved(tmp_path, "TIFF", [LIGHT, mask], name="mask")
    assert _level(shown(path)) == 200
    assert stored(read(path)) is None  # every program shows the first page
    picture = LIGHT.copy()
    picture.encoderinfo = {"tiffinfo": {254: 0}}
    first = DARK.resize((3, 2))
    behind = _saved(tmp_path, "TIFF", [first, picture], name="behind", tiffinfo={254: 1})
    assert read(behind).image.size == (6, 4)
    assert _level(open_image(stored(read(behind)))) == 200


def test_a_camera_s_jpeg_shows_its_main_picture_and_says_so(tmp_path):
    found = read(_saved(tmp_path, "MPO", [LIGHT, DARK]))
    assert _level(found.image) == 200
    assert found.notes == ("the file holds several pictures: its main one is shown",)
    assert found.own


def test_a_file_of_this_very_name_comes_before_a_frame(tmp_path):
    LIGHT.save(tmp_path / "x.png#2", format="PNG")
    DARK.save(tmp_path / "x.png")
    assert _level(shown(tmp_path / "x.png#2")) == 200
    assert _level(shown(tmp_path / "x.png#1")) == 0
    with pytest.raises(DataError):
        shown(tmp_path / "y.png#1")


def test_more_pixels_than_one_image_may_have_are_not_decoded_to_compare_frames(tmp_path, monkeypatch):
    monkeypatch.setattr("dualread.limits.IMAGE_PIXELS", 47)  # two frames have 48
    path = _saved(tmp_path, "TIFF", [LIGHT, LIGHT.copy()])
    with pytest.raises(DataError, match="several frames"):
        shown(path)
    monkeypatch.setattr("dualread.limits.IMAGE_PIXELS", 72)  # those of a third frame, too
    assert _level(shown(path)) == 200
    LIGHT.copy().save(tmp_path / "one.png")
    for most in (24, 23):
        monkeypatch.setattr("dualread.limits.IMAGE_PIXELS", most)
        if most == 24:
            assert _level(shown(tmp_path / "one.png")) == 200
        else:
            with pytest.raises(DataError, match="too large"):
                shown(tmp_path / "one.png")


def test_a_picture_in_memory_shows_the_frame_that_it_is_at(tmp_path):
    with Image.open(_saved(tmp_path, "TIFF", [DARK, LIGHT])) as image:
        image.seek(1)
        assert _level(read(image).image) == 200
    assert read(Image.open(io.BytesIO(_saved(tmp_path, "PNG", [LIGHT]).read_bytes()))).notes == ()
