"""No image: the prompt is the text alone."""

from dualread.models.images.base import unchanged

NO_IMAGE = True


def change(picture, settings, rng):
    """Return the picture, which nobody sees: no image is shown."""
    return unchanged(picture, settings, rng)
