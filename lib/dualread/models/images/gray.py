"""A gray image, of level 128 of 255 everywhere, of the size of the image that it replaces."""

import numpy as np
from PIL import Image

from dualread.schema.base import Section

ONE_PER_SIZE = True


def change(picture: Image.Image, settings: Section, rng: np.random.Generator) -> Image.Image:
    """Return a gray picture of the same size."""
    return Image.new("RGB", picture.size, (128, 128, 128))
