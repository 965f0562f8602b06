"""Another image of the split, the same for all questions about an image; the question's own reference answers count.

Images are put in the order of sha256(image_id), and each is replaced by the one that follows it; the last one is
followed by the first. So no image is its own successor, and each is shown for the questions about its predecessor.
"""

import hashlib

import polars as pl

from dualread.errors import ArtifactError
from dualread.models.images.base import unchanged

change = unchanged


def choose(manifest: pl.DataFrame, pairs: pl.DataFrame | None) -> pl.DataFrame:
    """Return all questions, each with another image.

    Raises:
        ArtifactError: The split has no other image to show.
    """
    images = manifest.group_by("image_id").agg(pl.col("image_file").min()).to_dicts()
    if len(images) < 2:
        raise ArtifactError(
            f"shuffled images: the split has {len(images)} image(s), expected at least two. Leave the condition with"
            " shuffled images out, or use a split with more images."
        )
    images.sort(key=lambda image: hashlib.sha256(image["image_id"].encode()).hexdigest())
    successors = pl.DataFrame(
        [
            {"image_id": image["image_id"], "shown_file": other["image_file"], "shown_id": other["image_id"]}
            for image, other in zip(images, [*images[1:], images[0]], strict=True)
        ]
    )
    rows = manifest.join(successors, on="image_id", validate="m:1")
    return rows.with_columns(image_file="shown_file", image_id="shown_id").drop("shown_file", "shown_id")
