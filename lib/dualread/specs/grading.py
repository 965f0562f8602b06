"""The spec of grades."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GradeSpec:
    """The grades of one shard.

    Attributes:
        contract: The form of the completions, see `grading.parse`.
        image: Which image was shown, see `models.conditions.shown`.
        completions: The condition whose completions are forced here; None if the shard has its own.
    """

    contract: str
    dataset: str
    split: str
    condition: str
    image: str
    completions: str | None = None
