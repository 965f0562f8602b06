"""Your own data, as a table: <split>.jsonl or <split>.parquet, or one rows.jsonl or rows.parquet for all splits.

The table has one row per question. These columns are required, `split` only in rows.jsonl and rows.parquet:

    question            text
    reference_answers   a list of accepted answers, or one text
    image               a path inside the folder; in parquet also the image's bytes, or {bytes, path}
    split               train, validation or test

These may be missing, or null in some rows:

    id                  text or an integer, unique in its split; default: a digest of question, answers, options and
                        image
    answer_type         open or closed; default: closed if every reference answer is yes or no, else open
    options             the visible options of a multiple-choice question; default: none
    image_id            equal for all questions on one image; default: the image's path, or a digest of its bytes
    donor_id            id of the same-question donor; if no row names one, donors are computed
    modality, location, content_family      text; default: unknown
"""

import hashlib
import json
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from dualread.data.datasets._files import check_request, is_texts, leaves_folder, lower, read_json_lines
from dualread.data.datasets.base import AuditStep, Loaded, Row, refuse
from dualread.errors import DataError, did_you_mean
from dualread.grading.canonical import canonical
from dualread.specs.parts import Settings

HUB_FILES = {"train": ("*",), "validation": ("*",), "test": ("*",)}
TERMS = "Your own data, or other data that you brought into this form; the terms are those of its owner."
SETTINGS = {}


def _picture(value: Any) -> str | bytes | None:
    """Return the path or the bytes that a value of the column `image` holds; None if it holds neither.

    A path that leaves the folder of the table counts as none.
    """
    if isinstance(value, dict):
        value = value.get("path") if value.get("bytes") is None else value["bytes"]
    return value if isinstance(value, bytes) or (isinstance(value, str) and not leaves_folder(value)) else None


# Of each column: whether a value is allowed, and a description of the allowed values.
_Column = tuple[Callable[[Any], bool], str]
_TEXT: _Column = (lambda value: isinstance(value, str), "text")
_NAME: _Column = (lambda value: type(value) is int or (isinstance(value, str) and value != ""), "text or an integer")
_REQUIRED: dict[str, _Column] = {
    "question": _TEXT,
    "reference_answers": (lambda value: isinstance(value, str) or is_texts(value), "text or a list of texts"),
    "image": (lambda value: _picture(value) is not None, "a path inside the folder, bytes, or {bytes, path}"),
}
_SPLIT: dict[str, _Column] = {"split": (lambda value: value in list(HUB_FILES), "train, validation or test")}
_OPTIONAL: dict[str, _Column] = {
    "id": _NAME,
    "answer_type": (lambda value: value in ("open", "closed"), "open or closed"),
    "options": (is_texts, "a list of texts"),
    "image_id": _TEXT,
    "donor_id": _NAME,
    "modality": _TEXT,
    "location": _TEXT,
    "content_family": _TEXT,
}


def load_rows(folder: Path, split: str, settings: Settings) -> Loaded:
    """Return the rows of `split`, in the order of the file.

    Raises:
        ConfigError: There is no such split, or a setting is given.
        DataError: There is no table or more than one, the table cannot be read or has no row of the split, a column is
            unknown, or a row lacks a value or has one of the wrong kind; the message lists up to ten lines or rows.
    """
    check_request("table", split, HUB_FILES, settings, SETTINGS)
    file = _find(folder, split)
    lines = file.suffix == ".jsonl"
    records = read_json_lines(file) if lines else _read_parquet(file)
    required = _REQUIRED | (_SPLIT if file.stem == "rows" else {})
    found = _problems(records, required)
    refuse(f"{file}: {f'line {i + 1}' if lines else f'row {i}'}: {problem}" for i, problem in found)
    chosen = [(i, record) for i, record in records if record.get("split", split) == split]
    if not chosen:
        raise DataError(f"{file}: no row of the split {split!r}. Add some, or remove the split from the config.")
    first_of_equal: dict[bytes, bytes] = {}
    audit = AuditStep(
        step="split", kept=len(chosen), dropped=len(records) - len(chosen), reason=f"rows of {file.name} for {split}"
    )
    rows = [_row(folder.absolute(), i, record, first_of_equal) for i, record in chosen]
    return Loaded(file=file, rows=rows, audit=[audit])


def _find(folder: Path, split: str) -> Path:
    names = [f"{split}.jsonl", f"{split}.parquet", "rows.jsonl", "rows.parquet"]
    found = [name for name in names if (folder / name).is_file()]
    if len(found) != 1:
        raise DataError(f"{folder}: found {' and '.join(found) or 'no table'}, expected one of {', '.join(names)}.")
    return folder / found[0]


def _read_parquet(file: Path) -> list[tuple[int, dict[str, Any]]]:
    try:
        return list(enumerate(pl.read_parquet(file).iter_rows(named=True)))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{file}: not parquet ({error}). Write it again.") from error


def _problems(
    records: Sequence[tuple[int, Mapping[str, Any]]], required: Mapping[str, _Column]
) -> Iterator[tuple[int, str]]:
    columns = {**required, **_OPTIONAL}
    seen = set(columns)
    for i, record in records:
        for column in [column for column in record if column not in seen]:
            seen.add(column)  # an unknown column is reported where it is first met
            meant = did_you_mean(column, columns)
            yield i, f"unknown column {column!r}. Known: {', '.join(columns)}.{meant} Rename or remove it."
        for column, (holds, expected) in columns.items():
            value = record.get(column)
            if value is None and column in required:
                yield i, f"{column} is missing, expected {expected}. Add it."
            elif value is not None and not holds(value):
                yield i, f"{column} is {reprlib.repr(value)}, expected {expected}. Correct it."


def _row(folder: Path, source_row: int, record: Mapping[str, Any], first_of_equal: dict[bytes, bytes]) -> Row:
    answers = record["reference_answers"]
    answers = (answers,) if isinstance(answers, str) else tuple(answers)
    options = tuple(record.get("options") or ())
    picture = _picture(record["image"])
    if isinstance(picture, bytes):
        image, name = first_of_equal.setdefault(picture, picture), hashlib.sha256(picture).hexdigest()
    else:
        image, name = folder / str(picture), str(PurePosixPath(str(picture)))
    content = json.dumps([record["question"], answers, options, name])
    closed = all(canonical(answer) in ("yes", "no") for answer in answers)
    return Row(
        official_id=str(_given(record, "id", hashlib.sha256(content.encode()).hexdigest()[:16])),
        question=record["question"],
        reference_answers=answers,
        answer_type=_given(record, "answer_type", "closed" if closed else "open"),
        content_family=lower(record.get("content_family")),
        options=options,
        modality=lower(record.get("modality")),
        location=lower(record.get("location")),
        image=image,
        image_name=_given(record, "image_id", name),
        source_row=source_row,
        donor_id=None if record.get("donor_id") is None else str(record["donor_id"]),
    )


def _given(record: Mapping[str, Any], column: str, otherwise: Any) -> Any:
    return otherwise if record.get(column) is None else record[column]
