"""Turn the rows of a loader into the table of questions: identities, question keys, roles, an audit, and its digest."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath

import polars as pl

from dualread.artifacts.tables import from_many_rows
from dualread.data.datasets.base import Loaded, Picture, Row
from dualread.data.questions.audit import audit_steps, where_is
from dualread.data.questions.pictures import ImageFile
from dualread.data.questions.roles import assign_roles, cluster_identities, patient_id
from dualread.errors import DataError, refuse
from dualread.grading.canonical import question_key
from dualread.schema.base import TOGETHER, Unit
from dualread.schema.columns import MANIFEST

_AUDIT = {"step": pl.String, "kept": pl.Int64, "dropped": pl.Int64, "reason": pl.String}


def build(
    loaded: Loaded,
    images: Mapping[Path | bytes, ImageFile],
    *,
    dataset: str,
    split: str,
    roles: str | Mapping[str, float],
    seed: int,
    resample: Unit = "cluster",
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the table of questions of one data set and split, in the order of the official file, and its audit.

    Rows with an empty reference answer and rows that repeat another row are kept, because the paper counts them; the
    audit says how many there are. No answer matches an empty reference. `loaded` are the selected rows, which
    `refuse_broken` accepted; `images` holds every image that they name; `roles` and `seed` are as in `assign_roles`.
    """
    image_ids = image_identities(loaded, images)
    clusters = cluster_identities(loaded, image_ids, resample)
    role_of = assign_roles(clusters.values(), roles, seed)
    keys = {question: question_key(question) for question in {row.question for row in loaded.rows}}
    records = (
        {
            "sample_id": f"{dataset}/{split}/{row.official_id}",
            "dataset": dataset,
            "split": split,
            "role": role_of[clusters[image_ids[row.images[0].source]]],
            "question": row.question,
            "question_key": keys[row.question],
            "reference_answers": list(row.reference_answers),
            "answer_type": row.answer_type,
            "content_family": row.content_family,
            "options": list(row.options),
            "modality": row.modality,
            "location": row.location,
            "image_files": [images[picture.source].file for picture in row.images],
            "image_roles": [picture.role for picture in row.images if picture.role is not None],
            "pixel_sha256s": [images[picture.source].pixel_sha256 for picture in row.images],
            "image_id": TOGETHER.join(image_ids[picture.source] for picture in row.images),
            "cluster_id": clusters[image_ids[row.images[0].source]],
            "patient_id": None if resample == "image" else patient_id(dataset, row.patient),
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
    The paths of DICOM files often name patients: a digest of the picture takes their place. Two different pictures of
    one name are refused.
    """
    shown_by: dict[Path | bytes, tuple[Picture, Row]] = {}
    for row in loaded.rows:
        for picture in row.images:
            shown_by.setdefault(picture.source, (picture, row))
    smallest: dict[str, str] = {}
    first_of_name: dict[str, tuple[Picture, Row]] = {}
    problems = []
    for picture, row in shown_by.values():
        file = images[picture.source]
        pixels, named = file.pixel_sha256, file.private and str(picture.source).endswith(picture.name)
        name = pixels[:16] if named else picture.name
        smallest[pixels] = min(name, smallest.get(pixels, name))
        first, first_row = first_of_name.setdefault(name, (picture, row))
        if images[first.source].pixel_sha256 != pixels:
            problems.append(
                f"{where_is(loaded, row)}: image {name} is another picture than in row {first_row.source_row}"
                f" (id {first_row.official_id}), expected one picture per name. Rename one of them."
            )
    refuse(problems)
    return {image: smallest[images[image].pixel_sha256] for image in shown_by}


def digest(manifest: pl.DataFrame) -> str:
    """Return the sha256 (hexadecimal) of a table of questions, written as JSON Lines.

    Each row is one line with all columns, but without a cluster that is the image, an unknown patient, and no roles;
    a single image has image_file, image_sha256 and pixel_sha256 in place of lists. Keys are sorted, there are no
    spaces, and a line feed at the end. The digest depends on the order of the rows, but neither on the bytes of the
    parquet file nor on the library that wrote it.
    """
    content = hashlib.sha256()
    for row in manifest.iter_rows(named=True):
        if row["cluster_id"] == row["image_id"]:
            del row["cluster_id"]
        if row["patient_id"] is None:
            del row["patient_id"]
        if not row["image_roles"]:
            del row["image_roles"]
        if len(row["image_files"]) == 1:
            [file], [row["pixel_sha256"]] = row.pop("image_files"), row.pop("pixel_sha256s")
            row |= {"image_file": file, "image_sha256": PurePosixPath(file).stem}
        content.update(json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    return content.hexdigest()


def check_digest(manifest: pl.DataFrame, expected: str | None, *, file: Path, dataset: str, split: str) -> None:
    """Refuse a table of questions whose digest is not `expected`; None allows any."""
    if expected is None or (actual := digest(manifest)) == expected:
        return
    size = f"{manifest.height} rows on {manifest['image_id'].n_unique()} images"
    raise DataError(
        f"{file}: the table of questions of {dataset}/{split} ({size}) has the digest {actual}, expected {expected}."
        f" The official files, the settings of the data set or the version of this program have changed. Restore them."
        f" If the new table is the right one, set datasets.{dataset}.expect_sha256.{split} to its digest; the numbers"
        " of the study will then change."
    )
