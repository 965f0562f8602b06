"""Tables of the hub that hold an image's bytes, a question and an answer a row, and no ids (PathVQA, VQA-RAD there).

The tables of a split are data/<split>-00000-of-00003-<digest>.parquet and so on, with the columns image {bytes, path},
question and answer. Where nothing has an id, contents name everything: an image is the first 16 hex digits of its
bytes' sha256, a question those of sha256(sha256 of the image, question, answer). So a row's id survives another order
of the rows, and exact repetitions have equal ids. A row is closed if and only if its answer is yes or no.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from dualread.data.datasets.base import Row, refuse
from dualread.errors import DataError

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?:-[0-9a-f]+)?\.parquet$")
_COLUMNS = {"question": pl.String, "answer": pl.String, "bytes": pl.Binary}
_BATCH_ROWS = 256  # every row brings its image along: 166 kB on average in PathVQA


def answer_type(answer: str) -> str:
    """Return "closed" for yes and no, whatever their case and the white space around them, else "open"."""
    return "closed" if answer.strip().lower() in ("yes", "no") else "open"


def has_tables(folder: Path) -> bool:
    """Tell whether `folder` holds tables of any split."""
    return any((folder / "data").glob("*.parquet"))


def read_rows(folder: Path, splits: Sequence[str]) -> list[tuple[str, Row]]:
    """Read all rows of `splits`, each with its split, in the order of the tables; repetitions included.

    Rows are numbered through all the tables. Equal images are one object, and no more than a batch of the tables'
    own copies of them is in memory.

    Raises:
        DataError: Tables are missing, are not parquet, or lack a column of the right type, or rows lack a value; the
            message names the table and up to ten rows.
    """
    rows: list[tuple[str, Row]] = []
    images: dict[str, bytes] = {}
    problems = []
    for split in splits:
        for table in _tables(folder, split):
            for i, (question, answer, content) in enumerate(_values(table)):
                if question is None or answer is None or not content:
                    missing = "question" if question is None else "answer" if answer is None else "image.bytes"
                    problems.append(f"{table}: row {i}: {missing} is empty. Restore the table from the hub.")
                    continue
                digest = hashlib.sha256(content).hexdigest()
                image = images.setdefault(digest, content)
                rows.append((split, _row(question, answer, image, digest, source_row=len(rows))))
    refuse(problems)
    return rows


def _tables(folder: Path, split: str) -> list[Path]:
    found = sorted((folder / "data").glob(f"{split}-*.parquet"))
    if not found:
        raise DataError(f"{folder}: no data/{split}-*.parquet. Expected the tables of the hub's repository.")
    shards = [_SHARD.search(table.name) for table in found]
    numbers = [(int(shard[1]), int(shard[2])) if shard else None for shard in shards]
    if numbers != [(i, len(found)) for i in range(len(found))]:
        names = ", ".join(table.name for table in found)
        raise DataError(
            f"{folder / 'data'}: {names}: expected {split}-00000-of-N to {split}-(N-1)-of-N, each once. Restore them "
            "from one revision of the hub's repository."
        )
    return found


def _values(table: Path) -> Iterator[tuple[str | None, str | None, bytes | None]]:
    """Yield (question, answer, image bytes) of every row, a batch in memory at a time."""
    try:
        frame = pl.scan_parquet(table, glob=False).select(
            "question", "answer", pl.col("image").struct.field("bytes").alias("bytes")
        )
        if frame.collect_schema() != _COLUMNS:
            raise DataError(f"{table}: question and answer are not text, or image.bytes is not bytes. Restore it.")
        n_rows = frame.select(pl.len()).collect().item()
        for start in range(0, n_rows, _BATCH_ROWS):
            yield from frame.slice(start, _BATCH_ROWS).collect().iter_rows()
    except pl.exceptions.PolarsError as error:
        expected = "a parquet table with the columns image {bytes, path}, question, answer"
        raise DataError(f"{table}: {error}. Expected {expected}. Restore it from the hub.") from error


def _row(question: str, answer: str, image: bytes, digest: str, source_row: int) -> Row:
    return Row(
        official_id=hashlib.sha256("\x1f".join((digest, question, answer)).encode()).hexdigest()[:16],
        question=question,
        reference_answers=(answer,),
        answer_type=answer_type(answer),
        content_family=None,
        options=(),
        modality=None,
        location=None,
        image=image,
        image_name=digest[:16],
        source_row=source_row,
    )
