"""A mildly distorted image, as a photograph of a screen would be: what it shows should stay recognizable.

At strength 1 it is rotated by 2 to 10 degrees in either direction, shifted by up to 10% of each side, scaled by up to
10%, its brightness and its contrast are changed by up to 10%, and it gets Gaussian noise with a standard deviation of 5
of 255. All of these are `strength` times as large otherwise. What comes into view is black.

References:
    Liao et al., Vision-Amplified Semantic Entropy for Hallucination Detection in Medical Visual Question Answering,
    MICCAI 2025, which samples answers on such images. The ranges of rotation, shift and scale are those of medvlm; the
    others are ours.
"""

import numpy as np
from PIL import Image, ImageEnhance

from dualread.models.images.base import array_of, picture_of
from dualread.models.images.settings import StrengthSettings

_DEGREES, _SHARE, _LEVELS = (2.0, 10.0), 0.1, 5.0


class Settings(StrengthSettings):
    """How strongly the image is changed."""


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the distorted picture, of the same size."""
    strength = settings.strength
    angle = rng.uniform(*_DEGREES) * rng.choice((-1, 1)) * strength
    across, down, larger, brighter, sharper = rng.uniform(-_SHARE, _SHARE, 5) * strength
    noise = rng.standard_normal((picture.height, picture.width, 1)) * _LEVELS * strength
    moved = picture.rotate(
        angle,
        resample=Image.Resampling.BILINEAR,
        translate=(round(across * picture.width), round(down * picture.height)),
    )
    width, height = moved.size  # magnified around its center
    corner = [side * (1 - 1 / (1 + larger)) / 2 for side in (width, height)]
    matrix = (1 / (1 + larger), 0.0, corner[0], 0.0, 1 / (1 + larger), corner[1])
    scaled = moved.transform(moved.size, Image.Transform.AFFINE, matrix, resample=Image.Resampling.BILINEAR)
    toned = ImageEnhance.Contrast(ImageEnhance.Brightness(scaled).enhance(1 + brighter)).enhance(1 + sharper)
    return picture_of(array_of(toned) + noise)
