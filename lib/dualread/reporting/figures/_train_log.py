"""Train logs as curves: a value that is missing or NaN at a step is None, never a number."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import polars as pl

from dualread.errors import ArtifactError

Log = Mapping[tuple[str, int], float]  # {(name, step): value}, finite values only

MEAN = "mean"  # takes the place of a seed

_COLUMNS = {"step": pl.Int64, "name": pl.String, "value": pl.Float64}


def logs_of(tables: Mapping[str, pl.DataFrame], backbone: str, actor: str) -> dict[str, Log]:
    """Return the log of every seed of one actor, in the order of the seeds.

    Args:
        tables: `train_log/<backbone>/<actor>/<seed>`: step, name, value.
        backbone: Config name of the backbone.
        actor: Config name of the actor.

    Raises:
        ArtifactError: There is no log, or one has other columns or a quantity twice at a step.
    """
    prefix = f"train_log/{backbone}/{actor}/"
    names = sorted((name for name in tables if name.startswith(prefix)), key=lambda name: int(name.split("/")[-1]))
    if not names:
        raise ArtifactError(
            f"figures: no train log of {backbone}/{actor}; found: {', '.join(tables)}. Train this actor first."
        )
    return {name.removeprefix(prefix): _log(name, tables[name]) for name in names}


def _log(name: str, table: pl.DataFrame) -> Log:
    if dict(table.schema) != _COLUMNS:
        raise ArtifactError(f"{name}: columns {dict(table.schema)}, expected {_COLUMNS}. Train this actor again.")
    if not (twice := table.filter(table.select("name", "step").is_duplicated())).is_empty():
        raise ArtifactError(f"{name}: {twice['name'][0]} occurs twice at step {twice['step'][0]}; expected it once.")
    return {(row[1], row[0]): row[2] for row in table.iter_rows() if row[2] is not None and math.isfinite(row[2])}


def curves_of(logs: Mapping[str, Log], name: str, steps: Sequence[int]) -> dict[str, list[float | None]]:
    """Return the values of `name` at `steps` by seed, and under `MEAN` their mean, None where any seed has no value."""
    curves = {seed: [log.get((name, step)) for step in steps] for seed, log in logs.items()}
    mean = [None if None in at_step else fmean(at_step) for at_step in zip(*curves.values(), strict=True)]
    return {**curves, MEAN: mean}
