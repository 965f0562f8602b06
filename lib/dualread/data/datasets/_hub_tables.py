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
from typing import Any

from dualread.data.datasets.base import TEXT, Allowed, Picture, Row, answer_type, problems_of
from dualread.data.tables import parquet
from dualread.errors import DataError, refuse

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?:-[0-9a-f]+)?\.parquet$")
_FIELDS = {
    "question": TEXT,
    "answer": TEXT,
    "image": Allowed(lambda value: bool(bytes_in(value)), "{bytes, path} with the bytes of an image"),
}


def read_rows(folder: Path, splits: Sequence[str]) -> list[tuple[str, Row]]:
    """Return all rows of `splits`, each with its split, in the order of the tables; repetitions are kept.

    `source_row` counts the rows of all tables together. Equal images are one object in memory.
    """
    rows: list[tuple[str, Row]] = []
    images: dict[str, bytes] = {}
    problems: list[str] = []
    for split in splits:
        for table, i, record in records_of(folder, split):
            if wrong := list(problems_of(table, i, record, _FIELDS)):
                problems += wrong
            else:
                rows.append((split, _row(record, images, source_row=len(rows))))
    refuse(problems)
    return rows


def records_of(folder: Path, split: str) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    """Yield the table of each row of a split, its place in it, and its values; a few are in memory at a time."""
    for table in _in_order(folder, split):
        for i, record in enumerate(parquet.read_rows(table)):
            yield table, i, record


def bytes_in(image: Any) -> bytes | None:
    """Return the bytes of an image as the hub's tables have it, {bytes, path}; None if there are none."""
    content = image.get("bytes") if isinstance(image, dict) else None
    return content if isinstance(content, bytes) else None


def _in_order(folder: Path, split: str) -> list[Path]:
    """Return the tables of a split, of which none is missing."""
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


def _row(record: dict[str, Any], images: dict[str, bytes], source_row: int) -> Row:
    question, answer, content = record["question"], record["answer"], record["image"]["bytes"]
    digest = hashlib.sha256(content).hexdigest()
    return Row(
        official_id=hashlib.sha256("\x1f".join((digest, question, answer)).encode()).hexdigest()[:16],
        question=question,
        reference_answers=(answer,),
        answer_type=answer_type(answer),
        images=(Picture(images.setdefault(digest, content), digest[:16]),),
        source_row=source_row,
    )
