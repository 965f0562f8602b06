"""Identify a table of questions by its digest, and refuse another table than the one that a study was made for."""

import hashlib
import json
from pathlib import Path

import polars as pl

from dualread.errors import DataError


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
    if expected is None or (found := digest(manifest)) == expected:
        return
    size = f"{manifest.height} rows on {manifest['image_id'].n_unique()} images"
    raise DataError(
        f"{file}: the table of questions of {dataset}/{split} ({size}) has the digest {found}, expected {expected}. The"
        f" official files, the settings of the data set or the version of this program have changed. Restore them. If"
        f" the new table is the right one, set datasets.{dataset}.expect_sha256.{split} to its digest; the numbers of"
        f" the study will then change."
    )
