"""A blurred image: a Gaussian blur whose standard deviation is `strength` times 5% of the shorter side."""

import numpy as np
from PIL import Image, ImageFilter

from dualread.models.images.settings import StrengthSettings

_OF_SHORTER_SIDE = 0.05


class Settings(StrengthSettings):
    """How strongly the image is changed."""


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the blurred picture."""
    deviation = settings.strength * _OF_SHORTER_SIDE * min(picture.size)
    return picture.filter(ImageFilter.GaussianBlur(deviation))
