"""The origin of the results: upstream artifacts with their keys, runs, checkpoints, machines, versions, and costs.

The seconds of a stage are those of the jobs that computed its entries, at whatever time; reusing an entry costs about
0.1 s. Start-up (1.6 s to import torch, a few more to load a model) is counted once per job, in its first entry.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from dualread.errors import ArtifactError
from dualread.reporting.report._grid import Grid, count
from dualread.store.digest import MANIFEST_NAME
from dualread.store.graph import Graph, artifacts_below
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.store import Store

KEY_DIGITS = 16  # `dualread explain` accepts the first digits of a key


class Provenance(Graph):
    """The artifacts of a store, each read once, and what the report says of them besides."""

    def file(self, key: str, name: str) -> bytes:
        """Return a file of an entry.

        Raises:
            ArtifactError: The store does not have it.
        """
        try:
            return (self.store.entry(key) / name).read_bytes()
        except OSError as error:
            raise ArtifactError(f"{key[:8]}: {name} cannot be read ({error}). Run `dualread verify`.") from error


def lineage(manifest: Manifest, provenance: Provenance) -> Grid:
    """Return the number of upstream artifacts of one artifact, by stage."""
    stages: Counter[str] = Counter()
    for key, entry in provenance.behind([manifest.key]).items():
        if key != manifest.key:
            stages["(not in the store)" if entry is None else entry.action.stage] += 1
    rows = [(stage, count(n)) for stage, n in sorted(stages.items(), key=lambda item: (-item[1], item[0]))]
    return Grid(caption="Made from", columns=("Stage", "Artifacts"), rows=rows, right=frozenset({1}))


def runs(artifacts: Mapping[str, Manifest | None], labels: Mapping[str, Mapping[str, str]]) -> Grid:
    """Return the seeds of each actor that generated answers, one row per backbone, in the order of the labels."""
    seeds: dict[tuple[str, str], set[int]] = {}
    for manifest in artifacts.values():
        spec = manifest.action.spec if manifest else {}
        if manifest and manifest.action.stage in ("generate", "read_answers"):
            seeds.setdefault((spec["backbone"], spec["actor"]), set()).add(spec["seed"])
    backbones = _in_order({backbone for backbone, _ in seeds}, labels["backbones"])
    actors = _in_order({actor for _, actor in seeds}, labels["actors"])
    rows = [
        (label, *(_seeds(seeds.get((backbone, actor), set())) for actor in actors))
        for backbone, label in backbones.items()
    ]
    caption = "Seeds of the actors whose answers the tables and figures use"
    return Grid(caption=caption, columns=("Backbone", *actors.values()), rows=rows)


def _in_order(names: set[str], labels: Mapping[str, str]) -> dict[str, str]:
    first = [name for name in labels if name in names]
    return {name: labels.get(name, name) for name in [*sorted(names - labels.keys()), *first]}


def _seeds(seeds: set[int]) -> str:
    if not seeds:
        return "—"
    return "no seed" if seeds == {0} else ", ".join(map(str, sorted(seeds)))


def checkpoints(
    artifacts: Mapping[str, Manifest | None], labels: Mapping[str, Mapping[str, str]], provenance: Provenance
) -> Grid:
    """Return what experiments say about the checkpoints of a study (`models/probe.py`): how rows are read, how exactly.

    There is one row per checkpoint that was probed; actors that are trained from it have its facts.
    """
    rows = []
    for key, manifest in artifacts.items():
        if manifest is None or manifest.action.stage != "probe_checkpoint":
            continue
        of_file = json.loads(provenance.file(key, "facts.json"))
        facts, measured = of_file["facts"], of_file["found"]
        name = manifest.action.spec["backbone"]
        rows.append(
            (
                labels["backbones"].get(name, name),
                facts["shared"],
                "once" if facts["images_once"] else "for every prompt",
                "in one pass" if facts["tree"] else "one by one",
                f"{count(measured['image_tokens_that_images_change'])} of {count(measured['image_tokens'])}",
                str(facts["completion_type"]) if measured["token_types"] else "—",
                f"{measured['layers']} of {count(measured['width'])}",
                provenance.record(key).get("summary", "—"),
            )
        )
    return Grid(
        caption="What experiments say about the checkpoints: the fastest ways to read rows that agree with transformers"
        " alone on single rows",
        columns=(
            "Backbone",
            "Rows share",
            "An image is encoded",
            "Continuations are read",
            "Image tokens that images change",
            "Token type of a completion",
            "Layers, width",
            "What was measured",
        ),
        rows=sorted(rows),
    )


def versions(artifacts: Mapping[str, Manifest | None]) -> Grid:
    """Return every version of Python and of packages in the keys, with the number of artifacts."""
    counts: Counter[tuple[str, str]] = Counter()
    for manifest in filter(None, artifacts.values()):
        counts["Python", manifest.action.python] += 1
        counts.update(manifest.action.packages.items())
    ordered = sorted(counts, key=lambda package: (package[0] != "Python", package[0].lower(), package[1]))
    rows = [(*package, count(counts[package])) for package in ordered]
    return Grid(
        caption="Versions of Python and of the packages that stages import, as recorded in the keys",
        columns=("Package", "Version", "Artifacts"),
        rows=rows,
        right=frozenset({2}),
    )


def machines(artifacts: Iterable[str], provenance: Provenance) -> Grid:
    """Return the machines that computed the artifacts, with the number of artifacts and the times."""
    times_of: dict[tuple[str, str, str], list[str]] = {}
    for key in artifacts:
        record = provenance.record(key)
        if "host" in record:
            where = record["host"], record.get("cpu", "—"), record.get("gpu", "none")
            times_of.setdefault(where, []).append(record["written"])
    rows = [
        (*where, count(len(times)), min(times)[:16].replace("T", " "), max(times)[:16].replace("T", " "))
        for where, times in sorted(times_of.items())
    ]
    columns = ("Host", "CPU", "GPU", "Artifacts", "First (UTC)", "Last (UTC)")
    return Grid(caption="Machines that computed the artifacts", columns=columns, rows=rows, right=frozenset({3}))


def keys(artifacts: Mapping[str, Manifest | None], provenance: Provenance) -> Grid:
    """Return every artifact with its key, by stage and place."""
    rows = []
    for key, manifest in artifacts.items():
        record = provenance.record(key)
        stage = "(not in the store)" if manifest is None else manifest.action.stage
        seconds = f"{record['seconds']:.1f}" if "seconds" in record else "—"
        place = record.get("output", "—").removeprefix("results/")
        rows.append((stage, place, key[:KEY_DIGITS], seconds))
    return Grid(
        caption="Every artifact behind the tables and figures",
        columns=("Stage", "Where it was written first", "Key", "Seconds"),
        rows=sorted(rows),
        right=frozenset({3}),
        code=frozenset({1, 2}),
    )


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


def costs(study: Path, store: Store) -> Grid:
    """Return the same as a table of the report, with a row for all stages together."""
    of_stages = stage_costs(study, store)
    total = sum(of_stages["seconds"])
    rows = [
        (
            row["stage"],
            f"{row['seconds']:,.1f}",
            count(row["entries"]),
            "—" if row["longest"] is None else f"{row['longest']:,.1f}",
            "—" if row["peak_memory_mb"] is None else f"{row['peak_memory_mb']:,.0f}",
            f"{row['size_mb']:,.1f}",
        )
        for row in of_stages.iter_rows(named=True)
    ]
    rows.append(("all", f"{total:,.1f}", count(sum(of_stages["entries"])), "", "", f"{sum(of_stages['size_mb']):,.1f}"))
    return Grid(
        caption="Seconds of each stage, on one core; an entry that is already in the store costs about 0.1 s",
        columns=("Stage", "Seconds", "Entries", "Longest (s)", "Peak memory (MB)", "Size (MB)"),
        rows=rows,
        right=frozenset(range(1, 6)),
        shares=[*(seconds / total if total else 0.0 for seconds in of_stages["seconds"]), 0.0],
    )
