"""Stage summarize_data: all manifests and pairs of the study -> a summary of the data, and the audit of every step.

Inputs: `manifest/<data set>/<split>`, the manifest artifacts; `pairs/<data set>/<split>`, the pairs artifact of each
split that has one.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import for_spreadsheets, read_table, write_table
from dualread.data.questions.roles import account, summarize
from dualread.schema.base import NoSpec
from dualread.schema.columns import DATA, MANIFEST, PAIRS


def compute(spec: NoSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write data.parquet, one row per role of a split, and audit.csv, one row per step of a manifest or its pairs."""
    rows, steps = [], []
    for name in sorted(name for name in inputs if name.startswith("manifest/")):
        manifest = read_table(inputs[name] / "manifest.parquet", MANIFEST)
        audit = pl.read_parquet(inputs[name] / "audit.parquet")
        paired = inputs.get(name.replace("manifest/", "pairs/", 1))
        pairs = read_table(paired / "pairs.parquet", PAIRS) if paired else None
        pair_audit = pl.read_parquet(paired / "audit.parquet") if paired else None
        digest = (inputs[name] / "manifest_digest.txt").read_text().strip()
        rows.append(summarize(manifest, audit, pairs, pair_audit, manifest_sha256=digest))
        steps.append(account(manifest, audit, pair_audit))
    data = pl.concat(rows)
    write_table(out / "data.parquet", data, DATA)
    for_spreadsheets(pl.concat(steps)).write_csv(out / "audit.csv")
    return (
        f"read {len(rows)} manifests, wrote {data.height} rows: {data['questions'].sum()} questions on "
        f"{data['images'].sum()} images, {data['pairs'].sum()} pairs"
    )
