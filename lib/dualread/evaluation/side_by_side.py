"""Tables of the same questions side by side: the conditions that answers are committed under, and what must match."""

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from dualread.errors import ArtifactError

# Control conditions: the source's answer forced on the donor's image, and a new answer on another image.
FIXED_PREFIX, SHUFFLED = "donor_fixed_prefix", "shuffled_image"
ORIGINAL, DONOR = "original", "donor"
LENT_BY, LENT = "donor_cluster_id", "donor of "  # how a cluster is called that lends itself an image
_OF_THE_PAPER = (ORIGINAL, DONOR, FIXED_PREFIX, SHUFFLED)


def clusters_for_images(manifest: pl.DataFrame) -> Callable[[pl.DataFrame | str], Any]:
    """Return what puts the cluster of each image of a manifest in the image's place; a reason stays as it is."""
    shared = manifest.filter(pl.col("cluster_id") != pl.col("image_id"))
    clusters = dict(shared.select("image_id", "cluster_id").unique().iter_rows())

    def by_cluster(rows: pl.DataFrame | str) -> pl.DataFrame | str:
        if isinstance(rows, str):
            return rows
        images = [name for name in rows.columns if name.endswith("image_id")]
        rows = rows.with_columns(pl.col(images).replace(clusters)) if clusters else rows
        rows = rows.rename({name: f"{name.removesuffix('image_id')}cluster_id" for name in images})
        if LENT_BY not in rows.columns:
            return rows
        # A donor that exchanges one image of several is of the same cluster, and shows another image all the same.
        within = pl.when(pl.col(LENT_BY) == pl.col("source_cluster_id")).then(pl.format(f"{LENT}{{}}", LENT_BY))
        return rows.with_columns(within.otherwise(LENT_BY).alias(LENT_BY))

    return by_cluster


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
    changed = pl.when(other["cluster_id"] == real["cluster_id"]).then(
        pl.format("{} of {}", pl.lit(condition), "cluster_id")
    )
    return beside(
        real.select("sample_id", "answer_type", "correct", "confidence", source_cluster_id="cluster_id").rename(
            {"correct": "correct_real", "confidence": "confidence_real"}
        ),
        other.select(
            changed.otherwise("cluster_id").alias("other_cluster_id"),
            correct_other="correct",
            confidence_other="confidence",
        ),
    )


def refuse_rows(where: str, sample_ids: pl.Series, wrong: pl.Series, what: str) -> None:
    """Refuse a table of which some rows are `wrong`; `what` says how."""
    if wrong.any():
        raise ArtifactError(f"{where}: {what}: {shown(sample_ids.filter(wrong).to_list())}. Generate this shard again.")


def check_same_questions(
    where: str, first: pl.DataFrame, first_name: str, second: pl.DataFrame, second_name: str
) -> None:
    """Check that two sorted tables have one row for each of the same questions."""
    for frame, name in ((first, first_name), (second, second_name)):
        if (frame["sample_id"][1:] == frame["sample_id"][:-1]).any():
            twice = frame.filter(pl.col("sample_id").is_duplicated())["sample_id"].unique().to_list()
            raise ArtifactError(
                f"{where}: {name} hold more than one row of: {shown(twice)}. Expected one row per question."
            )
    if not first["sample_id"].equals(second["sample_id"]):
        pair = ((first, second), (second, first))
        only = [table.join(other, on="sample_id", how="anti")["sample_id"].to_list() for table, other in pair]
        raise ArtifactError(
            f"{where}: {first_name} and {second_name} must hold the same questions. Only in {first_name}:"
            f" {shown(only[0])}; only in {second_name}: {shown(only[1])}. Run the stage that lacks them again."
        )


def shown(ids: list[str]) -> str:
    """Return the first five ids, and how many there are."""
    ordered = sorted(ids)
    return (
        ", ".join(ordered[:5]) + (f", ... ({len(ordered)} in all)" if len(ordered) > 5 else "") if ordered else "none"
    )


def beside(first: pl.DataFrame, *others: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of sorted tables of the same questions; a join by sample_id takes twenty times as long."""
    return pl.concat([first, *others], how="horizontal")
