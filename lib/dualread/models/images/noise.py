"""A noisy image: Gaussian noise, the same in all colors, whose standard deviation is `strength` times 128 of 255."""

import numpy as np
from PIL import Image

from dualread.models.images.base import array_of, picture_of
from dualread.models.images.settings import StrengthSettings

_LARGEST = 128


class Settings(StrengthSettings):
    """How strongly the image is changed."""


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the picture with noise; a stronger change has more of the same noise."""
    noise = rng.standard_normal((picture.height, picture.width, 1))
    return picture_of(array_of(picture) + settings.strength * _LARGEST * noise)
