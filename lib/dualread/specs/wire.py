"""Specs as the plain mappings that jobs, keys and stored manifests hold."""

from dataclasses import is_dataclass
from typing import Any


def as_mapping(spec: Any) -> Any:
    """Return `spec` with every dataclass in it as a mapping, and without fields that are None."""
    if is_dataclass(spec):
        return {name: as_mapping(value) for name, value in vars(spec).items() if value is not None}
    if isinstance(spec, dict):
        return {name: as_mapping(value) for name, value in spec.items()}
    return [as_mapping(value) for value in spec] if isinstance(spec, list | tuple) else spec
