"""Read a table of questions; a row that holds none keeps its place and says what is wrong."""

import hashlib
import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dualread.apps.score.results import Question
from dualread.data.datasets.own_tables import OwnRow, image_in, in_form, unfolded
from dualread.data.tables.files import BrokenLine, read_records
from dualread.errors import DataError
from dualread.schema.columns import FEWEST_OPTIONS, MOST_OPTIONS


@dataclass(frozen=True, kw_only=True)
class QuestionRow:
    """One row of the file.

    Attributes:
        number: Its number, from 1: of its line, or of its row in a file without lines.
        text: What it says, as one text.
        id: What its `id` says; None without one.
        question: The question; None if the row holds none.
        problem: Why it holds none; "" if it holds one.
    """

    number: int
    text: str
    id: Any = None
    question: Question | None = None
    problem: str = ""


def read_rows(file: Path) -> list[QuestionRow]:
    """Return the rows of a table of questions, as the data sets' loader `table` reads them.

    Images are looked for beside the file.

    Raises:
        DataError: The file cannot be read, has no rows, or can be read in two ways; ids have lost digits; or a
            conversation is not one question and one answer.
    """
    read = read_records(file, every=True)
    rows = list(read.rows)
    if not rows:
        raise DataError(f'{file}: is empty. Expected a row such as {{"image": "x.png", "question": "..."}}.')
    lines = [
        OwnRow(file=file, unit=read.unit, number=number - 1, record=record)
        for number, record in rows
        if not isinstance(record, BrokenLine)
    ]
    formed = iter(in_form(unfolded(lines)))
    return [
        QuestionRow(number=number, text=record.why, problem=f"{read.unit} {number}: {record.why}")
        if isinstance(record, BrokenLine)
        else _row(read.unit, number, record, next(formed).record, file.parent)
        for number, record in rows
    ]


_KINDS = (
    ("image", Path | bytes, "a path, or the bytes of an image"),
    ("question", str, "a text"),
    ("donor", Path | bytes, "a path, or the bytes of an image"),
)


def _row(unit: str, number: int, record: Mapping[str, Any], formed: Mapping[str, Any], folder: Path) -> QuestionRow:
    def picture(value: Any) -> Any:
        """Return the path or the bytes of a picture, which datasets writes as {bytes, path}."""
        if isinstance(value, Mapping):
            value = value.get("path") if value.get("bytes") is None else value["bytes"]
        return folder / value if isinstance(value, str) else value

    def plain(value: Any) -> str:
        return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else str(value)

    name = record.get("id") if type(record.get("id")) is int else formed.get("id")
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, default=plain)
    row = QuestionRow(number=number, text=text, id=name)
    asked: dict[str, Any] = {"question": formed.get("question")}
    asked |= {name: picture(image_in(formed.get(name))) for name in ("image", "donor")}
    options = formed.get("options") or []
    is_list = isinstance(options, Sequence) and FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS
    are_texts = is_list and not isinstance(options, str) and all(isinstance(option, str) for option in options)
    problems = [
        *(f"no {name}" for name in ("image", "question") if asked[name] is None),
        *(
            f"{name} is {reprlib.repr(record.get(name))}, expected {expected}"
            for name, kinds, expected in _KINDS
            if asked[name] is not None and not isinstance(asked[name], kinds)
        ),
    ]
    if options and not are_texts:
        problems.append(f"options: expected none, or a list of {FEWEST_OPTIONS} to {MOST_OPTIONS} texts")
    if problems:
        return replace(row, problem=f"{unit} {number}: {'; '.join(problems)}.")
    return replace(row, question=Question(**asked, options=tuple(options)))
