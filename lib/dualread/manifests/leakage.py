"""No image may be fitted on and reported on: count, by pixels, the images that two roles share."""

from itertools import combinations_with_replacement

import polars as pl

from dualread.errors import DataError
from dualread.manifests.partition import ROLES

# Sharing an image between two of these is reported, not refused: neither is ever fitted on.
_REPORTING_ROLES = frozenset({"test", "ood"})


def shared_images(manifest: pl.DataFrame) -> pl.DataFrame:
    """Count the pictures that occur in each pair of roles, over any number of data sets and splits.

    Args:
        manifest: Manifests of all data sets and splits, one below the other.

    Returns:
        One row for each unordered pair of roles, zeros included: role, other_role, n_images. Where both roles are the
        same, n_images counts the pictures of that role that more than one data set and split has.
    """
    pictures = manifest.select("pixel_sha256", "role", "dataset", "split").unique()
    held = dict(pictures.group_by("role").agg(pl.col("pixel_sha256").unique()).iter_rows())
    repeated = dict(
        pictures.group_by("role", "pixel_sha256")
        .len()
        .group_by("role")
        .agg((pl.col("len") > 1).sum().cast(pl.Int64))
        .iter_rows()
    )
    rows = []
    for role, other in combinations_with_replacement(ROLES, 2):
        common = repeated.get(role, 0) if role == other else len(set(held.get(role, ())) & set(held.get(other, ())))
        rows.append({"role": role, "other_role": other, "n_images": common})
    return pl.DataFrame(rows, schema={"role": pl.String, "other_role": pl.String, "n_images": pl.Int64})


def refuse_leakage(manifest: pl.DataFrame, *, listed: int = 10) -> None:
    """Refuse a picture that has two roles, unless both only report.

    Raises:
        DataError: Names up to `listed` pictures, each with its roles and the images that show it.
    """
    shown = manifest.select("pixel_sha256", "role", "dataset", "split", "image_id").unique()
    roles = shown.group_by("pixel_sha256").agg(pl.col("role").unique())
    leaking = [pixels for pixels, held in roles.iter_rows() if len(held) > 1 and not set(held) <= _REPORTING_ROLES]
    if not leaking:
        return
    places = (
        shown.filter(pl.col("pixel_sha256").is_in(leaking))
        .sort("role", "dataset", "split", "image_id")
        .group_by("pixel_sha256")
        .agg(pl.format("{}: {}/{}/{}", "role", "dataset", "split", "image_id").alias("place"))
        .with_columns(pl.col("place").list.join(", "))
        .sort("place", "pixel_sha256")
    )
    lines = [f"  {place} (pixels {pixels[:12]})" for pixels, place in places.head(listed).iter_rows()]
    more = [f"  ... and {len(leaking) - listed} more"] if len(leaking) > listed else []
    head = (
        f"leakage: {len(leaking)} pictures occur in two roles, expected one role a picture. Remove them from one of "
        "the data sets, or give both splits the same role:"
    )
    raise DataError("\n".join([head, *lines, *more]))
