"""The specs of data sets: phantom hospitals, downloads, manifests and pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dualread.specs.parts import Plugin, Repository, Settings


@dataclass(frozen=True, kw_only=True)
class DrawPhantomSpec:
    """A phantom hospital.

    Attributes:
        writer: The plugin that writes the official files.
        images: The number of images per split, for one or more splits of the format.
        size: Width and height of an image in pixels; None for the default of `data.writers.base.Hospital`.
        questions_per_image: The same.
        style: The fields of `data.phantoms.scene.Style` that are not the default.
    """

    name: str
    writer: Plugin
    seed: int
    images: Mapping[str, int]
    size: int | None = None
    questions_per_image: int | None = None
    style: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class DownloadFiles(Repository):
    """Files of a repository; `files` are patterns of their names."""

    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DownloadDatasetSpec:
    """The official files of a data set.

    Attributes:
        loader: The name of the data set's plugin, whose TERMS messages quote.
        source: What to download; None if the files have to be put into `folder` by hand.
        folder: The folder in which the files were expected.
    """

    loader: str
    source: DownloadFiles | None = None
    folder: str | None = None


@dataclass(frozen=True, kw_only=True)
class Select:
    """Which questions are drawn; each rule narrows what the others leave, and None leaves all.

    Attributes:
        answer_types: Only questions of these types.
        questions: How many questions, together or per answer type.
        max_per_image: At most so many questions about one image.
    """

    answer_types: tuple[str, ...] | None = None
    questions: int | Mapping[str, int] | None = None
    max_per_image: int | None = None


@dataclass(frozen=True, kw_only=True)
class BuildManifestSpec:
    """The table of questions of one split.

    Attributes:
        roles: One role, or the fraction of the images per role.
        seed: The seed of the partition by image, and of the draw by `select`.
        expect_sha256: The digest that the manifest must have; None for any.
        bits: How many bits of 16-bit gray images count where the file does not say it; None refuses dark ones.
    """

    dataset: str
    split: str
    loader: Plugin
    settings: Settings
    roles: str | Mapping[str, float]
    seed: int
    select: Select = Select()
    expect_sha256: str | None = None
    bits: int | None = None


@dataclass(frozen=True, kw_only=True)
class PairDonorsSpec:
    """The donors of one split.

    Attributes:
        match_on: The columns in which source and donor must agree. Data sets that name their donors do not use them.
    """

    match_on: tuple[str, ...]
