"""Stage check_leakage: all manifests of the study -> how many pictures each two roles share. A leak is refused.

Inputs: one manifest artifact per data set and split, under any names.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import each_part, read_table
from dualread.data.questions.leakage import count, refuse_leakage, refuse_patients, shared_pictures
from dualread.schema.base import NoSpec
from dualread.schema.columns import MANIFEST, THUMBNAILS

_COLUMNS = ("role", "dataset", "split", "image_id", "patient_id", "pixel_sha256s")


def compute(spec: NoSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write leakage.parquet, a count per pair of roles, and near_duplicates.parquet; an error names every leak."""
    folders = [folder for _, folder in sorted(inputs.items())]
    rows = pl.concat(read_table(folder / "manifest.parquet", MANIFEST, _COLUMNS) for folder in folders)
    looks = (look for folder in folders for part in each_part(folder, THUMBNAILS) for look in part.iter_rows())
    pairs = shared_pictures(rows, looks)
    refuse_leakage(pairs)
    refuse_patients(rows)
    shared = count(pairs)
    shared.write_parquet(out / "leakage.parquet", compression="zstd")
    pairs.write_parquet(out / "near_duplicates.parquet", compression="zstd")
    exact, near = shared.filter(pl.col("role") != pl.col("other_role")).select("n_images", "n_near").sum().row(0)
    n_pictures = rows["pixel_sha256s"].explode().n_unique()
    return (
        f"read {rows.height} questions on {n_pictures} pictures in {len(folders)} manifests: no "
        f"picture used for fitting has a second role, test and ood share {exact}, and {near} pairs are near-duplicates"
    )
