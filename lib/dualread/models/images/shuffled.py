"""Another image of the split, the same for all questions about an image; the question's own reference answers count.

Images are put in the order of sha256(image_id), and each is replaced by the next one of another patient; the last one
is followed by the first. Several images that are shown together count as one, and as many are shown in their place.
"""

import hashlib

import polars as pl

from dualread.errors import ArtifactError
from dualread.models.images.base import unchanged

change = unchanged


def choose(manifest: pl.DataFrame, pairs: pl.DataFrame | None) -> pl.DataFrame:
    """Return all questions, each with another image."""
    shown = ("image_files", "image_roles", "cluster_id")
    images = manifest.group_by("image_id").agg(pl.col(shown).first()).to_dicts()
    images.sort(key=lambda image: hashlib.sha256(image["image_id"].encode()).hexdigest())
    successors = []
    for i, image in enumerate(images):
        following = (images[(i + k) % len(images)] for k in range(1, len(images)))
        of_others = (other for other in following if other["cluster_id"] != image["cluster_id"])
        kind = len(image["image_files"]), image["image_roles"]
        alike = (other for other in of_others if (len(other["image_files"]), other["image_roles"]) == kind)
        if (other := next(alike, None)) is None:
            raise ArtifactError(
                f"shuffled images: the split has no other image, of another patient, to show in place of"
                f" {image['image_id']}. It has {len(images)} in all, expected another one for each. Leave the condition"
                " with shuffled images out, or use a split with more images."
            )
        instead = {"shown_files": other["image_files"], "shown_id": other["image_id"]}
        successors.append({"image_id": image["image_id"], **instead})
    rows = manifest.join(pl.DataFrame(successors), on="image_id", validate="m:1")
    return rows.with_columns(image_files="shown_files", image_id="shown_id").drop("shown_files", "shown_id")
