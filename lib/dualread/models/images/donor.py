"""The images of the question's donor: the same question with another reference answer, which counts here."""

import polars as pl

from dualread.errors import ArtifactError
from dualread.models.images.base import unchanged

NEEDS_PAIRS = True

change = unchanged


def choose(manifest: pl.DataFrame, pairs: pl.DataFrame | None) -> pl.DataFrame:
    """Return the questions that have a donor, each with the image and the reference answers of its donor."""
    assert pairs is not None, "a donor condition needs pairs"
    known = set(manifest["sample_id"])
    if unknown := sorted((set(pairs["sample_id"]) | set(pairs["donor_sample_id"])) - known):
        raise ArtifactError(
            f"pairs.parquet: {len(unknown)} questions are not in the manifest, such as {unknown[0]}. "
            "Expected pairs of this manifest. Pair its donors again."
        )
    of_donor = manifest.select("image_files", "image_id", "reference_answers", donor_sample_id="sample_id")
    other = pairs.select("sample_id", "donor_sample_id").join(of_donor, on="donor_sample_id", validate="m:1")
    return manifest.drop("image_files", "image_id", "reference_answers").join(other, on="sample_id", validate="m:1")
