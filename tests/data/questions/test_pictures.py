import io
import weakref

import pytest
from PIL import Image

from dualread.data import given_images
from dualread.data.questions import pictures
from dualread.data.questions.pictures import SIDE, Pictures, thumbnail
from tests.data.questions.test_build import _row


def _picture(value, format_name="PNG"):
    buffer = io.BytesIO()
    Image.new("L", (4, 4), value).save(buffer, format=format_name)
    return buffer.getvalue()


def row_of(image, name="i1"):
    return _row(0, name=name, image=image)


def test_a_broken_image_has_a_reason_and_is_identified_by_its_name(tmp_path):
    found = Pictures()
    assert found.identity(row_of(b"no image", "i7")) == "i7"
    assert found.identity(row_of(tmp_path / "absent.png", "i8")) == "i8"
    assert found.files == {}
    assert found.broken[b"no image"].startswith("an image of 8 bytes: cannot be decoded")
    assert f"{tmp_path / 'absent.png'}: no such image file" in found.broken[tmp_path / "absent.png"]


@pytest.mark.parametrize("last", [_picture(1), b"no image"])
def test_images_are_decoded_once_each_and_not_held(monkeypatch, last):
    opened = []

    def once(source, **how):
        assert not any(earlier() for earlier in opened)
        found = given_images.read(source)
        opened.append(weakref.ref(found.image))
        return found

    monkeypatch.setattr(pictures, "read", once)
    found = Pictures()
    for image in (_picture(1), _picture(2), _picture(3), last):
        found.identity(row_of(image))
    assert len(opened) == 3


def test_a_thumbnail_is_gray_and_square():
    halves = Image.new("RGB", (200, 100))
    halves.paste((255, 0, 0), (100, 0, 200, 100))
    levels = thumbnail(halves)
    assert len(levels) == SIDE**2
    assert (levels[0], levels[SIDE - 1], levels[-1]) == (0, 76, 76)  # .299 * 255 = 76.2
