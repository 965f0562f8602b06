"""The sections of a config as typed, frozen models: which keys there are, their types, and what they mean.

What depends on several sections is checked in `dualread.study.checks`.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from dualread.study.sections.answers import Actor, Condition, Generation, Replay, View
from dualread.study.sections.backbones import Backbone
from dualread.study.sections.data import Dataset, Phantom
from dualread.study.sections.kinds import Name, Names, Section, Seeds
from dualread.study.sections.results import Contrast, Figure, Method, Metrics, Table, Tuning


class Machine(Section):
    """The machine that the study runs on; no result depends on it."""

    model_job_memory_gb: Annotated[float, Field(gt=0)] = Field(description="Memory that one model job may need.")
    vllm: Literal["cuda", "cpu"] = Field(description="Which build of vLLM is installed where a study needs it.")


class Only(Section):
    """A part of the study: only these entries, and what they cannot do without."""

    backbones: Names | None = Field(None, description="The backbones that are chosen; without it, all.")
    actors: Names | None = Field(None, description="The actors that are chosen; without it, all.")
    seeds: Seeds | None = Field(None, description="The seeds that are chosen; without it, all.")
    datasets: Names | None = Field(None, description="The data sets that are chosen; without it, all.")
    methods: Names | None = Field(None, description="The methods that are chosen; without it, all.")


def _with_original(conditions: dict[str, Condition]) -> dict[str, Condition]:
    if "original" not in conditions:
        raise ValueError(f"{list(conditions)}. Add `original`: every study commits answers to the images themselves.")
    return conditions


class Config(Section):
    """A whole study, as its YAML files describe it."""

    study: Name = Field(description="The name of the study; results go to results/<study>.")
    store: Annotated[str, Field(min_length=1)] = Field(
        description="The folder of computed artifacts; studies share it."
    )
    seeds: Seeds = Field(description="One actor is trained per backbone, actor entry and seed.")
    machine: Machine = Field(description="The machine that the study runs on.")
    phantoms: dict[Name, Phantom] = Field(default_factory=dict, description="Phantom hospitals.")
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)] = Field(description="Data sets.")
    backbones: Annotated[dict[Name, Backbone], Field(min_length=1)] = Field(
        description="Models that actors start from."
    )
    actors: Annotated[dict[Name, Actor], Field(min_length=1)] = Field(description="Who answers.")
    generation: Generation = Field(description="How answers are generated.")
    conditions: Annotated[dict[Name, Condition], AfterValidator(_with_original)] = Field(
        description="Under what answers are committed."
    )
    views: dict[Name, View] = Field(default_factory=dict, description="What actors are asked about their answers.")
    replay: Replay = Field(description="The pass that gives hidden states.")
    methods: Annotated[dict[Name, Method], Field(min_length=1)] = Field(description="Methods, in the order of tables.")
    metrics: Metrics = Field(description="How confidences are judged.")
    tables: dict[Name, Table] = Field(description="Tables: lib/dualread/reporting/tables/<name>.py.")
    contrasts: dict[Name, Contrast] = Field(default_factory=dict, description="Comparisons of two methods.")
    tuning: dict[Name, Tuning] = Field(default_factory=dict, description="Searches for settings, by method.")
    only: Only | None = Field(None, description="The part of the study that is wanted.")
    figures: dict[Name, Figure] = Field(
        default_factory=dict, description="Figures: lib/dualread/reporting/figures/<name>.py."
    )

    # By actor, the reason for each method that is not in `methods`, because given answers lack what it reads.
    _left_out: dict[str, dict[str, str]] = PrivateAttr(default_factory=dict)

    @property
    def left_out(self) -> dict[str, dict[str, str]]:
        """The methods of the study's files that were left out (`dualread.study.given`): actor, method, reason."""
        return self._left_out

    def as_mapping(self) -> dict[str, Any]:
        """Return the config as plain mappings and lists, without the keys that its files leave out."""
        return self.model_dump(exclude_unset=True, exclude_none=True)

    def seeds_of(self, backbone: str) -> list[int]:
        """Return the seeds of a backbone: its own, or the study's."""
        return self.backbones[backbone].seeds or self.seeds
