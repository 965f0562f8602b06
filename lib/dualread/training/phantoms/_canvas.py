"""A gray canvas on which soft-edged ellipses are painted."""

from dataclasses import dataclass

import numpy as np
from PIL import Image


@dataclass(kw_only=True)
class Canvas:
    """A square gray picture, and the coordinates of its pixels.

    Coordinates run from 0 to 63 whatever the number of pixels, so that a scene looks the same at every resolution.

    Attributes:
        gray: float64 [size, size]; 0 is black and 1 is white. Values outside [0, 1] are allowed while painting.
        x, y: float64 [size, size], the coordinates of the center of each pixel, to the right and down.
    """

    gray: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @classmethod
    def blank(cls, size: int) -> "Canvas":
        """Return a black canvas of `size` x `size` pixels."""
        y, x = np.mgrid[0:size, 0:size] * (63 / (size - 1))
        return cls(gray=np.zeros((size, size)), x=x, y=y)

    def ellipse(self, x: float, y: float, a: float, b: float, angle: float = 0.0) -> np.ndarray:
        """Return each pixel's squared distance from (x, y) in units of the half axes `a` and `b`.

        It is 0 at the center and 1 on the ellipse. The half axis `a` points right; `angle` turns it down, in radians.
        """
        cos, sin = np.cos(angle), np.sin(angle)
        along = (self.x - x) * cos + (self.y - y) * sin
        across = (self.y - y) * cos - (self.x - x) * sin
        return (along / a) ** 2 + (across / b) ** 2

    @staticmethod
    def inside(distance: np.ndarray, sharpness: float) -> np.ndarray:
        """Return how much of each pixel lies inside a shape, from 0 to 1, with a soft edge where `distance` is 1."""
        return 1 / (1 + np.exp(np.clip(sharpness * (distance - 1), -30, 30)))

    def lumps(self, rng: np.random.Generator) -> np.ndarray:
        """Return a smooth random field [size, size] with standard deviation 1, whose lumps are a twelfth of it wide.

        References:
            Rolland and Barrett, "Effect of random background inhomogeneity on observer detection performance", JOSA A
            9(5), 649-658 (1992), for lumpy backgrounds in studies of how well something is seen.
        """
        coarse = Image.fromarray(rng.normal(0, 1, (12, 12)).astype(np.float32))
        lumps = np.asarray(coarse.resize(self.gray.shape, Image.Resampling.BICUBIC), dtype=np.float64)
        return lumps / lumps.std()

    def paint(self, distance: np.ndarray, gray: float, opacity: float = 1.0) -> None:
        """Paint the inside of a shape in the gray level `gray`."""
        weight = opacity * self.inside(distance, 10)
        self.gray[...] = self.gray * (1 - weight) + gray * weight
