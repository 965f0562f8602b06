"""The printed cell that some words identify, and the runs of methods that it is the mean of."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from statistics import mean
from typing import Any

import polars as pl

from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.evaluation.answer_sets import GROUP_PREFIX
from dualread.reporting.tables.subgroups import WORST
from dualread.store.manifest import Manifest
from dualread.store.place import Target
from dualread.store.store import Store

# Names of the first column that holds a value; the columns before it identify the value.
_VALUES = ("mean", "value", "estimate", "printed")
# Means over OOD data sets, and the fields of collect_metrics' spec that list their members.
_MEMBERS = {"ood6": "ood", "ood_ccg": "ood_ccg"}
_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class PrintedCell:
    """A row of a table's CSV file, with all values as text; `seed` if only one seed is wanted."""

    row: Mapping[str, str]
    seed: int | None = None

    @property
    def name(self) -> str:
        """The words that identify the cell."""
        columns = takewhile(lambda column: column not in _VALUES, self.row)
        return ",".join(self.row[column] for column in columns if column != "table" and self.row[column])

    @property
    def group(self) -> tuple[str, str | None] | None:
        """The column and value of the group of answers that it is about; None as value for questions without one."""
        if self.row.get("by"):
            return self.row["by"], self.row["group"] or None
        by, _, group = self.row.get("subset", "").removeprefix(GROUP_PREFIX).partition("=")
        return (by, group or None) if self.row.get("subset", "").startswith(GROUP_PREFIX) else None

    def has(self, word: str) -> bool:
        """Return whether a word is a value of the row, or names one (`slake`, `dataset=slake`)."""
        column, equals, value = word.partition("=")
        return self.row.get(column) == value if equals else word in self.row.values()


def find_cell(target: Target, text: str) -> PrintedCell:
    """Return the cell that `text` identifies by words in any order, each a value of its row (`slake`, `dataset=slake`).

    Any words that only one cell has will do, such as a whole row pasted from the CSV file. `seed=17`, or an integer
    that is not a value of the table, selects one seed of the mean.
    """
    names = [name for name in target.manifest.files if name.endswith(".csv")]
    if len(names) != 1:
        raise ArtifactError(
            f"{target.directory}: holds {len(names)} .csv files, but --cell needs a table, which has one."
            " Give a table such as tables/main.tex."
        )
    with (target.directory / names[0]).open(newline="", encoding="utf-8") as file:
        cells = [PrintedCell(row=row) for row in csv.DictReader(file)]
    words = [word for word in re.split(r"[,\s]+", text) if word]
    values = {value for cell in cells for value in cell.row.values()}
    seeds = [word for word in words if word.removeprefix("seed=").isdecimal() and word not in values]
    words = [word for word in words if word not in seeds]
    matching = [cell for cell in cells if all(map(cell.has, words))]
    if not matching:
        raise ConfigError(_nearest(text, words, cells, values))
    if any(cell.row != matching[0].row for cell in matching):
        listed = "\n  ".join(cell.name for cell in matching[:_SHOWN])
        more = f", and {len(matching) - _SHOWN} more" if len(matching) > _SHOWN else ""
        raise ConfigError(
            f"--cell {text}: {len(matching)} cells have these words. Add a word, or its column (method=base):\n"
            f"  {listed}{more}"
        )
    return PrintedCell(row=matching[0].row, seed=int(seeds[0].removeprefix("seed=")) if seeds else None)


def _nearest(text: str, words: Sequence[str], cells: Sequence[PrintedCell], values: set[str]) -> str:
    """Return a message that lists the nearest cells, and the words that no cell has."""
    columns, nearly, unknown = list(cells[0].row) if cells else [], [], []
    for word in words:
        column, equals, value = word.partition("=") if "=" in word else ("", "", word)
        nearly.append(f"{column}{equals}{(get_close_matches(value, values, n=1) or [value])[0]}")
        if equals and column not in columns:
            meant = f"{', '.join(columns)}.{did_you_mean(column, columns)}"
            unknown.append(f"There is no column {column!r}. Known: {meant}")
        elif value not in values:
            unknown.append(f"No cell has {value!r}.{did_you_mean(value, values)}")
    ranked = sorted(cells, key=lambda cell: -sum(map(cell.has, nearly)))
    listed = list(dict.fromkeys(cell.name for cell in ranked))[:_SHOWN]
    return "\n".join(["\n  ".join([f"--cell {text}: no cell has all these words. The nearest:", *listed]), *unknown])


@dataclass(frozen=True, kw_only=True)
class MethodRun:
    """One method of one actor and seed."""

    estimate: Mapping[str, Any]  # its row of the collected metrics
    # The rows of the single data sets that `estimate` is the mean of; empty for a single data set.
    members: Sequence[Mapping[str, Any]]
    kind: str  # "metrics", "costs" or "subgroups", the kind of artifact that holds the estimate
    key: str  # the key of that artifact


def read_rows(path: Path, **values: Any) -> list[dict[str, Any]]:
    """Return the rows of a parquet file whose columns have the given `values`."""
    wanted = [pl.col(name) == value for name, value in values.items()]
    return _collected(path, lambda table: table.filter(*wanted)).to_dicts()


def count_rows(path: Path) -> int:
    """Return the number of rows of a parquet file."""
    return _collected(path, lambda table: table.select(pl.len())).item()


def _collected(path: Path, wanted: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
    try:
        return wanted(pl.scan_parquet(path)).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ArtifactError(
            f"{path}: cannot be read ({error}). `dualread verify` lists what is missing or damaged."
        ) from error


def runs_of(cell: PrintedCell, target: Target, store: Store) -> list[MethodRun]:
    """Return the runs of the cell's method, and of its baseline if the cell is a difference; [] if it is neither."""
    layout = target.manifest.action.spec.get("layout", {})
    keys = target.manifest.input_keys
    if "contrasts" in keys:
        keys = store.manifest(keys["contrasts"]).input_keys
    if of_groups := {name: key for name, key in keys.items() if name.startswith("subgroups/")}:
        return _runs_of_group(cell, of_groups, store)
    if "metrics" not in keys or not all(cell.row.get(name) for name in ("backbone", "dataset", "method", "metric")):
        return []
    collected = store.manifest(keys["metrics"])
    runs = []
    for method in filter(None, (cell.row["method"], cell.row.get("baseline"))):
        of_method = _runs_of_method(method, cell, collected, store)
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


def _runs_of_method(method: str, cell: PrintedCell, collected: Manifest, store: Store) -> list[MethodRun]:
    path = store.entry(collected.key) / "metrics.parquet"
    named = {name: cell.row[name] for name in ("backbone", "metric")} | {"method": method}
    named |= {"subset": cell.row.get("subset") or "all", "split": cell.row.get("split") or "test"}
    dataset = cell.row["dataset"]
    members = collected.action.spec.get(_MEMBERS[dataset], []) if dataset in _MEMBERS else []
    below = [row for name in members for row in read_rows(path, **named, dataset=name)]
    runs = []
    for row in sorted(read_rows(path, **named, dataset=dataset), key=lambda row: row["seed"]):
        rows = [part for part in below if (part["actor"], part["seed"]) == (row["actor"], row["seed"])]
        kind, key = _source(collected, row, [*rows, row][0], store)
        runs.append(MethodRun(estimate=row, members=rows, kind=kind, key=key))
    return runs


def _runs_of_group(cell: PrintedCell, keys: Mapping[str, str], store: Store) -> list[MethodRun]:
    """Return the run of a cell of the table `subgroups`; what it says of the worst group is from that group's row."""
    of_run = {name: cell.row[name] for name in ("backbone", "seed", "method")}
    named = {name: cell.row[name] for name in ("dataset", "by")} | {"metric": cell.row["metric"].removeprefix(WORST)}
    runs = []
    for name, key in keys.items():
        _, backbone, _, seed, method = name.split("/")
        if {"backbone": backbone, "seed": seed, "method": method} == of_run and cell.row["mean"]:
            rows = read_rows(store.entry(key) / "subgroups.parquet", **named)
            of_group = [{**row, "split": "test"} for row in rows if row["group"] == (cell.row["group"] or None)]
            runs += [MethodRun(estimate=row, members=[], kind="subgroups", key=key) for row in of_group]
    return runs


def _source(collected: Manifest, row: Mapping, first: Mapping, store: Store) -> tuple[str, str]:
    """Return the kind and key of the artifact that holds the estimate: the run's metrics, or else its costs."""
    run = "/".join(str(row[name]) for name in ("backbone", "actor", "seed", "method"))
    keys = {kind: key for kind in ("metrics", "costs") if (key := collected.input_keys.get(f"{kind}/{run}"))}
    if not keys:
        raise ArtifactError(
            f"{collected.action.stage} {collected.key[:8]}: has no input metrics/{run} or costs/{run}."
            " Run the study again."
        )
    if len(keys) == 2:
        wanted = {name: first[name] for name in ("dataset", "subset", "metric")}
        has_estimate = read_rows(store.entry(keys["metrics"]) / "metrics.parquet", **wanted)
        return ("metrics", keys["metrics"]) if has_estimate else ("costs", keys["costs"])
    return next(iter(keys.items()))
