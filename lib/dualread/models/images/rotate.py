"""A rotated image: by `strength` times 90 degrees, in a direction that is drawn; what comes into view is black."""

import numpy as np
from PIL import Image

from dualread.models.images.settings import StrengthSettings

_MOST_DEGREES = 90


class Settings(StrengthSettings):
    """How strongly the image is changed."""


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the rotated picture, of the same size."""
    direction = 1 if rng.random() < 0.5 else -1
    return picture.rotate(direction * settings.strength * _MOST_DEGREES, resample=Image.Resampling.BILINEAR)
