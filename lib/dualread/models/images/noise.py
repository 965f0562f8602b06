"""A noisy image: Gaussian noise, the same in all colors, whose standard deviation is `strength` times 128 of 255."""

import numpy as np
from PIL import Image

from dualread.declared.base import Settings
from dualread.models.images.base import array_of, picture_of

SETTINGS = {"strength": {"type": "number", "minimum": 0, "maximum": 1}}
_LARGEST = 128


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the picture with noise; a stronger change has more of the same noise."""
    noise = rng.standard_normal((picture.height, picture.width, 1))
    return picture_of(array_of(picture) + settings["strength"] * _LARGEST * noise)
