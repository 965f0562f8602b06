"""Conditions and views: which image, which prompt. Generation and replay build what they show here alone.

A condition is what an actor commits an answer under; a view is what it is asked or shown besides about that answer.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from dualread.data.images import open_image
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.models import prompts

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGES = ("original", "donor", "shuffled", "black")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question as it is put to an actor.

    Attributes:
        sample_id: The question in the manifest.
        text: Text of the user turn.
        image_file: Image shown, relative to the manifest artifact.
        image_id: Name of the image shown; no other image of the manifest has it, but those of other manifests may.
        black: A black image of the same size is shown in its place.
    """

    sample_id: str
    text: str
    image_file: str
    image_id: str
    black: bool = False

    def image(self, manifest: Path) -> "tuple[str, Path | Image]":
        """Return a name to sort by and the image: its file in the `manifest` artifact, or a black one.

        Within the manifest, equal images have equal names. Images of other manifests may have the same name.
        """
        path = manifest / self.image_file
        if not self.black:
            return self.image_id, path
        size = _size(path)
        return f"black {size[0]}x{size[1]}", _black(size)


@cache  # the questions of an image ask for it one by one
def _size(path: Path) -> tuple[int, int]:
    return open_image(path).size


@cache  # one a size: thousands of them would fill the memory
def _black(size: tuple[int, int]) -> "Image":
    from PIL import Image

    return Image.new("RGB", size)


def asked(
    manifest: pl.DataFrame,
    condition: Mapping[str, Any],
    pairs: pl.DataFrame | None,
    answers: Mapping[str, str] | None = None,
) -> list[Asked]:
    """Return what `condition` asks, sorted by sample_id.

    Args:
        manifest: A manifest table.
        condition: `image` is one of `IMAGES`: the question's own; its donor's (questions without one are left out);
            another image of the split, the same for all questions of an image; or black. `prompt`: {"name": ...} of a
            template. `shows`: for a view with a black image, the image of the condition that it is a view of.
        pairs: The pairs of the same split; needed for donors.
        answers: By sample_id, the committed answer that a self-check prompt places; questions without one are not
            asked. None where the prompt places no answer.

    Raises:
        ConfigError: `image` is unknown.
        ArtifactError: A pair names a question that is not in the manifest, or there is no other image to show.
    """
    template, image = condition["prompt"]["name"], condition["image"]
    if image not in IMAGES:
        meant = did_you_mean(image, IMAGES)
        raise ConfigError(f"conditions: image: {image!r} is unknown. Known: {', '.join(IMAGES)}.{meant}")
    rows = shown(manifest, condition.get("shows", "original") if image == "black" else image, pairs)
    if answers is not None:
        rows = rows.filter(pl.col("sample_id").is_in(list(answers)))
    return [
        Asked(
            sample_id=row["sample_id"],
            text=prompts.render(
                template,
                question=_question_field(row["question"], row["options"]),
                answer=None if answers is None else answers[row["sample_id"]],
            ),
            image_file=row["image_file"],
            image_id=row["image_id"],
            black=image == "black",
        )
        for row in rows.sort("sample_id").iter_rows(named=True)
    ]


def shown(manifest: pl.DataFrame, image: str, pairs: pl.DataFrame | None) -> pl.DataFrame:
    """Return the manifest's rows that a condition with `image` (not black) asks, with the image that it shows."""
    if image == "original":
        return manifest
    if image == "shuffled":
        other, on = _successors(manifest), "image_id"
    else:
        assert pairs is not None, "a donor condition needs pairs"
        other, on = _donors(manifest, pairs), "sample_id"
    rows = manifest.join(other, on=on, validate="m:1")
    return rows.with_columns(image_file="shown_file", image_id="shown_id").drop("shown_file", "shown_id")


def forced(completions: pl.DataFrame, images: Mapping[str, str], condition: str) -> pl.DataFrame:
    """Return the completions of some questions, committed under another condition, as those of `condition`.

    For teacher-forced controls and views: the same completion beside another image.

    Args:
        completions: A generations table.
        images: image_id of the image shown, by sample_id of the questions.
        condition: Its name.

    Raises:
        ArtifactError: A question has no completion.
    """
    if missing := sorted(images.keys() - set(completions["sample_id"])):
        raise ArtifactError(f"{condition}: {len(missing)} questions have no completion to force, such as {missing[0]}.")
    found = completions.filter(pl.col("sample_id").is_in(list(images)))
    image_ids = pl.col("sample_id").replace_strict(dict(images), return_dtype=pl.String)
    return found.with_columns(condition=pl.lit(condition), image_id=image_ids)


def _donors(manifest: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    known = set(manifest["sample_id"])
    if unknown := sorted((set(pairs["sample_id"]) | set(pairs["donor_sample_id"])) - known):
        raise ArtifactError(
            f"pairs.parquet: {len(unknown)} questions that the manifest lacks, such as {unknown[0]}. "
            "Pair the donors of this manifest again."
        )
    shown = manifest.select(donor_sample_id="sample_id", shown_file="image_file", shown_id="image_id")
    return pairs.select("sample_id", "donor_sample_id").join(shown, on="donor_sample_id", validate="m:1")


def _successors(manifest: pl.DataFrame) -> pl.DataFrame:
    """Return for each image its successor in the order of sha256(image_id); the last one's is the first.

    A cycle, so no image keeps its own, and each is shown as often as it has questions about its predecessor.
    """
    images = manifest.group_by("image_id").agg(pl.col("image_file").min()).to_dicts()
    if len(images) < 2:
        raise ArtifactError(f"shuffled images: the split has {len(images)} image(s). Expected at least two.")
    images.sort(key=lambda image: hashlib.sha256(image["image_id"].encode()).hexdigest())
    return pl.DataFrame(
        [
            {"image_id": own["image_id"], "shown_file": other["image_file"], "shown_id": other["image_id"]}
            for own, other in zip(images, [*images[1:], images[0]], strict=True)
        ]
    )


def _question_field(question: str, options: list[str]) -> str:
    return prompts.option_field(question, options) if options else question
