"""Stage check_leakage: every manifest of the study -> how many images each two roles share; refuse a leak.

Spec: empty. Inputs: one manifest artifact for each data set and split, under any names.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.tables import read_table
from dualread.manifests.leakage import refuse_leakage, shared_images


def compute(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    """Write leakage.parquet (role, other_role, n_images; zeros included), or fail and name the images."""
    manifests = [read_table(folder / "manifest.parquet", MANIFEST) for _, folder in sorted(inputs.items())]
    rows = pl.concat(manifests)
    refuse_leakage(rows)
    shared = shared_images(rows)
    shared.write_parquet(out / "leakage.parquet", compression="zstd")
    between = shared.filter(pl.col("role") != pl.col("other_role"))["n_images"].sum()
    return (
        f"read {rows.height} questions on {rows['pixel_sha256'].n_unique()} pictures in {len(manifests)} manifests: "
        f"no picture that is fitted on has a second role, {between} are shared by test and ood"
    )
