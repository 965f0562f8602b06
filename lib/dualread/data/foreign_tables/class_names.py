"""Class labels of Hugging Face's datasets: numbers in a file, whose names stand in its metadata.

What 0 means is not in the numbers: `correct` may have the names ("right", "wrong") in this order.
"""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

__all__ = ["features_in", "with_class_names"]


def features_in(metadata: Mapping[Any, Any] | None) -> Mapping[str, Any]:
    """Return {column: what datasets says of it} from the metadata of a .parquet or of an arrow table."""
    found = {str(_text(key)): _text(value) for key, value in (metadata or {}).items()}.get("huggingface")
    try:
        return dict(json.loads(found or "{}")["info"]["features"])
    except (KeyError, RecursionError, TypeError, ValueError):
        return {}


def with_class_names(table: pl.LazyFrame, features: Mapping[str, Any]) -> pl.LazyFrame:
    """Return the table with the names of class labels in place of their numbers; -1, which is no label, is null."""
    schema = table.collect_schema()
    named = []
    for column, kind in schema.items():
        names, of_list = _names(features.get(column))
        if names is None:
            continue
        if not of_list and kind.is_integer():
            named.append(_named(pl.col(column), names).alias(column))
        elif of_list and isinstance(kind, pl.List) and kind.inner.is_integer():  # type: ignore[union-attr]
            named.append(pl.col(column).list.eval(_named(pl.element(), names)).alias(column))
    return table.with_columns(named) if named else table


def _named(numbers: pl.Expr, names: list[str]) -> pl.Expr:
    known = {**dict(enumerate(names)), -1: None}
    numbers = numbers.cast(pl.Int64)
    return numbers.replace_strict(known, default=numbers.cast(pl.String), return_dtype=pl.String)


def _names(feature: Any) -> tuple[list[str] | None, bool]:
    """Return the names of a class label, and whether the column holds lists of them; None for other columns."""
    inner = feature[0] if isinstance(feature, list) and len(feature) == 1 else None
    if isinstance(feature, dict) and feature.get("_type") in ("List", "Sequence", "LargeList"):
        inner = feature.get("feature")
    label = feature if inner is None else inner
    names = label.get("names") if isinstance(label, dict) and label.get("_type") == "ClassLabel" else None
    return (list(map(str, names)) if isinstance(names, list) else None), inner is not None


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
