"""Every column of every table that stages exchange: name, dtype and meaning. `dualread schema` prints them.

There is one file per table, with its `Schema` under the name of the table in capitals. So a stage depends only on the
tables that it reads and writes, and a new column of another table does not recompute it.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its polars dtype, the meaning of a value, and whether values may be null."""

    dtype: pl.DataType | type[pl.DataType]
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table, in order."""

    name: str
    columns: Mapping[str, Column]


def column(dtype: pl.DataType | type[pl.DataType], meaning: str) -> Column:
    """Return a column that holds no null."""
    return Column(dtype=dtype, meaning=meaning)


def nullable(dtype: pl.DataType | type[pl.DataType], meaning: str) -> Column:
    """Return a column that may hold nulls."""
    return Column(dtype=dtype, meaning=meaning, nullable=True)


# The key of a completion, which generations, graded and features share.
COMPLETION = {
    "sample_id": column(pl.String, "id of the question in the table of questions (manifest.parquet)"),
    "condition": column(pl.String, "the image, prompt and decoding that produced it: original, donor, ..."),
    "sample_index": column(pl.Int32, "0 for greedy; 0..K-1 for sampled completions"),
}


def all_schemas() -> dict[str, Schema]:
    """Return every schema by name, sorted. For printing and tests; a stage imports only the schemas that it needs."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: getattr(importlib.import_module(f"{__name__}.{name}"), name.upper()) for name in names}
