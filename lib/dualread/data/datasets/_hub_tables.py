"""Read the parquet tables in which the Hugging Face hub keeps PathVQA and VQA-RAD.

The tables of a split are data/<split>-00000-of-00003-<digest>.parquet and so on, with one row per question and the
columns image {bytes, path}, question and answer. There are no ids, so names are computed from the content: the name of
an image is the first 16 hex digits of the sha256 of its bytes, and the id of a question the first 16 hex digits of
sha256(sha256 of the image, question, answer). So the id of a row does not depend on the order of the rows, and exact
repetitions have equal ids. A row is closed if and only if its answer is yes or no.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from dualread.data.datasets.base import Picture, Row, answer_type
from dualread.errors import DataError, refuse

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?:-[0-9a-f]+)?\.parquet$")
_COLUMNS = {"question": pl.String, "answer": pl.String, "bytes": pl.Binary}
_BATCH_ROWS = 256  # every row holds a copy of its image: 166 kB on average in PathVQA


def has_tables(folder: Path) -> bool:
    """Return whether `folder` holds tables of at least one split."""
    return any((folder / "data").glob("*.parquet"))


def read_rows(folder: Path, splits: Sequence[str]) -> list[tuple[str, Row]]:
    """Return all rows of `splits`, each with its split, in the order of the tables; repetitions are kept.

    `source_row` counts the rows of all tables together. Equal images are one object in memory.

    Raises:
        DataError: A table is missing, is not parquet, or lacks a column of the right type, or a row lacks a value; the
            message names the table and lists up to ten rows.
    """
    rows: list[tuple[str, Row]] = []
    images: dict[str, bytes] = {}
    problems = []
    for split in splits:
        for table in in_order(folder, split):
            for i, (question, answer, content) in enumerate(_values(table)):
                if question is None or answer is None or not content:
                    missing = "question" if question is None else "answer" if answer is None else "image.bytes"
                    problems.append(f"{table}: row {i}: {missing} is empty. Download the table again.")
                    continue
                digest = hashlib.sha256(content).hexdigest()
                image = images.setdefault(digest, content)
                rows.append((split, _row(question, answer, image, digest, source_row=len(rows))))
    refuse(problems)
    return rows


def in_order(folder: Path, split: str) -> list[Path]:
    """Return the tables of a split, of which none is missing.

    Raises:
        DataError: One is, or they are of several revisions.
    """
    tables = sorted((folder / "data").glob(f"{split}-*.parquet"))
    if not tables:
        raise DataError(
            f"{folder}: no data/{split}-*.parquet. Expected the tables of the hub's repository. Download them."
        )
    shards = [_SHARD.search(table.name) for table in tables]
    numbers = [(int(shard[1]), int(shard[2])) if shard else None for shard in shards]
    if numbers != [(i, len(tables)) for i in range(len(tables))]:
        names = ", ".join(table.name for table in tables)
        raise DataError(
            f"{folder / 'data'}: {names}: expected {split}-00000-of-N to {split}-(N-1)-of-N, each once. Download them "
            "from one revision of the hub's repository."
        )
    return tables


def _values(table: Path) -> Iterator[tuple[str | None, str | None, bytes | None]]:
    """Yield (question, answer, image bytes) of every row, with one batch in memory at a time."""
    try:
        frame = pl.scan_parquet(table, glob=False).select(
            "question", "answer", pl.col("image").struct.field("bytes").alias("bytes")
        )
        if frame.collect_schema() != _COLUMNS:
            raise DataError(
                f"{table}: question and answer are not text, or image.bytes is not bytes. Download it again."
            )
        n_rows = frame.select(pl.len()).collect().item()
        for start in range(0, n_rows, _BATCH_ROWS):
            yield from frame.slice(start, _BATCH_ROWS).collect().iter_rows()
    except pl.exceptions.PolarsError as error:
        expected = "a parquet table with the columns image {bytes, path}, question, answer"
        problem = str(error).partition("\n")[0]  # the rest is the plan of a query
        raise DataError(f"{table}: {problem}. Expected {expected}. Download it again.") from error


def _row(question: str, answer: str, image: bytes, digest: str, source_row: int) -> Row:
    return Row(
        official_id=hashlib.sha256("\x1f".join((digest, question, answer)).encode()).hexdigest()[:16],
        question=question,
        reference_answers=(answer,),
        answer_type=answer_type(answer),
        images=(Picture(image, digest[:16]),),
        source_row=source_row,
    )
