"""The labels that a study's tables and figures use for backbones, actors, methods and data sets."""

from collections.abc import Iterable, Mapping
from typing import Any


def labels_of(layouts: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return {name: label} per kind, in the order of the layout that shows most of the kind."""
    labels_by_kind: dict[str, dict[str, str]] = {kind: {} for kind in ("backbones", "actors", "methods", "datasets")}
    for layout in layouts:
        for kind, labels in labels_by_kind.items():
            more = {entry["name"]: entry["label"] for entry in layout.get(kind, ())}
            first, second = (labels, more) if len(labels) >= len(more) else (more, labels)
            labels_by_kind[kind] = {**first, **second}
    return labels_by_kind
