import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps
from scipy.fft import dct

from dualread.data.images import open_image
from dualread.data.questions.copies import MOST_DIFFERENCE, MOST_DISTANCE, blurred, copies, difference, hashes
from dualread.data.questions.pictures import SIDE, thumbnail
from tests.data.questions.looks import COPIES, picture

SHARED = Path(os.environ.get("DUALREAD_SHARED", Path(__file__).resolve().parents[3] / ".." / "shared")) / "data"


def _thumbnails(*images):
    return np.stack([np.frombuffer(thumbnail(image), np.uint8).reshape(SIDE, SIDE) for image in images])


def _compare(one, other):
    pair = _thumbnails(one, other)
    looks = blurred(pair)
    return int((hashes(pair)[0] != hashes(pair)[1]).sum()), float(difference(looks[:1], looks[1:])[0])


def test_the_hash_is_that_of_its_definition():
    thumbnails = _thumbnails(picture(0), picture(1))
    for bits, thumb in zip(hashes(thumbnails), thumbnails.astype(float), strict=True):
        low = dct(dct(thumb, axis=0, norm="ortho"), axis=1, norm="ortho")[:8, :8].ravel()
        assert np.array_equal(bits, low > np.median(low[1:]))


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_is_close(kind):
    for seed in range(3):
        distance, value = _compare(picture(seed), COPIES[kind](picture(seed)))
        assert distance <= MOST_DISTANCE
        assert value <= MOST_DIFFERENCE


@pytest.mark.parametrize("limit", ["MOST_DISTANCE", "MOST_DIFFERENCE"])
def test_a_pair_at_the_limit_is_a_copy_and_one_beyond_it_is_none(monkeypatch, limit):
    pair = _thumbnails(picture(0), COPIES["cropped by a pixel"](picture(0)))
    [(*_, distance, value)] = copies(pair, np.arange(2))
    apart = {"MOST_DISTANCE": distance, "MOST_DIFFERENCE": value}[limit]
    assert apart > 0
    monkeypatch.setattr(f"dualread.data.questions.copies.{limit}", apart)
    assert len(list(copies(pair, np.arange(2)))) == 1
    monkeypatch.setattr(f"dualread.data.questions.copies.{limit}", np.nextafter(apart, 0))
    assert list(copies(pair, np.arange(2))) == []


def test_a_neighbouring_slice_is_not_a_copy():
    # Mixed with a tenth of another picture: the hash hardly changes, the picture does.
    for seed in range(3):
        slice_ = Image.blend(picture(seed), picture(seed + 100), 0.1)
        distance, value = _compare(picture(seed), slice_)
        assert distance <= MOST_DISTANCE
        assert value > MOST_DIFFERENCE


def test_the_difference_of_a_picture_to_itself_is_zero_and_symmetric():
    looks = blurred(_thumbnails(picture(0), picture(1), Image.new("RGB", (9, 9)), Image.new("RGB", (9, 9), (7, 7, 7))))
    assert difference(looks, looks).tolist() == [0, 0, 0, 0]
    assert np.allclose(difference(looks, looks[::-1]), difference(looks[::-1], looks), atol=1e-6)
    # Two flat pictures differ by a constant, which counts as brightness.
    assert difference(looks[2:3], looks[3:]).tolist() == [0]


def test_a_difference_by_hand():
    y, x = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE), indexing="ij")
    bowl = 100 * (x**2 + y**2)
    # A bowl plus a slope is the bowl moved; times a factor plus a constant it is brighter; wider in x it is stretched.
    others = [bowl + 3 * x - 2 * y, 1.1 * bowl + 5, 100 * (1.05 * x**2 + y**2), bowl + 5 * x * y]
    found = difference(np.stack([bowl] * 4).astype(np.float32), np.stack(others).astype(np.float32))
    assert np.allclose(found[:3], 0, atol=1e-4)
    # Twisted, it is another picture: xy is orthogonal to x^2, y^2, x and y. Over [-a, a]^2 the mean square of xy is
    # a^4 / 9 and the variance of x^2 + y^2 is 2 a^4 (1/5 - 1/9), so the ratio is (5 / 3) / (100 sqrt(8 / 45)) = .0395.
    assert found[3] == pytest.approx(0.0395, rel=0.03)


@pytest.mark.parametrize("mirrored", [False, True])
def test_equals_a_comparison_of_every_two_pictures(monkeypatch, mirrored):
    # 34 pictures, seven of them alike, with copies that were changed at random, and flat ones; blocks of five.
    random = np.random.default_rng(0)
    images = [picture(seed) for seed in range(28)]
    images += [Image.blend(picture(0), picture(seed), 0.04) for seed in range(100, 106)]
    images += [random.choice(list(COPIES.values()))(image) for image in images]
    images += [Image.new("RGB", (9, 9), (level, level, level)) for level in (0, 0, 200)]
    thumbnails, places = _thumbnails(*images), random.integers(0, 3, len(images))
    thumbnails[34:51] = thumbnails[34:51, :, ::-1]
    monkeypatch.setattr("dualread.data.questions.copies._BLOCK", 5)
    found = {(i, j): (distance, value) for i, j, distance, value in copies(thumbnails, places, mirrored=mirrored)}
    others = thumbnails[:, :, ::-1] if mirrored else thumbnails
    bits, of_others, looks, shown = hashes(thumbnails), hashes(others), blurred(thumbnails), blurred(others)
    expected = {}
    for i in range(len(images)):
        for j in range(i + 1, len(images)):
            distance = int((bits[i] != of_others[j]).sum())
            if places[i] != places[j] and distance <= MOST_DISTANCE:
                value = float(difference(looks[i : i + 1], shown[j : j + 1])[0])
                if value <= MOST_DIFFERENCE:
                    expected[i, j] = (distance, pytest.approx(value, abs=1e-6))
    assert found == expected
    assert len(expected) > 10


def _real_images():
    for split in ("train", "validate", "test"):
        rows = json.loads((SHARED / "slake" / f"{split}.json").read_text(encoding="utf-8"))
        yield from (SHARED / "slake/imgs" / name for name in {r["img_name"]: r for r in rows if r["q_lang"] == "en"})
    yield from sorted((SHARED / "vqa_med_2019/VQAMed2019_Test_Images").iterdir())


@pytest.mark.skipif(
    not (SHARED / "slake").is_dir() or not (SHARED / "vqa_med_2019").is_dir(),
    reason="the real SLAKE and VQA-Med 2019 are not on this machine (DUALREAD_SHARED)",
)
def test_real_images_are_no_copies_of_each_other_and_their_copies_are_found():
    images = [open_image(path) for path in [*_real_images()][::12]]
    made = [COPIES["half the size, encoded again"](image) for image in images]
    made += [COPIES["cropped by a pixel"](image) for image in images]
    thumbnails, n = _thumbnails(*images, *made), len(images)
    found = {(i, j) for i, j, *_ in copies(thumbnails, np.arange(len(thumbnails)))}
    mirrored = _thumbnails(*images, *(ImageOps.mirror(image) for image in made[:n]))
    assert {(i, j) for i, j, *_ in copies(mirrored, np.arange(2 * n), mirrored=True)} == {(i, i + n) for i in range(n)}
    assert len(images) == 96
    assert found == {(i, j) for i in range(3 * n) for j in range(i + 1, 3 * n) if i % n == j % n}
