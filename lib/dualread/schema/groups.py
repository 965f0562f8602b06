"""Which answers to a question mean the same: what a study says of it, and what the stage is told."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dualread.schema.base import DatasetSplit, Name, Names, Place, Plugin, Section, Share, Wire

GroupedBy = Literal["entailment", "embedding", "judge"]


class JudgingService(Section):
    """A language model behind a service, which `dualread ask` asks."""

    model: Annotated[str, Field(min_length=1)]
    """The name by which the service knows it."""
    folder: Annotated[str, Field(min_length=1)]
    """Where requests are written, and `responses` are read; relative to the repository."""
    body: Wire = Field(default_factory=dict)
    """What is laid over the body of every request."""


class Groups(Section):
    """How a model judges whether answers to a question mean the same: the committed one, and completions of views."""

    by: GroupedBy
    """`entailment`: a classifier of pairs of texts says that each follows from the other; `embedding`: the mean states
    of an encoder are similar; `judge`: a language model says twice that they mean the same, with either one first."""
    of: Names
    """The views with these completions."""
    source: Place | None = None
    """The checkpoint of the model, which transformers opens."""
    service: JudgingService | None = None
    """By judge: the service of the model, in place of a checkpoint."""
    grader: Name | None = None
    """By judge: what it is asked, lib/dualread/grading/graders/<name>.py, such as `equivalence`."""
    with_question: bool = True
    """Whether the question stands before each answer."""
    neutral: bool = False
    """By entailment: whether one direction is enough, where the other one is neutral."""
    threshold: Share | None = None
    """By embedding: the least cosine of two answers that mean the same."""

    @model_validator(mode="after")
    def _are_complete(self) -> Self:
        judged, embedded = self.by == "judge", self.by == "embedding"
        if (self.threshold is None) == embedded or (self.neutral and self.by != "entailment"):
            raise ValueError(
                f"by {self.by}: has `threshold` {self.threshold} and `neutral` {self.neutral}. Expected a `threshold`"
                " by embedding alone, and `neutral` by entailment alone."
            )
        if (self.grader is None) == judged or (judged and not self.with_question) or (self.service and not judged):
            raise ValueError(
                f"by {self.by}: has {sorted(self.model_fields_set - {'by', 'of'})}. Expected a `grader`, which is"
                " always told the question, and perhaps a `service` by judge alone."
            )
        if (self.source is None) == (self.service is None):
            raise ValueError("has `source` and `service`, or neither. Expected one of them.")
        return self


class GroupAnswersSpec(DatasetSplit):
    """Which answers of one shard mean the same."""

    condition: str  # the condition and the view: "original/meaning"
    groups: Groups
    grader: Plugin | None = None  # what a judge is asked
