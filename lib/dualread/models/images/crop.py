"""A part of the image, at a place that is drawn: of each side, `strength` times 75% is cut off."""

import numpy as np
from PIL import Image

from dualread.models.images.settings import StrengthSettings

_MOST = 0.75


class Settings(StrengthSettings):
    """How strongly the image is changed."""


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the part as a smaller picture."""
    places = rng.random(2)
    kept = [max(1, round(side * (1 - _MOST * settings.strength))) for side in picture.size]
    x, top = (int(place * (side - part + 1)) for place, side, part in zip(places, picture.size, kept, strict=True))
    return picture.crop((x, top, x + kept[0], top + kept[1]))
