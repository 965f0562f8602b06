"""A rotated image: by `strength` times 90 degrees, in a direction that is drawn; what comes into view is black."""

import numpy as np
from PIL import Image

from dualread.declared.base import Settings

SETTINGS = {"strength": {"type": "number", "minimum": 0, "maximum": 1}}
_MOST_DEGREES = 90


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the rotated picture, of the same size."""
    direction = 1 if rng.random() < 0.5 else -1
    return picture.rotate(direction * settings["strength"] * _MOST_DEGREES, resample=Image.Resampling.BILINEAR)
