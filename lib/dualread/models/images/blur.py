"""A blurred image: a Gaussian blur whose standard deviation is `strength` times 5% of the shorter side."""

import numpy as np
from PIL import Image, ImageFilter

from dualread.declared.base import Settings

SETTINGS = {"strength": {"type": "number", "minimum": 0, "maximum": 1}}
_OF_SHORTER_SIDE = 0.05


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the blurred picture."""
    deviation = settings["strength"] * _OF_SHORTER_SIDE * min(picture.size)
    return picture.filter(ImageFilter.GaussianBlur(deviation))
