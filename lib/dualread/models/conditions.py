"""Conditions and views: which image and which prompt an actor gets. Generation and replay both build their inputs here.

Under a condition, an actor commits an answer. A view asks or shows the actor something more about that answer.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from dualread.data.images import open_image
from dualread.declared.answers import Image
from dualread.errors import ArtifactError
from dualread.models import prompts

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question as it is put to an actor.

    Attributes:
        sample_id: Id of the question in the manifest.
        text: Text of the user turn.
        image_file: File of the image that is shown, relative to the manifest artifact.
        image_id: Id of the image that is shown; unique within the manifest, but not across manifests.
        black: Whether a black image of the same size is shown instead.
    """

    sample_id: str
    text: str
    image_file: str
    image_id: str
    black: bool = False

    def image(self, manifest: Path) -> "tuple[str, Path | Picture]":
        """Return the image, either its file in the `manifest` artifact or a black image, preceded by a name to sort by.

        Within a manifest, equal images have equal names. Images of other manifests may have the same name.
        """
        path = manifest / self.image_file
        if not self.black:
            return self.image_id, path
        picture = black(path)
        return f"black {picture.width}x{picture.height}", picture


def asked(
    manifest: pl.DataFrame,
    *,
    image: Image,
    prompt: str,
    shows: str = "original",
    pairs: pl.DataFrame | None = None,
    answers: Mapping[str, str] | None = None,
) -> Iterator[Asked]:
    """Yield the questions of a condition or view, sorted by sample_id.

    Args:
        manifest: A manifest table.
        image: "original", the question's own image; "donor", its donor's image (questions without a
            donor are left out); "shuffled", another image of the split, the same for all questions about an image;
            "black", a black image.
        prompt: Name of the template.
        shows: For a view with a black image, the `image` of the condition that the view belongs to.
        pairs: The pairs table of the same split; needed for donors.
        answers: The committed answer of each sample_id, which the prompt of a self-check contains; questions without
            an answer are left out. None for prompts without an answer.

    Raises:
        ArtifactError: A pair names a question that is not in the manifest, or the split has no other image to show.
    """
    rows = shown(manifest, shows if image == "black" else image, pairs)
    if answers is not None:
        rows = rows.filter(pl.col("sample_id").is_in(list(answers)))
    rows = rows.select("sample_id", "question", "options", "image_file", "image_id").sort("sample_id")
    return (
        Asked(
            sample_id=row["sample_id"],
            text=prompts.render(
                prompt,
                question=question_field(row["question"], row["options"]),
                answer=None if answers is None else answers[row["sample_id"]],
            ),
            image_file=row["image_file"],
            image_id=row["image_id"],
            black=image == "black",
        )
        for row in rows.iter_rows(named=True)
    )


def question_field(question: str, options: list[str]) -> str:
    """Return what a prompt gets as its question: the question, with its options if it has any."""
    return prompts.option_field(question, options) if options else question


def shown(manifest: pl.DataFrame, image: str, pairs: pl.DataFrame | None) -> pl.DataFrame:
    """Return the rows of the manifest that a condition with `image` (other than "black") asks, with the image shown."""
    if image == "original":
        return manifest
    if image == "shuffled":
        other, on = _successors(manifest), "image_id"
    else:
        assert pairs is not None, "a donor condition needs pairs"
        other, on = _donors(manifest, pairs), "sample_id"
    rows = manifest.join(other, on=on, validate="m:1")
    return rows.with_columns(image_file="shown_file", image_id="shown_id").drop("shown_file", "shown_id")


def _donors(manifest: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    known = set(manifest["sample_id"])
    if unknown := sorted((set(pairs["sample_id"]) | set(pairs["donor_sample_id"])) - known):
        raise ArtifactError(
            f"pairs.parquet: {len(unknown)} questions are not in the manifest, such as {unknown[0]}. "
            "Expected pairs of this manifest. Pair its donors again."
        )
    shown = manifest.select(donor_sample_id="sample_id", shown_file="image_file", shown_id="image_id")
    return pairs.select("sample_id", "donor_sample_id").join(shown, on="donor_sample_id", validate="m:1")


def _successors(manifest: pl.DataFrame) -> pl.DataFrame:
    """Return for each image its successor in the order of sha256(image_id); the last image is followed by the first.

    In this cycle no image is its own successor, and each image is shown for the questions about its predecessor.
    """
    images = manifest.group_by("image_id").agg(pl.col("image_file").min()).to_dicts()
    if len(images) < 2:
        raise ArtifactError(
            f"shuffled images: the split has {len(images)} image(s), expected at least two. Leave the condition with"
            " shuffled images out, or use a split with more images."
        )
    images.sort(key=lambda image: hashlib.sha256(image["image_id"].encode()).hexdigest())
    return pl.DataFrame(
        [
            {"image_id": own["image_id"], "shown_file": other["image_file"], "shown_id": other["image_id"]}
            for own, other in zip(images, [*images[1:], images[0]], strict=True)
        ]
    )


def forced(completions: pl.DataFrame, images: Mapping[str, str], condition: str) -> pl.DataFrame:
    """Return completions that were committed under another condition, relabeled as completions of `condition`.

    Teacher-forced controls and views read the same completion with another image.

    Args:
        completions: A generations table.
        images: The image_id of the image that is shown, by sample_id; other questions are left out.
        condition: Name of the condition or view.

    Raises:
        ArtifactError: A question has no completion.
    """
    if missing := sorted(images.keys() - set(completions["sample_id"])):
        raise ArtifactError(
            f"{condition}: {len(missing)} questions have no committed completion, such as {missing[0]}. Expected one"
            " each. Generate the condition again that the completions come from."
        )
    found = completions.filter(pl.col("sample_id").is_in(list(images)))
    image_ids = pl.col("sample_id").replace_strict(dict(images), return_dtype=pl.String)
    return found.with_columns(condition=pl.lit(condition), image_id=image_ids)


def black(image: "Path | Picture") -> "Picture":
    """Return a black picture of the size of `image`."""
    return _black(_size(image) if isinstance(image, Path) else image.size)


@cache  # called once for every question about an image
def _size(path: Path) -> tuple[int, int]:
    return open_image(path).size


@cache  # one per size: one per question would fill the memory
def _black(size: tuple[int, int]) -> "Picture":
    from PIL import Image

    return Image.new("RGB", size)
