"""The runs of a method that a printed number is the mean of, and the data sets in a mean over data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import polars as pl

from dualread.apps.explain.cells import PrintedCell
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.store.manifest import Manifest
from dualread.store.place import Target
from dualread.store.store import Store

# Means over OOD data sets, and the fields of collect_metrics' spec that list their members.
_MEMBERS = {"ood6": "ood", "ood_ccg": "ood_ccg"}
_NAMED = ("backbone", "dataset", "method", "metric")


@dataclass(frozen=True, kw_only=True)
class MethodRun:
    """One method of one actor and seed.

    Attributes:
        estimate: Its row of the collected metrics.
        members: The rows of the single data sets that `estimate` is the mean of; empty for a single data set.
        kind: "metrics" or "costs", the kind of artifact that holds the estimate.
        key: The key of that artifact.
    """

    estimate: Mapping[str, Any]
    members: Sequence[Mapping[str, Any]]
    kind: str
    key: str


def read_rows(path: Path, **values: Any) -> list[dict[str, Any]]:
    """Return the rows of a parquet file whose columns have the given `values`.

    Raises:
        ArtifactError: The file cannot be read, or lacks a column.
    """
    try:
        wanted = [pl.col(name) == value for name, value in values.items()]
        return pl.scan_parquet(path).filter(*wanted).collect().to_dicts()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ArtifactError(
            f"{path}: cannot be read ({error}). `dualread verify` lists what is missing or damaged."
        ) from error


def runs_of(cell: PrintedCell, target: Target, store: Store) -> list[MethodRun]:
    """Return the runs of the cell's method, and of its baseline if the cell is a difference; [] if it is neither.

    Raises:
        ConfigError: No run has the cell's seed.
        ArtifactError: Something that the table was made from is not in the store.
    """
    layout = target.manifest.action.spec.get("layout", {})
    keys = target.manifest.input_keys
    if "contrasts" in keys:
        keys = store.manifest(keys["contrasts"]).input_keys
    collected = store.manifest(keys["metrics"]) if "metrics" in keys else None
    if collected is None or not all(cell.row.get(name) for name in _NAMED):
        return []
    runs = []
    for method in filter(None, (cell.row["method"], cell.row.get("baseline"))):
        of_method = _of_method(method, cell, collected, store)
        if {run.estimate["seed"] for run in of_method} != {0}:
            backbones = [entry for entry in layout["backbones"] if entry["name"] == cell.row["backbone"]]
            shown = {seed for backbone in backbones for seed in backbone["seeds"]}
            of_method = [run for run in of_method if run.estimate["seed"] in shown]
        runs += of_method
    if cell.seed is None:
        return runs
    if chosen := [run for run in runs if run.estimate["seed"] in (cell.seed, 0)]:
        return chosen
    known = list(dict.fromkeys(run.estimate["seed"] for run in runs))
    listed = ", ".join(map(str, known))
    raise ConfigError(f"--cell: {cell.name} has no seed {cell.seed}. Known: {listed}.{did_you_mean(cell.seed, known)}")


def recomputed(cell: PrintedCell, runs: Sequence[MethodRun]) -> float | None:
    """Return the cell's value, recomputed from its runs; None if one of them is undefined."""
    by_method: dict[str, list[float | None]] = {}
    for run in runs:
        by_method.setdefault(run.estimate["method"], []).append(run.estimate["estimate"])
    if not by_method or any(value is None for values in by_method.values() for value in values):
        return None
    means = {method: mean(values) for method, values in by_method.items()}  # type: ignore[type-var]
    return means[cell.row["method"]] - means.get(cell.row.get("baseline") or "", 0.0)


def _of_method(method: str, cell: PrintedCell, collected: Manifest, store: Store) -> list[MethodRun]:
    path = store.entry(collected.key) / "metrics.parquet"
    named = {name: cell.row[name] for name in ("backbone", "metric")} | {"method": method}
    named |= {"subset": cell.row.get("subset") or "all", "split": cell.row.get("split") or "test"}
    dataset = cell.row["dataset"]
    members = collected.action.spec.get(_MEMBERS[dataset], []) if dataset in _MEMBERS else []
    below = {name: read_rows(path, **named, dataset=name) for name in members}
    runs = []
    for row in sorted(read_rows(path, **named, dataset=dataset), key=lambda row: row["seed"]):
        run = (row["actor"], row["seed"])
        rows = [part for name in members for part in below[name] if (part["actor"], part["seed"]) == run]
        kind, key = _source(collected, row, rows or [row], store)
        runs.append(MethodRun(estimate=row, members=rows, kind=kind, key=key))
    return runs


def _source(collected: Manifest, row: Mapping, estimates: Sequence[Mapping], store: Store) -> tuple[str, str]:
    """Return the kind and key of the artifact that holds the estimate: the run's metrics, or else its costs."""
    run = "/".join(str(row[name]) for name in ("backbone", "actor", "seed", "method"))
    names = {kind: f"{kind}/{run}" for kind in ("metrics", "costs") if f"{kind}/{run}" in collected.input_keys}
    if not names:
        raise ArtifactError(
            f"{collected.action.stage} {collected.key[:8]}: has no input metrics/{run} or costs/{run}."
            " Run the study again."
        )
    if "metrics" in names:
        key = collected.input_keys[names["metrics"]]
        wanted = {name: estimates[0][name] for name in ("dataset", "subset", "metric")}
        if "costs" not in names or read_rows(store.entry(key) / "metrics.parquet", **wanted):
            return "metrics", key
    return "costs", collected.input_keys[names["costs"]]
