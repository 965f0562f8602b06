"""Pictures with shapes and texture, and copies of them."""

import functools
import io

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter


@functools.cache
def picture(seed, width=300, height=260):
    """Return a gray RGB picture of smooth shapes with a fine texture; another seed gives another picture."""
    random = np.random.default_rng(seed)
    shapes = gaussian_filter(random.normal(size=(height, width)), 25) * 60
    texture = gaussian_filter(random.normal(size=(height, width)), 1.5) * 2
    gray = 128 + 60 * np.tanh(shapes) + 10 * texture
    return Image.fromarray(np.clip(gray, 0, 255).astype(np.uint8)).convert("RGB")


def jpeg(image, quality=75):
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=quality)
    return Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")


def half(image):
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.BICUBIC)


COPIES = {
    "encoded again": jpeg,
    "half the size": half,
    "half the size, encoded again": lambda image: jpeg(half(image)),
    "cropped by a pixel": lambda image: image.crop((1, 1, image.width, image.height)),
    "a little brighter": lambda image: image.point(lambda value: min(255, round(1.05 * value + 4))),
    "a model's input": lambda image: image.resize((224, 224), Image.Resampling.BILINEAR),
}
