"""Stage pair_donors: a manifest -> for each question a donor image with another answer, where one exists.

Input `manifest`: a manifest artifact.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import read_table, write_table
from dualread.data.donors import count_pairs, pair
from dualread.schema.columns import MANIFEST, PAIRS
from dualread.schema.data import PairDonorsSpec


def compute(spec: PairDonorsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write pairs.parquet, and audit.parquet with the counts of the rule, with and without `match_on`."""
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    pairs, audit = pair(manifest, spec.match_on, spec.role)
    if spec.match_on and manifest["donor_sample_id"].is_null().all():
        audit = pl.concat([audit, count_pairs(manifest, [], spec.role)])
    write_table(out / "pairs.parquet", pairs, PAIRS)
    audit.write_parquet(out / "audit.parquet", compression="zstd")
    counts = ", ".join(f"{n} pairs ({rule})" for rule, n in audit.select("rule", "n_pairs").iter_rows())
    return f"read {manifest.height} questions, wrote {pairs.height} pairs: {counts}"
