"""What each stage of a finished study cost: entries, seconds, peak memory, size. Read from the store, nothing is run.

    python benchmarks/stage_costs.py results/embedded

Seconds are those of the run that computed an entry, whenever that was; entries that were hits cost about 0.1 s each.
Start-up (1.6 s to import torch, a few more to load a model) is counted once a job, in its first entry.
"""

import argparse
import json
from pathlib import Path

import polars as pl

from dualread.store.manifest import read_manifest
from dualread.store.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="folder of a study: results/<study>")
    parser.add_argument("--store", type=Path, default=Path("results/store"))
    options = parser.parse_args()
    store = Store(options.store)
    rows = {}
    for path in sorted(options.study.rglob("MANIFEST.json")):
        manifest = read_manifest(path)
        record = json.loads((store.entry(manifest.key) / "RECORD.json").read_text())
        rows[manifest.key] = {
            "stage": manifest.action.stage,
            "seconds": record["seconds"],
            "peak_memory_mb": record["peak_memory_mb"],
            "size_mb": sum(file["size"] for file in manifest.files.values()) / 1e6,
        }
    table = (
        pl.DataFrame(list(rows.values()))
        .group_by("stage")
        .agg(
            entries=pl.len(),
            seconds=pl.col("seconds").sum().round(1),
            longest=pl.col("seconds").max().round(1),
            peak_memory_mb=pl.col("peak_memory_mb").max(),
            size_mb=pl.col("size_mb").sum().round(2),
        )
        .sort("seconds", descending=True)
    )
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(table)
    print(f"total: {table['entries'].sum()} entries, {table['seconds'].sum():.0f} s on one core each")


if __name__ == "__main__":
    main()
