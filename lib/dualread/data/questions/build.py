"""Turn the rows of a loader into the table of questions: identities, question keys, roles, and an audit."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.tables import from_rows
from dualread.data.datasets.base import AuditStep, Loaded, Row, refuse
from dualread.data.questions.partition import assign_roles
from dualread.data.questions.pictures import ImageFile
from dualread.grading.canonical import question_key

_AUDIT = {"step": pl.String, "kept": pl.Int64, "dropped": pl.Int64, "reason": pl.String}


def refuse_broken(loaded: Loaded, broken_images: Mapping[Path | bytes, str]) -> None:
    """Refuse a data set with rows that cannot be asked; such rows are never dropped silently.

    Args:
        loaded: All rows of one split, before any selection, so that broken rows are found whatever the seed.
        broken_images: For each image that cannot be read, the reason.

    Raises:
        DataError: A question is blank, a row has no reference answer (an empty one is allowed), an image cannot be
            read, or two rows have the same official id. Up to ten problems are listed.
    """
    problems, first_rows = [], {}
    for row in loaded.rows:
        where = _where(loaded, row)
        if not row.question.strip():
            problems.append(f"{where}: the question is empty. Correct the row.")
        if not row.reference_answers:
            problems.append(f"{where}: there is no reference answer. Correct the row.")
        if row.image in broken_images:
            problems.append(f"{where}: {broken_images[row.image]}")
        earlier = first_rows.setdefault(row.official_id, row.source_row)
        if earlier != row.source_row:
            problems.append(
                f"{where}: row {earlier} has the same id, expected unique ids. Remove one of the rows or change its id."
            )
    refuse(problems)


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
    records = [
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
            **_image_columns(images[row.image]),
            "image_id": image_ids[row.image],
            "source_row": row.source_row,
            "donor_sample_id": None if row.donor_id is None else f"{dataset}/{split}/{row.donor_id}",
        }
        for row in loaded.rows
    ]
    manifest = from_rows(records, MANIFEST)
    steps = [*loaded.audit, *_audit(loaded.rows, image_ids, manifest)]
    return manifest, pl.DataFrame([asdict(step) for step in steps], schema=_AUDIT)


def _image_columns(image: ImageFile) -> dict[str, str]:
    return {"image_file": image.file, "image_sha256": image.sha256, "pixel_sha256": image.pixel_sha256}


def image_identities(loaded: Loaded, images: Mapping[Path | bytes, ImageFile]) -> dict[Path | bytes, str]:
    """Return the identity of every image: the first name, in alphabetical order, of the images with the same pixels.

    Two files with the same picture are one cluster; if they were resampled or split apart, one image would count twice.

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
        pixels, name = images[row.image].pixel_sha256, row.image_name
        smallest[pixels] = min(name, smallest.get(pixels, name))
        first = first_of_name.setdefault(name, row)
        if images[first.image].pixel_sha256 != pixels:
            problems.append(
                f"{_where(loaded, row)}: image {name} is another picture than in row {first.source_row}"
                f" (id {first.official_id}), expected one picture per name. Rename one of them."
            )
    refuse(problems)
    return {image: smallest[images[image].pixel_sha256] for image in shown_by}


def _where(loaded: Loaded, row: Row) -> str:
    return f"{loaded.file}: row {row.source_row} (id {row.official_id})"


def _audit(rows: Sequence[Row], image_ids: Mapping[Path | bytes, str], manifest: pl.DataFrame) -> list[AuditStep]:
    empty = [row.official_id for row in rows if not any(reference.strip() for reference in row.reference_answers)]
    unrepeated = {(image_ids[r.image], r.question, r.reference_answers, r.options) for r in rows}
    n_names = len({row.image_name for row in rows})
    n_images = len(set(image_ids.values()))
    steps = [
        _kept(rows, "empty answers", f"{len(empty)} rows with an empty answer are kept{_listed(empty)}"),
        _kept(rows, "repetitions", f"{len(rows) - len(unrepeated)} rows repeat another row; they are kept"),
        _kept(rows, "identical images", f"{n_names} image names, {n_images} distinct pictures"),
    ]
    by_role = manifest.group_by("role").agg(pl.len().alias("n"), pl.col("image_id").n_unique().alias("n_images"))
    for role, n, n_role_images in by_role.sort("role").iter_rows():
        share = f"{n_role_images} of {n_images} images; the other rows have other roles"
        steps.append(AuditStep(step=f"role {role}", kept=n, dropped=0, reason=share))
    return steps


def _kept(rows: Sequence[Row], step: str, reason: str) -> AuditStep:
    return AuditStep(step=step, kept=len(rows), dropped=0, reason=reason)


def _listed(ids: Sequence[str], most: int = 10) -> str:
    if not ids:
        return ""
    return f": {', '.join(ids[:most])}" + (f" and {len(ids) - most} more" if len(ids) > most else "")
