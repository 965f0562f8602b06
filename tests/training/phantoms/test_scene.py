from dataclasses import replace

import numpy as np
import pytest

from dualread.training.phantoms.scene import MODALITIES, PLANES, REGIONS, Scene, Style, draw, sample_scene

SCENE = Scene(
    modality="ct",
    region="abdomen",
    plane="axial",
    lesion_count=1,
    lesion_size="large",
    lesion_shape="round",
    lesion_color="white",
    lesion_position="upper left",
    noise=0.02,
)


def _draw(scene, seed=0, size=64):
    return draw(scene, np.random.default_rng(seed), size)


def _change(scene, other):
    """Return the mean absolute change of each quadrant: upper left, upper right, lower left, lower right."""
    change = np.abs(_draw(scene).astype(float) - _draw(other).astype(float)).mean(axis=2)
    half = len(change) // 2
    return [
        change[rows, columns].mean()
        for rows in (slice(half), slice(half, None))
        for columns in (slice(half), slice(half, None))
    ]


def test_resolutions_show_the_same_picture():
    smooth = replace(SCENE, noise=0.0)
    coarse = _draw(smooth, size=64)[..., 0].astype(float)
    fine = _draw(smooth, size=127)[::2, ::2, 0].astype(float)  # 127 = 2 * 63 + 1: every second center coincides
    assert np.abs(coarse - fine).max() <= 1


@pytest.mark.parametrize("modality", MODALITIES)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("plane", PLANES)
def test_a_lesion_is_seen_in_its_quadrant_whatever_the_picture(modality, region, plane):
    clear = replace(SCENE, modality=modality, region=region, plane=plane, lesion_count=0, noise=0.0)
    for color in ("white", "black"):
        for quadrant, position in enumerate(("upper left", "upper right", "lower left", "lower right")):
            lesion = replace(clear, lesion_count=1, lesion_color=color, lesion_position=position)
            change = _change(lesion, clear)
            assert int(np.argmax(change)) == quadrant


def test_more_larger_and_stronger_lesions_change_more_pixels():
    clear = replace(SCENE, lesion_count=0, noise=0.0)
    one = replace(clear, lesion_count=1)

    def total(scene):
        return sum(_change(scene, clear))

    assert total(replace(one, lesion_size="small")) < total(one) < total(replace(one, lesion_count=3))
    assert total(replace(one, contrast=0.5)) < total(one)
    assert total(replace(one, contrast=0.0)) == 0


def test_haze_takes_away_what_the_image_shows_and_adds_lumps():
    clear = replace(SCENE, noise=0.0)
    hazy = replace(clear, haze=0.9)

    def shown(scene):
        """By how much the color of a lesion changes its gray level; jitter and lumps are the same."""
        other = replace(scene, lesion_color="black")
        return np.abs(_draw(scene).astype(int) - _draw(other).astype(int)).max()

    assert 0 < shown(hazy) <= 0.11 * shown(clear)  # a tenth, and rounding
    assert shown(replace(hazy, haze=1.0)) == 0
    empty = _draw(replace(hazy, haze=1.0)).astype(float) / 255
    assert 0.2 < empty.std() < 0.27  # 0.25 before gray levels are limited to [0, 1]


def test_hazy_images_have_the_share_of_the_style():
    rng = np.random.default_rng(0)
    hazes = [sample_scene(rng, Style(hazy=0.4)).haze for _ in range(400)]
    assert 121 < sum(haze > 0 for haze in hazes) < 199  # 0.4 * 400 = 160, within four standard deviations of 9.8
    assert len(set(hazes)) == 2
    assert all(sample_scene(rng, Style(hazy=0.0)).haze == 0 for _ in range(50))


def test_a_share_of_the_style_does_not_change_other_draws():
    """Two styles that differ in one share use the same sequence of random numbers."""
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    sample_scene(first)
    sample_scene(second, Style(faint=1.0, modalities={"mri": 1.0}))
    assert first.random() == second.random()
