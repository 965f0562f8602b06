"""Phantom hospitals, data sets and donors: what a study says of them, and what their stages are told."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, TypeAdapter, ValidationError

from dualread.errors import ConfigError
from dualread.schema.base import (
    AnswerType,
    AtLeastOne,
    ConfiguredPlugin,
    DatasetSplit,
    Listed,
    Name,
    NonEmpty,
    Place,
    Plugin,
    Positive,
    Repository,
    RunSpec,
    Section,
    Sha256,
    Split,
    Splits,
    Unit,
    Wire,
)

Role = Literal["fit", "stop", "calibration", "validation", "test", "ood"]
Column = Literal["modality", "location", "content_family", "answer_type"]
Fraction = Annotated[float, Field(gt=0, le=1)]


def _rising(window: tuple[float, float]) -> tuple[float, float]:
    if window[0] >= window[1]:
        raise ValueError(f"the window is {list(window)}. Expected its low end before its high end.")
    return window


def _tuples(value: Any) -> Any:
    return (
        tuple(tuple(part) if isinstance(part, list) else part for part in value) if isinstance(value, list) else value
    )


Window = Annotated[tuple[float, float], AfterValidator(_rising)]
CtWindows = Annotated[tuple[Window, Window, Window], BeforeValidator(_tuples)]


def ct_windows_of(windows: Any) -> CtWindows | None:
    """Return three windows, checked; None for None.

    Raises:
        ConfigError: There are not three of them, or one is no low end with a higher one.
    """
    try:
        return None if windows is None else TypeAdapter(CtWindows).validate_python(windows)
    except ValidationError as error:
        raise ConfigError(
            f"ct_windows {windows!r}: expected three windows of Hounsfield units, each with its low end and its high"
            " end, such as [[-1024, 1024], [-135, 215], [0, 80]]."
        ) from error


def _kind(value: Any) -> str:
    """Return which alternative a value is meant to be, so that only its own problems are reported."""
    return "(mapping)" if isinstance(value, Mapping) else "(value)"


class Phantom(Section):
    """A phantom hospital: drawn images and questions in the official format of a real data set."""

    format: Name
    """The plugin that writes the files: lib/dualread/training/writers/<format>.py."""
    seed: int
    """The seed of every draw."""
    images: Annotated[Mapping[Split, Positive], Field(min_length=1)]
    """Images per split."""
    size: Annotated[int, Field(ge=16)] | None = None
    """Width and height of an image in pixels."""
    questions_per_image: Positive | None = None
    """Questions about each image."""
    style: dict[str, Any] | None = None
    """Modalities, noise, palette and other looks."""


class DatasetSource(Place):
    """Where the official files of a data set come from: drawn, in a folder or on the hub."""

    phantom: Name | None = None
    """An entry of `phantoms`, in place of real files."""


class Select(NonEmpty):
    """Which questions of a data set are drawn; each rule narrows what the others leave."""

    answer_types: AtLeastOne[AnswerType] | None = None
    """Only questions of these types."""
    questions: (
        Annotated[
            Annotated[Positive, Tag("(value)")]
            | Annotated[dict[AnswerType, Positive], Field(min_length=1), Tag("(mapping)")],
            Discriminator(_kind),
        ]
        | None
    ) = None
    """How many questions, together or per answer type."""
    max_per_image: Positive | None = None
    """At most so many questions about one image."""


class Pairing(Section):
    """Same-question donors: the same question about another image, with another reference answer."""

    splits: Splits
    """Splits whose questions get donors."""
    match_on: list[Column]
    """Columns of the manifest in which a donor has to agree."""
    role: Name | None = None
    """The role of the image that a donor exchanges alone, such as `current`; its other images are the question's own.
    By default, all images are exchanged."""


PluginChoice = Annotated[
    Annotated[Name, Tag("(value)")] | Annotated[dict[Name, Wire], Field(min_length=1, max_length=1), Tag("(mapping)")],
    Discriminator(_kind),
]


def plugin_and_settings(choice: str | Mapping[str, Wire]) -> tuple[str, Wire]:
    """Return the plugin that an entry chooses, and its settings."""
    return (choice, {}) if isinstance(choice, str) else next(iter(choice.items()))


class Claims(Section):
    """Answers to a data set are reports: where their claims are, and which of them are supported."""

    spans: PluginChoice
    """How a report is divided into claims: lib/dualread/grading/spans/<plugin>.py, or {plugin: its settings}."""
    labels: PluginChoice
    """What says whether a claim is supported: lib/dualread/grading/claim_labels/<plugin>.py, or {plugin: its settings}.
    """


class Dataset(Section):
    """A data set."""

    label: str
    """Its name in tables and figures."""
    id: bool = False
    """Whether it is in-distribution: actors and readers are fitted on it."""
    loader: Name
    """The plugin that reads its files: lib/dualread/data/datasets/<loader>.py."""
    source: DatasetSource
    """Where its files come from."""
    settings: Wire = Field(default_factory=dict)
    """Settings of the loader."""
    splits: Splits
    """The splits that are used."""
    roles: dict[
        str,
        Annotated[
            Annotated[Role, Tag("(value)")] | Annotated[dict[Role, Fraction], Tag("(mapping)")], Discriminator(_kind)
        ],
    ]
    """What each split is for: one role, or the fraction of its clusters (patients, or images) per role."""
    seed: int
    """The seed of the partition by cluster, and of the draw by `select`."""
    select: Select | None = None
    """Which questions are drawn; without it, all."""
    expect_sha256: dict[Split, Sha256] | None = None
    """Digests of the manifests per split, as build_manifest prints them; others are refused."""
    bits: Annotated[int, Field(ge=9, le=16)] | None = None
    """How many bits of its 16-bit gray images count where their files do not say it."""
    ct_windows: CtWindows | None = None
    """Three windows [low, high] of Hounsfield units through which its CT is shown, as red, green and blue."""
    pairing: Pairing | None = None
    """Which questions get donors; without it, none."""
    prompt: Name
    """The prompt, unless condition, actor or view name one: models/prompts/<name>.txt."""
    claims: Claims | None = None
    """Set where answers are reports, of which each claim gets a confidence; without it, the answer is the one claim."""


class DrawPhantomSpec(Section):
    """A phantom hospital."""

    name: str
    writer: Plugin  # the plugin that writes the official files
    phantom: Phantom


class DownloadFiles(Repository):
    """Files of a repository."""

    files: Listed[str]  # patterns of their names


class DownloadDatasetSpec(Section):
    """The official files of a data set."""

    loader: str  # the name of the data set's plugin, whose TERMS messages quote
    source: DownloadFiles | None = None  # what to download; None if the files have to be put into `folder` by hand
    folder: str | None = None  # the folder in which the files were expected


class BuildManifestSpec(Section):
    """The table of questions of one split."""

    dataset: str
    split: str
    loader: Plugin
    settings: Wire
    roles: Role | dict[str, Fraction]
    seed: int
    select: Select | None = None
    expect_sha256: str | None = None  # the digest that the manifest must have; None for any
    # How many bits of 16-bit gray images count where the file does not say it; None refuses dark ones.
    bits: int | None = None
    # Three windows [low, high] of Hounsfield units through which CT is shown; None shows what the file says.
    ct_windows: CtWindows | None = None
    resample: Unit = "cluster"  # whether patients are clusters, or every image is its own


class ClaimsSpec(Section):
    """How the reports of a shard are divided into claims, and how these are labeled."""

    spans: ConfiguredPlugin
    labels: ConfiguredPlugin
    thinking_ends: str | None = None  # what ends the thinking before a report; None where completions do not think


class ListClaimsSpec(DatasetSplit, RunSpec):
    """The table of the claims of a run's reports on one split, in the place of the table of questions."""


class PairDonorsSpec(Section):
    """The donors of one split."""

    dataset: str
    split: str
    # The columns in which source and donor must agree. Data sets that name their donors do not use them.
    match_on: list[Column]
    role: str | None = None  # the role of the images that are exchanged; None for all images
