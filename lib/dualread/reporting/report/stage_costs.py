"""The cost of each stage of a finished study (entries, seconds, peak memory, size), read from the store.

The seconds are those of the job that computed an entry, at whatever time; reusing an entry costs about 0.1 s. Start-up
(1.6 s to import torch, a few more to load a model) is counted once per job, in its first entry.
"""

from pathlib import Path

import polars as pl

from dualread.reporting.report._grid import Grid, count
from dualread.store.digest import MANIFEST_NAME
from dualread.store.graph import artifacts_below
from dualread.store.manifest import read_manifest
from dualread.store.store import Store

_ENTRY = {
    "stage": pl.String,
    "seconds": pl.Float64,
    "peak_memory_mb": pl.Float64,
    "size_mb": pl.Float64,
}


def stage_costs(study: Path, store: Store) -> pl.DataFrame:
    """Return one row per stage, the longest first: stage, entries, seconds, longest, peak_memory_mb, size_mb.

    Every artifact below `study` counts once. An artifact without a record in the store counts as an entry without time.
    """
    rows = {}
    for directory in artifacts_below(study, store):
        manifest = read_manifest(directory / MANIFEST_NAME)
        record = store.record(manifest.key)
        rows[manifest.key] = {
            "stage": manifest.action.stage,
            "seconds": record.get("seconds"),
            "peak_memory_mb": record.get("peak_memory_mb"),
            "size_mb": sum(file["size"] for file in manifest.files.values()) / 1e6,
        }
    return (
        pl.DataFrame(list(rows.values()), schema=_ENTRY)
        .group_by("stage")
        .agg(
            entries=pl.len(),
            seconds=pl.col("seconds").sum().round(1),
            longest=pl.col("seconds").max().round(1),
            peak_memory_mb=pl.col("peak_memory_mb").max(),
            size_mb=pl.col("size_mb").sum().round(2),
        )
        .sort(["seconds", "stage"], descending=[True, False])
    )


def grid(study: Path, store: Store) -> Grid:
    """Return the same as a table of the report, with a row for all stages together."""
    costs = stage_costs(study, store)
    total = sum(costs["seconds"])
    rows = [
        (
            row["stage"],
            f"{row['seconds']:,.1f}",
            count(row["entries"]),
            "—" if row["longest"] is None else f"{row['longest']:,.1f}",
            "—" if row["peak_memory_mb"] is None else f"{row['peak_memory_mb']:,.0f}",
            f"{row['size_mb']:,.1f}",
        )
        for row in costs.iter_rows(named=True)
    ]
    rows.append(("all", f"{total:,.1f}", count(sum(costs["entries"])), "", "", f"{sum(costs['size_mb']):,.1f}"))
    return Grid(
        caption="Seconds of each stage, on one core; an entry that is already in the store costs about 0.1 s",
        columns=("Stage", "Seconds", "Entries", "Longest (s)", "Peak memory (MB)", "Size (MB)"),
        rows=rows,
        right=frozenset(range(1, 6)),
        shares=[*(seconds / total if total else 0.0 for seconds in costs["seconds"]), 0.0],
    )
