"""Examples as people have them, dicts or a frame or a file, and as the loader `table` reads them: one folder per part.

An example has a `question` and an `image`: a path, bytes, a picture of Pillow, an array, or a list of them. It may have

    reference_answer    the accepted answer, or a list of accepted ones; also as reference_answers, or as answer
    options             the options of a multiple-choice question
    part                fit, validation or test; without it, test
    id                  its name, also as sample_id or question_id; by default a digest of question, options and image
    answer_type, image_id, group, modality, location, content_family    as in the tables of a study

Other columns are kept, and come back with the answers. Folders hold links to the images' files, or copies of pictures
in memory, under the digests of their content, so that neither names nor the order of rows change anything.
"""

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dualread.data.datasets.source_rows import SourceRow, in_form, read_table, unfolded, with_images
from dualread.data.given_images import locate, read
from dualread.digests import digest_of
from dualread.errors import DataError, did_you_mean, refuse
from dualread.schema.base import TOGETHER
from dualread.store.digest import replace_text, sha256_file

# The parts of the examples, and the splits that a study has for them.
PARTS = {"fit": "train", "validation": "validation", "test": "test"}
_IDS = ("id", "sample_id", "question_id")
_REFERENCES = ("reference_answers", "reference_answer", "answer")  # the first of them that there is
_OPTIONAL = ("options", "answer_type", "image_id", "group", "modality", "location", "content_family")
# Columns that the result has; those of the examples have another meaning, or are of an earlier result.
_OF_RESULT = (*_IDS, *_REFERENCES, "part", "split", "image", "correct", "method", "confidence", "study", "replicates")
_TABLE = "rows.jsonl"
_NO_REFERENCE = [""]  # which no answer equals; the result says nothing about its correctness


@dataclass(frozen=True, kw_only=True)
class UserExample:
    """One question about an image."""

    place: str  # where it was given, for messages
    part: str  # fit, validation or test
    record: Mapping[str, Any]  # its columns as the loader `table` reads them; `image` are paths inside the folder
    images: Sequence[Path | bytes]  # the images' files, or their bytes
    has_id: bool  # whether its id was given, and is no digest
    has_reference: bool  # whether its accepted answers are known
    others: Mapping[str, Any]  # columns that only the user knows

    @property
    def sample_id(self) -> str:
        """Its name in its part."""
        return self.record["id"]


def other_columns(examples: Sequence[UserExample]) -> list[pl.Series]:
    """Return the columns that only the user knows; null for an example that has no such column."""
    names = {name: None for example in examples for name in example.others}
    return [pl.Series(name, [example.others.get(name) for example in examples], strict=False) for name in names]


def read_examples(examples: Any, name: str, *, part: str | None = None) -> list[UserExample]:
    """Return the examples of a frame (polars, pandas, pyarrow, datasets), an iterable of dicts, or a file.

    Paths of images are relative to the file, or to the current folder. Raises DataError, with up to ten rows, if there
    are no examples, or a row lacks its image or question or has a wrong value.
    """
    if isinstance(examples, str | Path):
        folder, lines = Path(examples).parent, unfolded(read_table(Path(examples))[0])
    else:
        file = Path(name)
        records = enumerate(_records(examples, name))
        folder = Path()
        lines = unfolded([SourceRow(file=file, unit="row", number=i, record=record) for i, record in records])
    if not lines:
        raise DataError(f"{name}: no examples. Expected rows with an image and a question.")
    lines = in_form([replace(line, record=_named(line.record)) for line in with_images(lines)])
    pictures = _Pictures(folder)
    results = [_example(line, pictures, part) for line in lines]
    refuse(result for result in results if isinstance(result, str))
    return [result for result in results if isinstance(result, UserExample)]


def numbered(examples: Sequence[UserExample]) -> list[UserExample]:
    """Return the examples; repeated ones have a number behind their digest, and a repeated id is refused."""
    seen: Counter[tuple[str, str]] = Counter()
    made = []
    for example in examples:
        key = (example.part, example.sample_id)
        seen[key] += 1
        if seen[key] > 1:
            if example.has_id:
                raise DataError(
                    f"{example.place}: the id {example.sample_id!r} is that of another example of the part"
                    f" {example.part!r}. Expected one id per example; without ids, they get some."
                )
            example = replace(example, record={**example.record, "id": f"{example.sample_id}-{seen[key]}"})
        made.append(example)
    return made


def write(examples: Iterable[UserExample], folder: Path) -> Path:
    """Write the examples of one part as a folder that the loader `table` reads, unless it is there; return it.

    Its name is their digest, and their order changes nothing.
    """
    ordered = sorted(examples, key=lambda example: example.sample_id)
    records = [{**example.record, "split": PARTS[example.part]} for example in ordered]
    target = folder / digest_of(records)[:32]
    (target / "images").mkdir(parents=True, exist_ok=True)
    for example in ordered:
        for name, image in zip(example.record["image"], example.images, strict=True):
            file, _ = locate(target / name)
            if isinstance(image, bytes):
                if not file.is_file():
                    file.write_bytes(image)
            elif not file.is_symlink() or file.resolve() != image.resolve():
                file.unlink(missing_ok=True)
                file.symlink_to(image.absolute())
    text = "".join(f"{json.dumps(record, ensure_ascii=False, sort_keys=True)}\n" for record in records)
    if not (target / _TABLE).is_file() or (target / _TABLE).read_text(encoding="utf-8") != text:
        replace_text(target / _TABLE, text)
    return target


def _records(examples: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a frame of any package, or of an iterable of dicts, with None for missing values."""
    if isinstance(examples, pl.LazyFrame):
        examples = examples.collect()
    if isinstance(examples, pl.DataFrame):
        rows: Iterable[Any] = examples.iter_rows(named=True)
    elif hasattr(examples, "iloc") and hasattr(examples, "to_dict"):  # pandas
        rows = examples.to_dict("records")
    elif hasattr(examples, "to_pylist"):  # pyarrow
        rows = examples.to_pylist()
    elif isinstance(examples, Mapping):
        columns = {str(column): list(values) for column, values in examples.items() if not isinstance(values, str)}
        if len(columns) < len(examples) or len({len(values) for values in columns.values()}) > 1:
            raise DataError(f"{name}: a mapping, whose columns are no lists of one length. {_EXPECTED}")
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    elif isinstance(examples, Iterable):  # a list of dicts, and a data set of Hugging Face
        rows = examples
    else:
        raise DataError(f"{name}: {type(examples).__name__}. {_EXPECTED}")
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"{name}: row {i} is a {type(row).__name__}. {_EXPECTED}")
        yield {str(column): _plain(value) for column, value in row.items()}


_EXPECTED = "Expected a frame (polars, pandas, pyarrow, datasets), dicts with an image and a question, or a file."


def _plain(value: Any) -> Any:
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return None
    is_numpy = type(value).__module__ == "numpy" and getattr(value, "ndim", 0) < 2
    return np.asarray(value).tolist() if is_numpy else value


def _named(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with the names that the loader `table` has for id and reference answers."""
    named = dict(record)
    for ours, names in (("id", _IDS), ("reference_answers", _REFERENCES)):
        column = next((name for name in names if record.get(name) is not None), None)
        named[ours] = None if column is None else record[column]
    return named


def _example(line: SourceRow, pictures: "_Pictures", part: str | None) -> UserExample | str:
    """Return the example of a row, or what is wrong with it."""
    record = line.record
    part_name = record.get("part", record.get("split"))
    part_name = part or {"train": "fit", None: "test"}.get(part_name, part_name)
    if part_name not in PARTS:
        meant = did_you_mean(part_name, PARTS)
        return f"{line.place}: part is {part_name!r}, expected {', '.join(PARTS)}.{meant} Correct it."
    question = record.get("question")
    if not isinstance(question, str) or not question.strip():
        return f"{line.place}: question is {question!r}, expected a text. Add it."
    if record.get("image") is None:
        return f"{line.place}: image is missing, expected a path, bytes, a picture of Pillow or an array. Add it."
    sources = record["image"] if isinstance(record["image"], list) else [record["image"]]
    try:
        named = [pictures.named(source) for source in sources]
    except DataError as error:
        return f"{line.place}: {error}"
    references = record["reference_answers"]
    has_reference = bool(references) and references != _NO_REFERENCE
    content = digest_of([question, record.get("options") or [], TOGETHER.join(name for name, _ in named)])[:16]
    kept = {column: record[column] for column in _OPTIONAL if record.get(column) is not None}
    return UserExample(
        place=line.place,
        part=part_name,
        record={
            "id": content if record["id"] is None else str(record["id"]),
            "question": question,
            "image": [f"images/{name}" for name, _ in named],
            "reference_answers": references if has_reference else _NO_REFERENCE,
            **kept,
        },
        images=[image for _, image in named],
        has_id=record["id"] is not None,
        has_reference=has_reference,
        others={
            column: value
            for column, value in record.items()
            if column not in (*_OF_RESULT, *_OPTIONAL, "question") and not column.startswith("confidence_")
        },
    )


class _Pictures:
    """Names images by their content; files and pictures that occur several times are read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Any, tuple[str, Path | bytes]] = {}
        self._kept: list[Any] = []  # so that no other object gets the id of one of them

    def named(self, image: Any) -> tuple[str, Path | bytes]:
        """Return the name of an image among the examples, and its file or bytes; DataError if it cannot be read."""
        if isinstance(image, Mapping):
            image = image.get("path") if image.get("bytes") is None else image["bytes"]
        key = image if isinstance(image, str | Path) else id(image)
        if key not in self._known:
            self._known[key] = self._read(image)
            self._kept.append(image)
        return self._known[key]

    def _read(self, image: Any) -> tuple[str, Path | bytes]:
        if isinstance(image, str | Path):
            file, frame = locate(self._folder / image)
            if not file.is_file():
                raise DataError(f"image {str(image)!r}: no such file. Expected a path from {self._folder.absolute()}.")
            name = f"{sha256_file(file)}{file.suffix.lower()}"
            return (name if frame is None else f"{name}#{frame}"), file
        if not isinstance(image, bytes | bytearray | memoryview):
            read(image).image.save(file := io.BytesIO(), "PNG")
            image = file.getvalue()
        return f"{hashlib.sha256(image).hexdigest()}.image", bytes(image)
