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
from dualread.reporting.pages import Grid, Row
from dualread.store.digest import MANIFEST_NAME
from dualread.store.graph import Graph, artifacts_below
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.store import Store

KEY_DIGITS = 16  # `dualread explain` accepts the first digits of a key
_LOST = "(not in the store)"
_ENTRY = {"stage": pl.String, "seconds": pl.Float64, "peak_memory_mb": pl.Float64, "size_mb": pl.Float64}

Artifacts = Mapping[str, Manifest | None]
Labels = Mapping[str, Mapping[str, str]]


def count(number: int) -> str:
    """Return a count with its digits in groups of three."""
    return f"{number:,}".replace(",", "\u202f")


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

    def lineage(self, manifest: Manifest) -> list[Row]:
        """Return the number of upstream artifacts of one artifact, by stage."""
        behind = self.behind([manifest.key])
        stages = Counter(stage_of(entry) for key, entry in behind.items() if key != manifest.key)
        ordered = sorted(stages.items(), key=lambda item: (-item[1], item[0]))
        return [*ordered]


def stage_of(manifest: Manifest | None) -> str:
    """Return the stage that made an artifact, or that it is not in the store."""
    return _LOST if manifest is None else manifest.action.stage


def runs(artifacts: Artifacts, labels: Labels) -> Grid:
    """Return the seeds of each actor that generated answers, one row per backbone, in the order of the labels."""
    seeds: dict[tuple[str, str], set[int]] = {}
    for manifest in artifacts.values():
        if manifest and manifest.action.stage in ("generate", "read_answers"):
            spec = manifest.action.spec
            seeds.setdefault((spec["backbone"], spec["actor"]), set()).add(spec["seed"])
    backbones = _in_order({backbone for backbone, _ in seeds}, labels["backbones"])
    actors = _in_order({actor for _, actor in seeds}, labels["actors"])
    texts = {
        run: "no seed" if numbers == {0} else ", ".join(map(str, sorted(numbers))) for run, numbers in seeds.items()
    }
    rows = [(label, *(texts.get((backbone, actor)) for actor in actors)) for backbone, label in backbones.items()]
    return Grid("Seeds of the actors whose answers the tables and figures use", ("Backbone", *actors.values()), rows)


def _in_order(names: set[str], labels: Mapping[str, str]) -> dict[str, str]:
    ordered = [*sorted(names - labels.keys()), *(name for name in labels if name in names)]
    return {name: labels.get(name, name) for name in ordered}


def checkpoints(artifacts: Artifacts, labels: Labels, provenance: Provenance) -> list[Row]:
    """Return what experiments say about the checkpoints of a study (`models/probe.py`): how rows are read, how exactly.

    There is one row per checkpoint that was probed; actors that are trained from it have its facts.
    """
    rows = []
    for key, manifest in artifacts.items():
        if manifest is None or manifest.action.stage != "probe_checkpoint":
            continue
        of_file, name = json.loads(provenance.file(key, "facts.json")), manifest.action.spec["backbone"]
        facts, measured = of_file["facts"], of_file["found"]
        changed, tokens = measured["image_tokens_that_images_change"], measured["image_tokens"]
        how = (
            facts["shared"],
            "once" if facts["images_once"] else "for every prompt",
            "in one pass" if facts["tree"] else "one by one",
            f"{count(changed)} of {count(tokens)}",
            str(facts["completion_type"]) if measured["token_types"] else "—",
            f"{measured['layers']} of {count(measured['width'])}",
        )
        rows.append((labels["backbones"].get(name, name), *how, provenance.record(key).get("summary", "—")))
    return sorted(rows)


def versions(artifacts: Artifacts) -> list[Row]:
    """Return every version of Python and of packages in the keys, with the number of artifacts."""
    counts: Counter[tuple[str, str]] = Counter()
    for manifest in filter(None, artifacts.values()):
        counts["Python", manifest.action.python] += 1
        counts.update(manifest.action.packages.items())
    ordered = sorted(counts, key=lambda package: (package[0] != "Python", package[0].lower(), package[1]))
    return [(*package, counts[package]) for package in ordered]


def machines(artifacts: Iterable[str], provenance: Provenance) -> list[Row]:
    """Return the machines that computed the artifacts, with the number of artifacts and the first and last time."""
    times_of: dict[tuple[str, str, str], list[str]] = {}
    for record in map(provenance.record, artifacts):
        if "host" in record:
            where = record["host"], record.get("cpu", "—"), record.get("gpu", "none")
            times_of.setdefault(where, []).append(record["written"][:16].replace("T", " "))
    return [(*where, len(times), min(times), max(times)) for where, times in sorted(times_of.items())]


def keys(artifacts: Artifacts, provenance: Provenance) -> list[Row]:
    """Return every artifact by stage and place: where it was written first, the key, and the seconds."""
    rows = []
    for key, manifest in artifacts.items():
        record = provenance.record(key)
        seconds = f"{record['seconds']:.1f}" if "seconds" in record else "—"
        place = record.get("output", "—").removeprefix("results/")
        rows.append((stage_of(manifest), place, key[:KEY_DIGITS], seconds))
    return sorted(rows)


def stage_costs(study: Path, store: Store) -> pl.DataFrame:
    """Return one row per stage, the longest first: stage, entries, seconds, longest, peak_memory_mb, size_mb.

    Every artifact below `study` counts once. An artifact without a record in the store counts as an entry without time.
    """
    rows = {}
    for directory in artifacts_below(study, store):
        manifest = read_manifest(directory / MANIFEST_NAME)
        record = store.record(manifest.key)
        size = sum(file["size"] for file in manifest.files.values()) / 1e6
        measured = {name: record.get(name) for name in ("seconds", "peak_memory_mb")}
        rows[manifest.key] = {"stage": manifest.action.stage, **measured, "size_mb": size}
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
