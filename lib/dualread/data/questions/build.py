"""Turn the rows of a loader into the table of questions: identities, question keys, roles, an audit, and its digest.

Every image, and with it all its questions, has one role. The images are sorted by the sha256 of (seed, image id), and
the sorted list is cut at the cumulative fractions. So the order depends on the seed and the names only, neither on the
order of the rows nor on a random number generator.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import from_many_rows, from_rows
from dualread.data.datasets.base import Loaded, Row
from dualread.data.questions.audit import audit_steps, where_is
from dualread.data.questions.pictures import ImageFile
from dualread.errors import ConfigError, DataError, did_you_mean, refuse
from dualread.grading.canonical import question_key
from dualread.schema.columns import DATA, MANIFEST

# The list of images is cut in this order, because the order of the keys in a configuration must not matter.
ROLES = ("fit", "stop", "calibration", "validation", "test", "ood")
_AUDIT = {"step": pl.String, "kept": pl.Int64, "dropped": pl.Int64, "reason": pl.String}


def build(
    loaded: Loaded,
    images: Mapping[Path | bytes, ImageFile],
    *,
    dataset: str,
    split: str,
    roles: str | Mapping[str, float],
    seed: int,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the table of questions of one data set and split, in the order of the official file, and its audit.

    Rows with an empty reference answer and rows that repeat another row are kept, because the paper counts them; the
    audit says how many there are. No answer matches an empty reference.

    Args:
        loaded: The selected rows of a data set that `refuse_broken` accepted.
        images: Every image that the rows name.
        dataset: Config name of the data set.
        split: train, validation or test.
        roles: As in `assign_roles`.
        seed: As in `assign_roles`.

    Raises:
        ConfigError: As `assign_roles`.
        DataError: As `assign_roles` and `image_identities`.
    """
    image_ids = image_identities(loaded, images)
    role_of = assign_roles(image_ids.values(), roles, seed)
    keys = {question: question_key(question) for question in {row.question for row in loaded.rows}}
    records = (
        {
            "sample_id": f"{dataset}/{split}/{row.official_id}",
            "dataset": dataset,
            "split": split,
            "role": role_of[image_ids[row.image]],
            "question": row.question,
            "question_key": keys[row.question],
            "reference_answers": list(row.reference_answers),
            "answer_type": row.answer_type,
            "content_family": row.content_family,
            "options": list(row.options),
            "modality": row.modality,
            "location": row.location,
            "image_file": images[row.image].file,
            "image_sha256": images[row.image].sha256,
            "pixel_sha256": images[row.image].pixel_sha256,
            "image_id": image_ids[row.image],
            "source_row": row.source_row,
            "donor_sample_id": None if row.donor_id is None else f"{dataset}/{split}/{row.donor_id}",
        }
        for row in loaded.rows
    )
    manifest = from_many_rows(records, MANIFEST)
    steps = [*loaded.audit, *audit_steps(loaded.rows, image_ids, manifest, images)]
    return manifest, pl.DataFrame([asdict(step) for step in steps], schema=_AUDIT)


def image_identities(loaded: Loaded, images: Mapping[Path | bytes, ImageFile]) -> dict[Path | bytes, str]:
    """Return the identity of every image: the first name, in alphabetical order, of the images with the same pixels.

    Two files with the same picture are one cluster; if they were resampled or split apart, one image would count twice.
    The paths of DICOM files often name patients: a digest of the picture takes their place.

    Raises:
        DataError: Two different pictures have the same image name.
    """
    shown_by: dict[Path | bytes, Row] = {}
    for row in loaded.rows:
        shown_by.setdefault(row.image, row)
    smallest: dict[str, str] = {}
    first_of_name: dict[str, Row] = {}
    problems = []
    for row in shown_by.values():
        pixels = images[row.image].pixel_sha256
        named = images[row.image].private and str(row.image).endswith(row.image_name)
        name = pixels[:16] if named else row.image_name
        smallest[pixels] = min(name, smallest.get(pixels, name))
        first = first_of_name.setdefault(name, row)
        if images[first.image].pixel_sha256 != pixels:
            problems.append(
                f"{where_is(loaded, row)}: image {name} is another picture than in row {first.source_row}"
                f" (id {first.official_id}), expected one picture per name. Rename one of them."
            )
    refuse(problems)
    return {image: smallest[images[image].pixel_sha256] for image in shown_by}


def digest(manifest: pl.DataFrame) -> str:
    """Return the sha256 (hexadecimal) of a table of questions, written as JSON Lines.

    Each row is one line with all columns: keys sorted, no spaces, UTF-8, and a line feed at the end. The digest depends
    on the order of the rows, but neither on the bytes of the parquet file nor on the library that wrote it.
    """
    content = hashlib.sha256()
    for row in manifest.iter_rows(named=True):
        content.update(json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    return content.hexdigest()


def refuse_another(manifest: pl.DataFrame, expected: str | None, *, file: Path, dataset: str, split: str) -> None:
    """Refuse a table of questions whose digest is not `expected`; None allows any.

    Raises:
        DataError: The digests differ. The message names both, and the size of the table.
    """
    if expected is None or (actual := digest(manifest)) == expected:
        return
    size = f"{manifest.height} rows on {manifest['image_id'].n_unique()} images"
    raise DataError(
        f"{file}: the table of questions of {dataset}/{split} ({size}) has the digest {actual}, expected {expected}."
        f" The official files, the settings of the data set or the version of this program have changed. Restore them."
        f" If the new table is the right one, set datasets.{dataset}.expect_sha256.{split} to its digest; the numbers"
        " of the study will then change."
    )


def assign_roles(image_ids: Iterable[str], roles: str | Mapping[str, float], seed: int) -> dict[str, str]:
    """Return the role of every image id.

    Args:
        image_ids: Identities of the images; repetitions are ignored.
        roles: One role for all images, or the fraction of the images in each role.
        seed: Determines the order of the images.

    Raises:
        ConfigError: A role is unknown, a fraction is not in (0, 1], or the fractions do not add up to 1.
        DataError: There are so few images that a role would get none.
    """
    unique = sorted(set(image_ids))
    if isinstance(roles, str):
        return dict.fromkeys(unique, _known(roles))
    fractions = _fractions(roles)
    ordered = sorted(unique, key=lambda image_id: hashlib.sha256(f"{seed}\x1f{image_id}".encode()).digest())
    assigned, start, reached = {}, 0, Fraction(0)
    for role, fraction in fractions.items():
        reached += fraction
        end = int(reached * len(ordered) + Fraction(1, 2))  # nearest, halves up
        if end == start:
            raise DataError(
                f"roles.{role}: {float(fraction):g} of {len(ordered)} images is none. Increase the fraction."
            )
        assigned |= dict.fromkeys(ordered[start:end], role)
        start = end
    return assigned


def _fractions(roles: Mapping[str, float]) -> dict[str, Fraction]:
    for role, value in roles.items():
        _known(role)
        if not 0 < value <= 1:
            raise ConfigError(f"roles.{role}: {value!r} is not a fraction in (0, 1]. Remove the role or correct it.")
    # Converted by way of the decimal notation, because 0.7 + 0.1 + 0.2 is not 1 in binary floats.
    fractions = {role: Fraction(str(roles[role])) for role in ROLES if role in roles}
    if sum(fractions.values()) != 1:
        raise ConfigError(
            f"roles: the fractions {dict(roles)} add up to {float(sum(fractions.values())):g}, expected 1."
        )
    return fractions


def _known(role: str) -> str:
    if role not in ROLES:
        raise ConfigError(f"roles: no role named {role!r}. Known: {', '.join(ROLES)}.{did_you_mean(role, ROLES)}")
    return role


def summarize(
    manifest: pl.DataFrame,
    audit: pl.DataFrame,
    pairs: pl.DataFrame | None,
    pair_audit: pl.DataFrame | None,
    *,
    manifest_sha256: str,
) -> pl.DataFrame:
    """Return a `data` table of one split, with one row per role, in the order of `ROLES`.

    Args:
        manifest: The table of questions of the split.
        audit: The audit that `build` returned with it; its first step starts from the
            official file.
        pairs: The pairs of the split, each counted in the role of its source; None if the study asks for no pairs.
        pair_audit: The audit that `dualread.data.donors.pair` returned with them; None if there are no pairs.
        manifest_sha256: Digest of the table of questions.
    """
    rule = None if pair_audit is None else pair_audit["rule"][0]
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
