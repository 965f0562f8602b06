"""Every column of every table that stages exchange: name, dtype, meaning. Printed by `dualread schema`.

One file a table, each with its `Schema` under the table's name in capitals: a stage depends on the tables that it reads
and writes, and a new column of another table does not recompute it.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its polars dtype, what a value means, and whether it may be null."""

    dtype: pl.DataType | type[pl.DataType]
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of one kind of table, in order."""

    name: str
    columns: Mapping[str, Column]


def column(dtype: pl.DataType | type[pl.DataType], meaning: str) -> Column:
    """Return a column that holds no null."""
    return Column(dtype=dtype, meaning=meaning)


def nullable(dtype: pl.DataType | type[pl.DataType], meaning: str) -> Column:
    """Return a column that may hold nulls."""
    return Column(dtype=dtype, meaning=meaning, nullable=True)


# The key of a completion; generations, graded and features share it.
COMPLETION = {
    "sample_id": column(pl.String, "the question's id in the manifest"),
    "condition": column(pl.String, "which image, prompt and decoding produced it: original, donor, ..."),
    "sample_index": column(pl.Int32, "0 for greedy; 0..K-1 for sampled completions"),
}


def all_schemas() -> dict[str, Schema]:
    """Return every schema by name, sorted; for whoever prints or tests them. Stages import the ones that they need."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: getattr(importlib.import_module(f"{__name__}.{name}"), name.upper()) for name in names}
