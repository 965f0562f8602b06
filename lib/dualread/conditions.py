"""Conditions: which image, which prompt. Generation and replay build their inputs here, so they cannot differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from dualread import prompts
from dualread.errors import ArtifactError, ConfigError


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question as it is put to an actor under a condition.

    Attributes:
        sample_id: The question in the manifest.
        text: Text of the user turn.
        image_file: Image shown, relative to the manifest artifact.
        image_id: Identity of the image shown.
    """

    sample_id: str
    text: str
    image_file: str
    image_id: str


def asked(manifest: pl.DataFrame, condition: Mapping[str, Any], pairs: pl.DataFrame | None) -> list[Asked]:
    """Return what `condition` asks, sorted by sample_id.

    Args:
        manifest: A manifest table.
        condition: `image`: "original" shows the question's own image, "donor" the image of its donor (questions
            without one are left out); `prompt`: {"name": ...} of a template.
        pairs: The pairs of the same split; needed for donors.

    Raises:
        ConfigError: `image` is neither.
        ArtifactError: A pair names a question that is not in the manifest.
    """
    template = condition["prompt"]["name"]
    if condition["image"] == "original":
        rows = manifest
    elif condition["image"] == "donor":
        assert pairs is not None, "a donor condition needs pairs"
        known = set(manifest["sample_id"])
        if unknown := sorted((set(pairs["sample_id"]) | set(pairs["donor_sample_id"])) - known):
            raise ArtifactError(
                f"pairs.parquet: {len(unknown)} questions that the manifest lacks, such as {unknown[0]}. "
                "Pair the donors of this manifest again."
            )
        shown = manifest.select(donor_sample_id="sample_id", shown_file="image_file", shown_id="image_id")
        rows = manifest.join(pairs.select("sample_id", "donor_sample_id"), on="sample_id", validate="1:1")
        rows = rows.join(shown, on="donor_sample_id", validate="m:1")
        rows = rows.with_columns(image_file="shown_file", image_id="shown_id")
    else:
        raise ConfigError(f"conditions: image: {condition['image']!r} is unknown. Known: original, donor.")
    return [
        Asked(
            sample_id=row["sample_id"],
            text=prompts.render(template, question=_question_field(row["question"], row["options"])),
            image_file=row["image_file"],
            image_id=row["image_id"],
        )
        for row in rows.sort("sample_id").iter_rows(named=True)
    ]


def _question_field(question: str, options: list[str]) -> str:
    return prompts.option_field(question, options) if options else question
