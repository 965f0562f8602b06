"""Give every cluster of images, and with it all its questions, one role, and count the questions of each role.

The clusters are sorted by the sha256 of (seed, cluster id), and the sorted list is cut at the cumulative fractions. So
the order depends on the seed and the names only, neither on the order of the rows nor on a random number generator.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import get_args

import polars as pl

from dualread.artifacts.tables import from_rows
from dualread.data.datasets.base import Loaded
from dualread.errors import DataError
from dualread.schema.base import Unit
from dualread.schema.columns import DATA
from dualread.schema.data import Role

# The list of clusters is cut in this order, because the order of the keys in a configuration must not matter.
ROLES: tuple[str, ...] = get_args(Role)
OF_UNIT = ("image_id", "cluster_id", "patient_id")  # what `unit_of` reads


def cluster_identities(loaded: Loaded, image_ids: Mapping[Path | bytes, str], resample: Unit) -> dict[str, str]:
    """Return the cluster of every image id, which is the first of its images, in alphabetical order.

    Images that a question shows together are one cluster. With "cluster", the images of a patient are one as well, and
    so are those of patients who share an image.
    """
    shown = [[image_ids[picture.source] for picture in row.images] for row in loaded.rows]
    known = [[] if row.patient is None or resample == "image" else [(row.patient,)] for row in loaded.rows]
    first = connected([*images, *patient] for images, patient in zip(shown, known, strict=True))
    return {image: first[image] for image in set(image_ids.values())}


def connected(groups: Iterable[Sequence[str | tuple[str]]]) -> dict[str | tuple[str], str]:
    """Return for every name the first of those, in alphabetical order, that are connected with it.

    Names of one group are connected. A (name,) comes after all others; each group has at least one other.
    """
    other: dict[str | tuple[str], str | tuple[str]] = {}

    def first(name: str | tuple[str]) -> str | tuple[str]:
        while (following := other.setdefault(name, name)) != name:
            name = following
        return name

    for group in groups:
        kept, *joined = sorted(map(first, group), key=lambda name: (isinstance(name, tuple), name))
        other |= dict.fromkeys(joined, kept)
    return {name: str(first(name)) for name in other}


def patient_id(dataset: str, patient: str | None) -> str | None:
    """Return a digest of a patient's name, which may be private; it is equal in all splits of a data set."""
    return None if patient is None else hashlib.sha256(f"{dataset}\x1f{patient}".encode()).hexdigest()[:16]


def assign_roles(cluster_ids: Iterable[str], roles: str | Mapping[str, float], seed: int) -> dict[str, str]:
    """Return the role of every cluster id; `roles` is one role for all, or the fraction of the clusters in each.

    A DataError says that there are so few clusters that a role would get none.
    """
    unique = sorted(set(cluster_ids))
    if isinstance(roles, str):
        return dict.fromkeys(unique, roles)
    # Converted by way of the decimal notation, because 0.7 + 0.1 + 0.2 is not 1 in binary floats.
    fractions = {role: Fraction(str(roles[role])) for role in ROLES if role in roles}
    ordered = sorted(unique, key=lambda cluster_id: hashlib.sha256(f"{seed}\x1f{cluster_id}".encode()).digest())
    assigned, start, reached = {}, 0, Fraction(0)
    for role, fraction in fractions.items():
        reached += fraction
        end = int(reached * len(ordered) + Fraction(1, 2))  # nearest, halves up
        if end == start:
            raise DataError(
                f"roles.{role}: {float(fraction):g} of {len(ordered)} images, or patients, is none. Increase the"
                " fraction."
            )
        assigned |= dict.fromkeys(ordered[start:end], role)
        start = end
    return assigned


def unit_of(manifest: pl.DataFrame) -> str:
    """Return the word for what a row of `cluster_id` is in a table of questions: image, patient, or image set."""
    if manifest["cluster_id"].equals(manifest["image_id"]):
        return "image"
    return "patient" if manifest["patient_id"].is_not_null().any() else "image set"


def summarize(
    manifest: pl.DataFrame,
    audit: pl.DataFrame,
    pairs: pl.DataFrame | None,
    pair_audit: pl.DataFrame | None,
    *,
    manifest_sha256: str,
) -> pl.DataFrame:
    """Return a `data` table of one split, with one row per role, in the order of `ROLES`.

    The first step of its `audit` starts from the official file. `pairs`, each counted in the role of its source, and
    `pair_audit` are those of `donors.pair`; None if the study asks for no pairs.
    """
    rule = None if pair_audit is None else pair_audit["rule"][0]
    by_image = unit_of(manifest) == "image"
    rows = []
    for role in ROLES:
        questions = manifest.filter(pl.col("role") == role)
        if questions.is_empty():
            continue
        n_pairs = None if pairs is None else questions["sample_id"].is_in(pairs["sample_id"].to_list()).sum()
        n_open = (questions["answer_type"] == "open").sum()
        rows.append(
            {
                "dataset": questions["dataset"][0],
                "split": questions["split"][0],
                "role": role,
                "source_rows": audit["kept"][0] + audit["dropped"][0],
                "questions": questions.height,
                "images": questions["image_id"].n_unique(),
                "clusters": None if by_image else questions["cluster_id"].n_unique(),
                "open": n_open,
                "closed": questions.height - n_open,
                "pairs": n_pairs,
                "reason": None if n_pairs else _why_none(manifest, questions, rule),
                "manifest_sha256": manifest_sha256,
            }
        )
    return from_rows(rows, DATA)


def account(manifest: pl.DataFrame, audit: pl.DataFrame, pair_audit: pl.DataFrame | None) -> pl.DataFrame:
    """Return the steps of both audits as one table: dataset, split, step, kept, dropped, reason."""
    steps = audit.select("step", "kept", "dropped", "reason")
    if pair_audit is not None:
        candidates = pl.col("mean_candidates").round(1).cast(pl.String).fill_null("no")
        text = pl.format("{}; {} questions were eligible, {} candidates per pair", "rule", "n_eligible", candidates)
        kept, dropped = pl.col("n_pairs").alias("kept"), (pl.col("n_questions") - pl.col("n_pairs")).alias("dropped")
        steps = pl.concat(
            [steps, pair_audit.select(pl.lit("donors").alias("step"), kept, dropped, text.alias("reason"))]
        )
    where = [pl.lit(manifest[name][0]).alias(name) for name in ("dataset", "split")]
    return steps.select(*where, pl.all())


def _why_none(manifest: pl.DataFrame, asked: pl.DataFrame, rule: str | None) -> str:
    if rule is None:
        return "the study pairs no questions of this split"
    on_images = manifest.group_by("question_key").agg(pl.col("image_id").n_unique())
    recurring = on_images.filter(pl.col("image_id") > 1, pl.col("question_key").is_in(asked["question_key"].to_list()))
    if recurring.is_empty():
        return "no question is asked about two images"
    return f"{recurring.height} questions are asked about several images, none with another gold answer ({rule})"
