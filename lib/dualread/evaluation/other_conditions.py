"""The conditions that answers are committed under, and the answers under those that are none of the paper's."""

from collections.abc import Iterable

import polars as pl

from dualread.evaluation.same_rows import beside, check_same_questions

# Control conditions: the source's answer forced on the donor's image, and a new answer on another image.
FIXED_PREFIX, SHUFFLED = "donor_fixed_prefix", "shuffled_image"
ORIGINAL, DONOR = "original", "donor"
_OF_THE_PAPER = (ORIGINAL, DONOR, FIXED_PREFIX, SHUFFLED)


def conditions_of(graded: Iterable[str]) -> list[str]:
    """Return all conditions if one is none of the paper's: original, and the others sorted; none otherwise."""
    names = set(graded)
    return [ORIGINAL, *sorted(names - {ORIGINAL})] if names.difference(_OF_THE_PAPER) else []


def beside_original(where: str, condition: str, answers: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the original `answers` to the questions of a condition beside those under it (`Joined.conditions`)."""
    shard = f"{where}/{condition}"
    real = answers.join(other.select("sample_id"), on="sample_id", how="semi", maintain_order="left")
    check_same_questions(shard, other, "answers", real, "manifest")
    # What was done to an image makes another one of it.
    changed = pl.when(other["image_id"] == real["image_id"]).then(pl.format("{} of {}", pl.lit(condition), "image_id"))
    return beside(
        real.select("sample_id", "answer_type", "correct", "confidence", source_image_id="image_id").rename(
            {"correct": "correct_real", "confidence": "confidence_real"}
        ),
        other.select(
            changed.otherwise("image_id").alias("other_image_id"),
            correct_other="correct",
            confidence_other="confidence",
        ),
    )
