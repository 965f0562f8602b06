"""What every image change keeps to, and what each of them does to a picture, counted by hand."""

import pickle
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dualread import plugins
from dualread.models.conditions import asked
from dualread.models.images import base
from dualread.models.images.base import ChangedImage, changes_of, rows_shown, shown_images, unchanged
from dualread.schema.base import settings_class
from dualread.seeding import generator
from tests.specs import image
from tests.stages import shards

NAMES = plugins.known("images")
STRONG = [name for name in NAMES if "strength" in settings_class("images", name).model_fields]
CHANGING = [name for name in NAMES if plugins.load("images", name).change is not unchanged and name != "none"]


def picture(width: int = 48, height: int = 36) -> Image.Image:
    levels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(levels)


def changed(name: str, strength: float | None = None, *, of: Image.Image | None = None, seed: int = 0) -> np.ndarray:
    settings = settings_class("images", name).from_spec({} if strength is None else {"strength": strength}, "settings")
    rng = generator("test", seed)
    return np.asarray(plugins.load("images", name).change(of or picture(), settings, rng))


@pytest.mark.parametrize("name", CHANGING)
def test_a_change_gives_a_picture_that_its_seed_decides(name):
    strength = 1.0 if name in STRONG else None
    first, again = changed(name, strength), changed(name, strength)
    assert first.dtype == np.uint8
    assert first.shape[2] == 3
    assert np.array_equal(first, again)
    assert not np.array_equal(first, np.asarray(picture()))


@pytest.mark.parametrize("name", STRONG)
def test_strength_0_is_the_picture_as_it_is_and_more_strength_changes_more(name):
    before = np.asarray(picture())
    assert np.array_equal(changed(name, 0.0), before)
    if name == "crop":
        sizes = [changed(name, strength).size for strength in (0.0, 0.3, 0.6, 1.0)]
        assert sizes == sorted(sizes, reverse=True)
        return
    smooth = np.asarray(picture().resize((6, 5)).resize((48, 36), Image.Resampling.BICUBIC))
    differences = [
        np.abs(changed(name, strength, of=Image.fromarray(smooth)).astype(int) - smooth).mean()
        for strength in (0.1, 0.4, 1.0)
    ]
    assert differences == sorted(differences)
    assert differences[0] < differences[-1]


def test_black_and_gray_have_one_level():
    assert changed("black").max() == 0
    assert (changed("gray") == 128).all()
    assert changed("gray").shape == (36, 48, 3)


def test_a_share_of_the_cells_is_hidden_and_the_same_ones_first():
    white = Image.new("RGB", (48, 36), "white")  # 12 x 12 cells of 4 x 3 pixels
    for strength, cells in ((0.25, 36), (0.5, 72), (1.0, 144)):
        assert (changed("hidden_patches", strength, of=white)[:, :, 0] == 0).sum() == cells * 12
    weak, strong = (changed("hidden_patches", strength, of=white) == 0 for strength in (0.25, 0.5))
    assert (strong | ~weak).all()


def test_noise_has_the_deviation_of_its_strength():
    middle = Image.new("RGB", (300, 200), (128, 128, 128))
    found = changed("noise", 0.125, of=middle).astype(float)  # .125 * 128 = 16 levels
    assert found.std() == pytest.approx(16, rel=0.02)
    assert np.array_equal(found[:, :, 0], found[:, :, 1])


def test_a_part_has_a_quarter_of_each_side_at_strength_1():
    assert changed("crop", 1.0).shape == (9, 12, 3)
    assert changed("crop", 0.5).shape == (round(36 * 0.625), 30, 3)  # 1 - .75 / 2 = .625 of each side
    places = {changed("crop", 1.0, seed=seed).tobytes() for seed in range(8)}
    assert len(places) > 4


def test_a_rotation_by_90_degrees_turns_the_picture():
    square = picture(20, 20)
    turned = changed("rotate", 1.0, of=square)
    assert any(np.array_equal(turned, np.rot90(np.asarray(square), k)) for k in (1, -1))


def test_a_blur_keeps_the_mean_and_lowers_the_deviation():
    before, after = np.asarray(picture()).astype(float), changed("blur", 1.0).astype(float)
    assert after.mean() == pytest.approx(before.mean(), abs=4)
    assert after.std() < before.std() / 3


def test_draws_differ_and_content_alone_decides_them():
    change = changes_of([image("noise", strength=0.5)])

    def drawn(content: str, draw: int) -> bytes:
        return ChangedImage(source=picture(), content=content, changes=change, draw=draw)().tobytes()

    assert drawn("a", 0) == drawn("a", 0)
    assert len({drawn("a", 0), drawn("a", 1), drawn("b", 0)}) == 3


def test_a_picture_can_go_to_another_process_before_it_is_made(tmp_path):
    picture().save(tmp_path / "x.png")
    one = ChangedImage(source=tmp_path / "x.png", content="x", changes=changes_of([image("blur", strength=1)]))
    assert pickle.loads(pickle.dumps(one))().tobytes() == one().tobytes()


def test_draws_of_a_file_open_it_once_and_none_sees_what_another_drew(tmp_path, monkeypatch):
    Image.new("RGB", (4, 4), (10, 10, 10)).save(tmp_path / "image.png")
    opened = []
    monkeypatch.setattr(base, "open_image", lambda file: opened.append(file) or Image.open(file).convert("RGB"))
    monkeypatch.setattr(plugins, "load_module", lambda name: SimpleNamespace(change=brighter_in_place))
    shown = [ChangedImage(source=tmp_path / "image.png", content="a", changes=(("m", "{}"),), draw=k) for k in range(3)]
    assert [picture().getpixel((0, 0)) for picture in shown] == [(11, 10, 10)] * 3
    assert len(opened) == 1


def brighter_in_place(picture, settings, rng):
    picture.putpixel((0, 0), (picture.getpixel((0, 0))[0] + 1, 10, 10))
    return picture


def test_changes_follow_each_other():
    chain = changes_of([image("original"), image("crop", strength=1.0), image("gray")])
    _, [shown] = shown_images([picture()], ["x"], [], chain, 0)
    assert shown().size == (12, 9)
    assert shown().getextrema() == ((128, 128),) * 3


def test_no_image_is_shown_whatever_else_is_done():
    chain = changes_of([image("blur", strength=1.0), image("none")])
    assert shown_images([picture()], ["x"], [], chain, 0) == ("no image", ())


def test_the_last_choice_of_an_image_decides_and_keeps_its_reference_answers():
    manifest = pl.DataFrame(shards.manifest_rows(3, split="test", roles=("test",)))
    pairs = pl.DataFrame({"sample_id": ["slake/test/0000"], "donor_sample_id": ["slake/test/0002"]})
    (row,) = rows_shown(manifest, [image("donor"), image("blur", strength=0.5)], pairs).to_dicts()
    donor = manifest.row(2, named=True)
    assert {name: row[name] for name in ("image_id", "image_files", "reference_answers")} == {
        name: donor[name] for name in ("image_id", "image_files", "reference_answers")
    }
    assert row["question"] == manifest["question"][0]


def test_each_draw_is_a_question_of_its_own():
    manifest = pl.DataFrame(shards.manifest_rows(2, split="test", roles=("test",)))
    found = list(asked(manifest, prompt="shared", images=[image("distort", strength=1)], draws=3))
    assert [(q.sample_id[-1], q.draw, q.name) for q in found[:4]] == [
        ("0", 0, "slake/test/0000"),
        ("0", 1, "slake/test/0000 draw 1"),
        ("0", 2, "slake/test/0000 draw 2"),
        ("1", 0, "slake/test/0001"),
    ]
