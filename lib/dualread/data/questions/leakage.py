"""Find pictures that two roles share, by equal pixels and as copies: no image may be fitted on and reported on."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import polars as pl

from dualread.data.questions.copies import copies
from dualread.data.questions.pictures import SIDE
from dualread.data.questions.roles import ROLES
from dualread.errors import DataError

# An image that only these roles share is reported, not refused, because nothing is fitted on either.
_REPORTING_ROLES = frozenset({"test", "ood"})
_LISTED = 10  # pairs that an error lists

_PAIRS = {
    **dict.fromkeys(("role", "image", "other_role", "other_image", "kind", "pixel_sha256"), pl.String),
    "distance": pl.Int64,
    "difference": pl.Float64,
}


def shared_pictures(manifest: pl.DataFrame, thumbnails: Iterable[tuple[str, bytes]]) -> pl.DataFrame:
    """Return every two images that show the same picture in different roles, data sets or splits, sorted.

    `manifest` holds the tables of questions of all data sets and splits; `thumbnails` (pixel digest, thumbnail) are
    taken one by one. The columns are role, image (data set/split/image id), other_role, other_image, kind ("exact": the
    same pixels; "near" or "mirrored": a copy), pixel_sha256 (of the first image), distance and difference (see
    `copies`). The roles of a pair are in the order of `ROLES`.
    """
    keys = ["dataset", "split", "image_id", "pixel_sha256"]
    manifest = manifest.explode("pixel_sha256s").rename({"pixel_sha256s": "pixel_sha256"})
    rank = pl.col("role").replace_strict({role: k for k, role in enumerate(ROLES)}, return_dtype=pl.Int64)
    shown = manifest.select("role", *keys).unique().sort(rank, *keys)
    images = shown.select(pl.format("{}/{}/{}", "dataset", "split", "image_id")).to_series().to_list()
    roles, digests = shown["role"].to_list(), shown["pixel_sha256"].to_list()
    looks = _looks(digests, thumbnails)
    places = shown.select(pl.struct("role", "dataset", "split").rank("dense")).to_series().to_numpy()
    pairs = {(i, j): ("near", *how) for i, j, *how in copies(looks, places)}
    for i, j, *how in copies(looks, places, mirrored=True):
        pairs.setdefault((i, j), ("mirrored", *how))  # a symmetric picture is its own mirror image
    rows = [
        {
            "role": roles[i],
            "image": images[i],
            "other_role": roles[j],
            "other_image": images[j],
            "kind": "exact" if digests[i] == digests[j] else kind,
            "pixel_sha256": digests[i],
            "distance": distance,
            "difference": round(difference, 4),
        }
        for (i, j), (kind, distance, difference) in sorted(pairs.items())
    ]
    return pl.DataFrame(rows, schema=_PAIRS)


def _looks(digests: Sequence[str], thumbnails: Iterable[tuple[str, bytes]]) -> np.ndarray:
    """Return the thumbnails of these pictures, uint8 [n, SIDE, SIDE]."""
    rows: dict[str, list[int]] = {}
    for row, digest in enumerate(digests):
        rows.setdefault(digest, []).append(row)
    looks = np.empty((len(digests), SIDE, SIDE), dtype=np.uint8)
    for digest, look in thumbnails:
        looks[rows.pop(digest, [])] = np.frombuffer(look, dtype=np.uint8).reshape(SIDE, SIDE)
    if rows:
        raise DataError(
            f"thumbnails: {len(rows)} pictures have none, such as the one with the pixel digest {min(rows)}. Build the"
            " tables of questions again."
        )
    return looks


def count(pairs: pl.DataFrame) -> pl.DataFrame:
    """Count the pairs that `shared_pictures` found: one row per unordered pair of roles, also where nothing is shared.

    `n_images` is the number of distinct pictures, by pixels, that both roles have (for a role with itself, that more
    than one of its data sets and splits has), `n_near` that of pairs of images that are copies with other pixels.
    """
    counts: dict[tuple[str, str], dict[str, Any]] = {
        roles: {"exact": set(), "near": 0} for roles in combinations_with_replacement(ROLES, 2)
    }
    for pair in pairs.iter_rows(named=True):
        cell = counts[pair["role"], pair["other_role"]]
        if pair["kind"] == "exact":
            cell["exact"].add(pair["pixel_sha256"])
        else:
            cell["near"] += 1
    rows = [(*roles, len(cell["exact"]), cell["near"]) for roles, cell in counts.items()]
    schema = {"role": pl.String, "other_role": pl.String, "n_images": pl.Int64, "n_near": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def refuse_leakage(pairs: pl.DataFrame) -> None:
    """Refuse a picture that has two roles, unless both are roles that nothing is fitted on."""
    _refuse(
        list(_leaks(pairs)),
        "pairs of images show one picture in two roles, expected one role per picture. Remove one image of each pair"
        " from its data set, or give both splits the same role:",
    )


def refuse_patients(manifest: pl.DataFrame) -> None:
    """Refuse a patient who has two roles, unless both are roles that nothing is fitted on."""
    where = pl.format("{}: {}/{}/{}", "role", "dataset", "split", "image_id").alias("where")
    known = manifest.filter(pl.col("patient_id").is_not_null()).select("dataset", "patient_id", "role", where)
    of_role = known.group_by("dataset", "patient_id", "role").agg(pl.col("where").min()).sort("where")
    of_patient = of_role.group_by("dataset", "patient_id", maintain_order=True).agg("role", "where")
    lines = [
        f"  {', '.join(places)}"
        for roles, places in of_patient.select("role", "where").iter_rows()
        if len(roles) > 1 and not set(roles) <= _REPORTING_ROLES
    ]
    _refuse(
        lines,
        "patients have images in two roles, expected one role per patient. Move all images of a patient into one split,"
        " or set `resample: image`, with which patients do not count:",
    )


def _refuse(lines: Sequence[str], what: str) -> None:
    """Raise an error that counts the `lines` and lists the first ones; nothing without any."""
    if lines:
        more = [f"  ... and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
        raise DataError("\n".join([f"leakage: {len(lines)} {what}", *lines[:_LISTED], *more]))


def _leaks(pairs: pl.DataFrame) -> Iterator[str]:
    for pair in pairs.iter_rows(named=True):
        roles = {pair["role"], pair["other_role"]}
        if len(roles) == 2 and not roles <= _REPORTING_ROLES:
            copy = "a mirrored copy" if pair["kind"] == "mirrored" else "a copy"
            alike = f"{copy}: {pair['distance']} of 64 bits and {pair['difference']:.4f} of the contrast differ"
            how = "the same pixels" if pair["kind"] == "exact" else alike
            yield f"  {pair['role']}: {pair['image']}, {pair['other_role']}: {pair['other_image']} ({how})"
