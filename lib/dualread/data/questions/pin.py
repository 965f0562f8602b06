"""Name a manifest by its content, and hold a study to the manifests that it was made for."""

import hashlib
import json
from pathlib import Path

import polars as pl

from dualread.errors import DataError


def digest(manifest: pl.DataFrame) -> str:
    """Return the sha256 (hexadecimal) of the rows in order, all columns: one line of JSON a row.

    Keys sorted, no spaces, UTF-8, each line ended by a line feed. It depends neither on the bytes of a parquet file nor
    on the version of the library that wrote it.
    """
    content = hashlib.sha256()
    for row in manifest.iter_rows(named=True):
        content.update(json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    return content.hexdigest()


def refuse_another(manifest: pl.DataFrame, expected: str | None, *, file: Path, dataset: str, split: str) -> None:
    """Refuse a manifest that is not the `expected` one; None expects nothing.

    Raises:
        DataError: The digests differ; names both, and what the manifest has.
    """
    if expected is None or (found := digest(manifest)) == expected:
        return
    size = f"{manifest.height} rows on {manifest['image_id'].n_unique()} images"
    raise DataError(
        f"{file}: the manifest of {dataset}/{split} ({size}) has the digest {found}, expected {expected}. The official"
        f" files, the settings of the data set or the rules of this program are others. Restore them; where the new"
        f" manifest is meant, set datasets.{dataset}.expect_sha256.{split} to its digest, and expect other numbers in"
        f" the tables."
    )
