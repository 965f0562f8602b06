"""Stage pair_donors: a manifest -> for each question a donor image with another answer, where one exists.

Input `manifest`: a manifest artifact.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.schemas.pairs import PAIRS
from dualread.artifacts.tables import read_table, write_table
from dualread.data.donors import pair
from dualread.specs.manifests import PairDonorsSpec


def compute(spec: PairDonorsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write pairs.parquet, and audit.parquet with the counts of the rule, with and without `match_on`."""
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    pairs, audit = pair(manifest, spec.match_on)
    audits = pl.concat([audit, pair(manifest, [])[1]]).unique("rule", keep="first", maintain_order=True)
    write_table(out / "pairs.parquet", pairs, PAIRS)
    audits.write_parquet(out / "audit.parquet", compression="zstd")
    counts = ", ".join(f"{n} pairs ({rule})" for rule, n in audits.select("rule", "n_pairs").iter_rows())
    return f"read {manifest.height} questions, wrote {pairs.height} pairs: {counts}"
