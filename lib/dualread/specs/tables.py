"""The specs of tables: what they show, in which order and under which labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dualread.errors import ConfigError
from dualread.specs.parts import Plugin

# The group of methods that serve as a reference only; they are never bold.
NULL_GROUP = "Null"


@dataclass(frozen=True, kw_only=True)
class Labeled:
    """An entry of the config and the label that is printed for it."""

    name: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Backbone(Labeled):
    """A block of rows. Its means are over the actor seeds `seeds`; an actor without seeds has one run, with seed 0."""

    seeds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Method(Labeled):
    """A row of every block.

    Attributes:
        group: The label of its group of methods.
        actor: The actor whose answers it judges.
        readers: Its reader, and the readers that it builds on.
        cost: Its cost according to the paper, in LaTeX; None where the paper gives none.
    """

    group: str
    actor: str
    readers: tuple[str, ...]
    cost: str | None = None


@dataclass(frozen=True, kw_only=True)
class Dataset(Labeled):
    """A data set of the study; exactly one is in-distribution (`id`)."""

    id: bool


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a table prints besides numbers.

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
    contrasts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (n := sum(dataset.id for dataset in self.datasets)) != 1:
            raise ConfigError(f"layout: {n} data sets are marked as in-distribution (id: true), expected exactly one.")

    @property
    def seeds(self) -> dict[str, Sequence[int]]:
        """The seeds of each backbone."""
        return {backbone.name: backbone.seeds for backbone in self.backbones}

    @property
    def id_dataset(self) -> Dataset:
        """The in-distribution data set."""
        return next(dataset for dataset in self.datasets if dataset.id)


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """What a table of settings prints.

    Attributes:
        config: The sections of the config that the table's CONFIG names.
        order: The names of each section of its ORDERED; a job's text sorts keys.
        software: The versions of the packages that its SOFTWARE names.
    """

    study: str
    config: Mapping[str, Any]
    order: Mapping[str, tuple[str, ...]]
    software: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class BuildTableSpec:
    """A table; `settings` for a table of settings, `layout` for any other."""

    table: Plugin
    layout: Layout | None = None
    settings: StudySettings | None = None


@dataclass(frozen=True, kw_only=True)
class PreviewTablesSpec:
    """All tables as one PDF.

    Attributes:
        tables: Their names in the order of the pages.
        latex: The version line of pdflatex; None where it is not installed.
    """

    tables: tuple[str, ...]
    latex: str | None = None
