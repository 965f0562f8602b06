"""Tables and figures: what a study says of them, and what their stages are told: order, labels and settings."""

from collections.abc import Sequence
from typing import Any, Literal

from dualread.errors import ConfigError
from dualread.schema.base import Listed, Name, Names, Plugin, Section, Seeds

# The group of methods that serve as a reference only; they are never bold.
NULL_GROUP = "Null"


class Table(Section):
    """What a table shows. Its rows are all methods, all `without` some, or exactly `methods`."""

    methods: Names | None = None
    """Its rows, in this order."""
    without: Names | None = None
    """Methods that are not shown."""
    datasets: Names | None = None
    """The data sets that are shown; without it, all."""
    seeds: Seeds | None = None
    """The seeds that means run over; without it, all."""
    method: Name | None = None
    """The method that is compared with every other row."""


class Figure(Section):
    """What a figure shows. READS of the figure's plugin says which of the keys it has."""

    actors: Names | None = None
    """Actors whose training is drawn."""
    methods: Names | None = None
    """Methods whose confidences are drawn."""
    datasets: Names | None = None
    """The data sets that are drawn."""


class Shown(Section):
    """What a table or figure of a study has besides numbers."""

    study: str  # the study's name, for captions
    # What is resampled, by label of a data set: image, patient, or image set; read in the manifests by the stage.
    units: dict[str, str] | None = None

    def in_units(self, text: str) -> str:
        """Return a text with what is resampled in place of {unit} and {units}; where it differs, with who has which."""
        unit_of = self.units or {"": "image"}
        units = list(dict.fromkeys(unit_of.values()))
        named = text.replace("{unit}", " or ".join(units)).replace("{units}", " or ".join(f"{unit}s" for unit in units))
        if named == text or len(units) == 1:
            return named
        labels = {unit: ", ".join(label for label in unit_of if unit_of[label] == unit) for unit in units}
        stop = "" if named.endswith(".") else "."
        return f"{named}{stop} Resampled are {'; '.join(f'{unit}s of {labels[unit]}' for unit in units)}."

    def units_of(self, label: str) -> str:
        """Return the word for what is resampled of a data set: images, patients, or image sets."""
        return f"{(self.units or {}).get(label, 'image')}s"


class Labeled(Section):
    """An entry of the config and the label that is printed for it."""

    name: str
    label: str


class LabeledBackbone(Labeled):
    """A block of rows. Its means are over the actor seeds `seeds`; an actor without seeds has one run, with seed 0."""

    seeds: Listed[int]


class LabeledMethod(Labeled):
    """A row of every block."""

    group: str  # the label of its group of methods
    actor: str  # the actor whose answers it judges
    readers: Listed[str]  # its reader, and the readers that it builds on
    cost: str | None = None  # its cost according to the paper, in LaTeX; None where the paper gives none
    # Where the states that it reads come from: the pass that made the answers; None if from a replay, or for none.
    states: Literal["generation"] | None = None
    # On which other actor, or seed, its reader was fitted; None where it is fitted on the answers that it judges.
    transfer: str | None = None
    # What views cost that fitting alone reads, per answer on which it is fitted, as `cost`; None for nothing.
    fitting: str | None = None


class LabeledDataset(Labeled):
    """A data set of the study; exactly one is in-distribution (`id`)."""

    id: bool
    role: str | None = None  # the role of the image that donors exchange alone; None where they exchange all images


class Layout(Shown):
    """What a table prints besides numbers."""

    backbones: Listed[LabeledBackbone]  # in the order of the blocks
    methods: Listed[LabeledMethod]  # in the order of the rows of a block
    datasets: Listed[LabeledDataset]  # those of the study
    contrasts: Listed[str] = ()  # names of the contrasts to show, for tables that read them

    def model_post_init(self, context: Any) -> None:
        """Refuse a layout without exactly one in-distribution data set.

        Raises:
            ConfigError: It has none, or several.
        """
        if (n := sum(dataset.id for dataset in self.datasets)) != 1:
            raise ConfigError(f"layout: {n} data sets are marked as in-distribution (id: true), expected exactly one.")

    @property
    def seeds(self) -> dict[str, Sequence[int]]:
        """The seeds of each backbone."""
        return {backbone.name: backbone.seeds for backbone in self.backbones}

    @property
    def id_dataset(self) -> LabeledDataset:
        """The in-distribution data set."""
        return next(dataset for dataset in self.datasets if dataset.id)


class StudySettings(Shown):
    """What a table of settings prints."""

    config: dict[str, Any]  # the sections of the config that the table's CONFIG names
    order: dict[str, Listed[str]]  # the names of each section of its ORDERED; a job's text sorts keys
    software: dict[str, str]  # the versions of the packages that its SOFTWARE names
    # The constants that its CONSTANTS names, of each plugin that the study has: {"readers.bicr.OPTIMIZER": "Adam"}.
    constants: dict[str, Any]
    trainings: Listed[Plugin]  # what trains the actors: the defaults of settings are in these plugins


class BuildTableSpec(Section):
    """A table; `settings` for a table of settings, `layout` for any other."""

    table: Plugin
    layout: Layout | None = None
    settings: StudySettings | None = None


class PreviewTablesSpec(Section):
    """All tables as one PDF."""

    tables: Listed[str]  # their names in the order of the pages
    latex: str | None = None  # the version line of pdflatex; None where it is not installed


class LabeledCondition(Section):
    """A condition, and what is done to its images."""

    name: str
    image: str  # the image change
    strength: float | None = None  # its strength; None if it has none


class FigureLayout(Shown):
    """What a figure shows, in this order and under these labels; what the figure does not read is empty."""

    backbones: Listed[Labeled]
    actors: Listed[Labeled] = ()
    methods: Listed[Labeled] = ()
    datasets: Listed[Labeled] = ()
    conditions: Listed[LabeledCondition] | None = None  # all but the original; None for figures that read no metrics
    # By method, the depth of the layer that it reads; None for figures that read no metrics.
    layers: dict[str, float] | None = None


class DrawFigureSpec(Section):
    """A figure."""

    figure: Plugin
    layout: FigureLayout
