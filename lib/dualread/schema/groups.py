"""Which answers to a question mean the same: what a study says of it, and what the stage is told."""

from typing import Literal, Self

from pydantic import model_validator

from dualread.schema.base import DatasetSplit, Names, Place, Section, Share

GroupedBy = Literal["entailment", "embedding"]


class Groups(Section):
    """How a model judges whether answers to a question mean the same: the committed one, and completions of views."""

    by: GroupedBy
    """`entailment`: a classifier of pairs of texts says that each follows from the other; `embedding`: the mean states
    of an encoder are similar."""
    of: Names
    """The views with these completions."""
    source: Place
    """The checkpoint of the model, which transformers opens."""
    with_question: bool = True
    """Whether the question stands before each answer."""
    neutral: bool = False
    """By entailment: whether one direction is enough, where the other one is neutral."""
    threshold: Share | None = None
    """By embedding: the least cosine of two answers that mean the same."""

    @model_validator(mode="after")
    def _are_complete(self) -> Self:
        if (self.threshold is None) == (self.by == "embedding") or (self.neutral and self.by == "embedding"):
            raise ValueError(
                f"by {self.by}: has `threshold` {self.threshold} and `neutral` {self.neutral}. Expected a `threshold`"
                " by embedding alone, and `neutral` by entailment alone."
            )
        return self


class GroupAnswersSpec(DatasetSplit):
    """Which answers of one shard mean the same."""

    condition: str
    """The condition and the view: "original/meaning"."""
    groups: Groups
