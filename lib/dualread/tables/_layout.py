"""What a table shows and in which order; comes from the config, holds no number."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from dualread.errors import ConfigError

# The group of methods that are there for comparison only: never the best of a column.
NULL_GROUP = "Null"


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """A block of rows."""

    name: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of every block; `group` is its heading, `actor` whose answers it judges."""

    name: str
    label: str
    group: str
    actor: str


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout of a table.

    Attributes:
        backbones: In the order of the blocks.
        methods: In the order of the rows of a block.
        id_dataset: The in-distribution data set's config name.
        id_label: How it is printed.
        seeds: The actor seeds that a mean runs over; a method whose actor has no seed (0) has one run.
    """

    backbones: tuple[Backbone, ...]
    methods: tuple[Method, ...]
    id_dataset: str
    id_label: str
    seeds: tuple[int, ...]

    @classmethod
    def parse(cls, layout: Mapping) -> "Layout":
        """Read the mapping that a stage's spec holds.

        Raises:
            ConfigError: A key is missing or unknown.
        """
        _check_keys(layout, cls, "layout")
        for name, kind in (("backbones", Backbone), ("methods", Method)):
            for k, entry in enumerate(layout[name]):
                _check_keys(entry, kind, f"layout: {name}[{k}]")
        return cls(
            backbones=tuple(Backbone(**entry) for entry in layout["backbones"]),
            methods=tuple(Method(**entry) for entry in layout["methods"]),
            id_dataset=layout["id_dataset"],
            id_label=layout["id_label"],
            seeds=tuple(layout["seeds"]),
        )


def _check_keys(mapping: Mapping, kind: type, where: str) -> None:
    expected = {field.name for field in fields(kind)}
    if set(mapping) != expected:
        missing, unknown = expected - set(mapping), set(mapping) - expected
        raise ConfigError(
            f"{where}: missing keys: {', '.join(sorted(missing)) or 'none'}; "
            f"unknown keys: {', '.join(sorted(unknown)) or 'none'}. Expected: {', '.join(sorted(expected))}."
        )
