"""An image with hidden patches: of a grid of 12 by 12 cells, a share of `strength`, drawn at random, is black."""

import numpy as np
from PIL import Image

from dualread.models.images.settings import StrengthSettings

_CELLS = 12


class Settings(StrengthSettings):
    """How strongly the image is changed."""


def change(picture: Image.Image, settings: Settings, rng: np.random.Generator) -> Image.Image:
    """Return the picture with black cells; a stronger change hides the same cells and more of them."""
    levels = np.array(picture)
    rows, columns = (np.linspace(0, side, _CELLS + 1).round().astype(int) for side in levels.shape[:2])
    order = rng.permutation(_CELLS**2)
    for cell in order[: round(settings.strength * _CELLS**2)]:
        row, column = divmod(int(cell), _CELLS)
        levels[rows[row] : rows[row + 1], columns[column] : columns[column + 1]] = 0
    return Image.fromarray(levels)
