"""What a table shows, in which order and under which labels. It comes from the config and holds no results."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from dualread.errors import ConfigError

# The group of methods that serve as a reference only; they are never bold.
NULL_GROUP = "Null"


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """A block of rows. Its means are over the actor seeds `seeds`; an actor without seeds has one run, with seed 0."""

    name: str
    label: str
    seeds: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of every block.

    Attributes:
        name: Its name in the config.
        label: The printed name.
        group: The label of its group of methods.
        actor: The actor whose answers it judges.
        readers: Its reader, and the readers that it builds on.
        cost: Its cost according to the paper, in LaTeX; None where the paper gives none.
    """

    name: str
    label: str
    group: str
    actor: str
    readers: Sequence[str]
    cost: str | None = None


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set of the study; exactly one is in-distribution (`id`)."""

    name: str
    label: str
    id: bool


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout of a table.

    Attributes:
        study: The study's name, for captions.
        backbones: In the order of the blocks.
        methods: In the order of the rows of a block.
        datasets: Those of the study.
        contrasts: Names of the contrasts to show, for tables that read them.
    """

    study: str
    backbones: tuple[Backbone, ...]
    methods: tuple[Method, ...]
    datasets: tuple[Dataset, ...]
    contrasts: Sequence[str] = ()

    @property
    def seeds(self) -> dict[str, Sequence[int]]:
        """The seeds of each backbone."""
        return {backbone.name: backbone.seeds for backbone in self.backbones}

    @property
    def id_dataset(self) -> Dataset:
        """The in-distribution data set."""
        return next(dataset for dataset in self.datasets if dataset.id)

    @classmethod
    def parse(cls, layout: Mapping) -> "Layout":
        """Read the mapping that a stage's spec holds.

        Raises:
            ConfigError: A key is missing or unknown, or not exactly one data set is in-distribution.
        """
        _check_keys(layout, cls, "layout")
        entries = {
            name: tuple(_entry(kind, entry, f"layout: {name}[{k}]") for k, entry in enumerate(layout[name]))
            for name, kind in (("backbones", Backbone), ("methods", Method), ("datasets", Dataset))
        }
        if (n := sum(dataset["id"] for dataset in layout["datasets"])) != 1:
            raise ConfigError(f"layout: {n} data sets are marked as in-distribution (id: true), expected exactly one.")
        return cls(study=layout["study"], contrasts=layout.get("contrasts", ()), **entries)


def _entry(kind: type, entry: Mapping, where: str) -> Any:
    _check_keys(entry, kind, where)
    return kind(**entry)


def _check_keys(mapping: Mapping, kind: type, where: str) -> None:
    expected = {field.name for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    if not needed <= set(mapping) <= expected:
        missing, unknown = needed - set(mapping), set(mapping) - expected
        raise ConfigError(
            f"{where}: missing keys: {', '.join(sorted(missing)) or 'none'}; "
            f"unknown keys: {', '.join(sorted(unknown)) or 'none'}. Expected: {', '.join(sorted(expected))}."
        )
