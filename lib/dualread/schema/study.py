"""A whole study as its YAML files describe it: which sections there are, and what they mean.

What depends on several sections is checked in `dualread.study.checks`.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from dualread.schema.answers import Actor, Condition, Generation, View
from dualread.schema.backbones import Backbone
from dualread.schema.base import Above0, AtLeastOne, Name, Names, Positive, Section, Seeds, Unit
from dualread.schema.data import Dataset, Phantom
from dualread.schema.metrics import Contrast, Metrics
from dualread.schema.readers import Method
from dualread.schema.replay import Replay
from dualread.schema.tables import Figure, Table

# Those that transformers can find out to be installed.
Tracker = Literal[
    "azure_ml", "clearml", "codecarbon", "comet_ml", "dagshub", "dvclive", "kubeflow", "mlflow", "neptune", "swanlab",
    "tensorboard", "trackio", "wandb",
]  # fmt: skip


class Machine(Section):
    """The machine that the study runs on; no result depends on it."""

    model_job_memory_gb: Above0
    """Memory that one model job may need."""
    vllm: Literal["cuda", "cpu"]
    """Which build of vLLM is installed where a study needs it."""
    report_to: AtLeastOne[Tracker] | None = None
    """Trackers that get the log of each training while it runs; without it, none."""
    samples_every: Positive | None = None
    """Steps of a training between two samples of completions and rewards in its log; without it, there are none."""


class Only(Section):
    """A part of the study: only these entries, and what they cannot do without."""

    backbones: Names | None = None
    """The backbones that are chosen; without it, all."""
    actors: Names | None = None
    """The actors that are chosen; without it, all."""
    seeds: Seeds | None = None
    """The seeds that are chosen; without it, all."""
    datasets: Names | None = None
    """The data sets that are chosen; without it, all."""
    methods: Names | None = None
    """The methods that are chosen; without it, all."""


def _with_original(conditions: dict[str, Condition]) -> dict[str, Condition]:
    if "original" not in conditions:
        raise ValueError(f"{list(conditions)}. Add `original`: every study commits answers to the images themselves.")
    return conditions


class Config(Section):
    """A whole study, as its YAML files describe it."""

    study: Name
    """The name of the study; results go to results/<study>."""
    store: Annotated[str, Field(min_length=1)]
    """The folder of computed artifacts; studies share it."""
    seeds: Seeds
    """One actor is trained per backbone, actor entry and seed."""
    resample: Unit = "cluster"
    """What has one role, is never its own donor, and is resampled as a whole: `cluster`, which is the patient where the
    data set's files name one and else the image; or `image`."""
    machine: Machine
    """The machine that the study runs on."""
    phantoms: dict[Name, Phantom] = Field(default_factory=dict)
    """Phantom hospitals."""
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)]
    """Data sets."""
    backbones: Annotated[dict[Name, Backbone], Field(min_length=1)]
    """Models that actors start from."""
    actors: Annotated[dict[Name, Actor], Field(min_length=1)]
    """Who answers."""
    generation: Generation
    """How answers are generated."""
    conditions: Annotated[dict[Name, Condition], AfterValidator(_with_original)]
    """Under what answers are committed."""
    views: dict[Name, View] = Field(default_factory=dict)
    """What actors are asked about their answers."""
    replay: Replay
    """The pass that gives hidden states."""
    methods: Annotated[dict[Name, Method], Field(min_length=1)]
    """Methods, in the order of tables."""
    metrics: Metrics
    """How confidences are judged."""
    subgroups: Names | None = None
    """Columns whose values are groups of answers: modality, location, content_family or answer_type of the table of
    questions, or further ones that a data set reads (`settings.subgroups` of the loader `table`). The table and the
    figure `subgroups` show each group, and the tables of answers that a study exports have the columns."""
    tables: dict[Name, Table]
    """Tables: lib/dualread/reporting/tables/<name>.py."""
    contrasts: dict[Name, Contrast] = Field(default_factory=dict)
    """Comparisons of two methods."""
    only: Only | None = None
    """The part of the study that is wanted."""
    figures: dict[Name, Figure] = Field(default_factory=dict)
    """Figures: lib/dualread/reporting/figures/<name>.py."""

    # By actor, the reason for each method that is not in `methods`, because given answers lack what it reads.
    _left_out: dict[str, dict[str, str]] = PrivateAttr(default_factory=dict)

    @property
    def left_out(self) -> dict[str, dict[str, str]]:
        """The methods of the study's files that were left out (`dualread.study.selection`): actor, method, reason."""
        return self._left_out

    def as_mapping(self) -> dict[str, Any]:
        """Return the config as plain mappings and lists, without the keys that its files leave out."""
        return self.model_dump(exclude_unset=True, exclude_none=True)

    def seeds_of(self, backbone: str) -> list[int]:
        """Return the seeds of a backbone: its own, or the study's."""
        return self.backbones[backbone].seeds or self.seeds
