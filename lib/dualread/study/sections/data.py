"""Phantom hospitals and data sets."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from dualread.study.sections.kinds import (
    AnswerType,
    AtLeastOne,
    Name,
    NonEmpty,
    Place,
    Positive,
    Section,
    Settings,
    Split,
    Splits,
)

Role = Literal["fit", "stop", "calibration", "validation", "test", "ood"]
Column = Literal["modality", "location", "content_family", "answer_type"]
Fraction = Annotated[float, Field(gt=0, le=1)]


def _kind(value: Any) -> str:
    """Return which alternative a value is meant to be, so that only its own problems are reported."""
    return "(mapping)" if isinstance(value, Mapping) else "(value)"


class Phantom(Section):
    """A phantom hospital: drawn images and questions in the official format of a real data set."""

    format: Name = Field(description="The plugin that writes the files: lib/dualread/data/writers/<format>.py.")
    seed: int = Field(description="The seed of every draw.")
    images: Annotated[dict[Split, Positive], Field(min_length=1)] = Field(description="Images per split.")
    size: Annotated[int, Field(ge=16)] | None = Field(None, description="Width and height of an image in pixels.")
    questions_per_image: Positive | None = Field(None, description="Questions about each image.")
    style: dict[str, Any] | None = Field(None, description="Modalities, noise, palette and other looks.")


class DatasetSource(Place):
    """Where the official files of a data set come from: drawn, in a folder or on the hub."""

    phantom: Name | None = Field(None, description="An entry of `phantoms`, in place of real files.")


class Select(NonEmpty):
    """Which questions of a data set are drawn; each rule narrows what the others leave."""

    answer_types: AtLeastOne[AnswerType] | None = Field(None, description="Only questions of these types.")
    questions: (
        Annotated[
            Annotated[Positive, Tag("(value)")]
            | Annotated[dict[AnswerType, Positive], Field(min_length=1), Tag("(mapping)")],
            Discriminator(_kind),
        ]
        | None
    ) = Field(None, description="How many questions, together or per answer type.")
    max_per_image: Positive | None = Field(None, description="At most so many questions about one image.")


class Pairing(Section):
    """Same-question donors: the same question about another image, with another reference answer."""

    splits: Splits = Field(description="Splits whose questions get donors.")
    match_on: list[Column] = Field(description="Columns of the manifest in which a donor has to agree.")


class Dataset(Section):
    """A data set."""

    label: str = Field(description="Its name in tables and figures.")
    id: bool = Field(False, description="Whether it is in-distribution: actors and readers are fitted on it.")
    loader: Name = Field(description="The plugin that reads its files: lib/dualread/data/datasets/<loader>.py.")
    source: DatasetSource = Field(description="Where its files come from.")
    settings: Settings = Field(default_factory=dict, description="Settings of the loader.")
    splits: Splits = Field(description="The splits that are used.")
    roles: dict[
        str,
        Annotated[
            Annotated[Role, Tag("(value)")] | Annotated[dict[Role, Fraction], Tag("(mapping)")], Discriminator(_kind)
        ],
    ] = Field(description="What each split is for: one role, or the fraction of its images per role.")
    seed: int = Field(description="The seed of the partition by image, and of the draw by `select`.")
    select: Select | None = Field(None, description="Which questions are drawn; without it, all.")
    expect_sha256: dict[Split, Annotated[str, Field(pattern="^[0-9a-f]{64}$")]] | None = Field(
        None, description="Digests of the manifests per split, as build_manifest prints them; others are refused."
    )
    bits: Annotated[int, Field(ge=9, le=16)] | None = Field(
        None, description="How many bits of its 16-bit gray images count where their files do not say it."
    )
    pairing: Pairing | None = Field(None, description="Which questions get donors; without it, none.")
    prompt: Name = Field(description="The prompt, unless condition, actor or view name one: models/prompts/<name>.txt.")
