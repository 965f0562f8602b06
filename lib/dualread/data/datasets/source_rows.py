"""The tables of a user's own data: which files they are, their rows, and the forms in which people have these.

Rows are brought into the form that the loader `table` documents. Only what can mean one thing is read: a conversation
of one question and one answer, a list of one image, 2.0 for 2, CLOSED for closed, val for validation. Whatever is
changed about a row is noted, and counted in the audit. `dualread new` and `dualread score` read questions so, too.
"""

import base64
import binascii
import hashlib
import math
import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from dualread import limits
from dualread.data.datasets.base import unlabeled
from dualread.data.tables.contract import ANSWER_TYPES, ID, TEXTS
from dualread.data.tables.files import SUFFIXES, is_table, read_records, suffix_of
from dualread.errors import ConfigError, DataError, did_you_mean, refuse

SPLITS = ("train", "validation", "test")
_SPLIT_NAMES = {"training": "train", "val": "validation", "valid": "validation", "dev": "validation", "testing": "test"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRow:
    """One row of a table as it was read: the 0-based `number` of its line or row (`unit`), and its values.

    `notes` say what was changed about it, in words that are equal for all rows that were changed so.
    """

    file: Path
    unit: str
    number: int
    record: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The table and the row's place in it, for messages: lines are called by their number, rows from 0 on."""
        return f"{self.file}: {self.unit} {self.number + (self.unit == 'line')}"

    def split_at(self, separator: str | None) -> "SourceRow":
        """Return the row with lists in place of texts that the separator cuts; None for nothing."""
        texts = {name: self.record.get(name) for name in _LISTS if separator is not None}
        split = {
            name: [item.strip() for item in text.split(separator)]
            for name, text in texts.items()
            if isinstance(text, str) and str(separator) in text
        }
        notes = (f"the gold answers are several, separated by {separator}",) if "reference_answers" in split else ()
        return replace(self, record={**self.record, **split}, notes=(*self.notes, *notes)) if split else self


def split_name(name: Any) -> Any:
    """Return train, validation or test for a usual name of one, in upper or lower case; another value as it is."""
    plain = name.strip().lower() if isinstance(name, str) else name
    return _SPLIT_NAMES.get(plain, plain) if isinstance(plain, str) and plain in {*SPLITS, *_SPLIT_NAMES} else name


def renamed(lines: Sequence[SourceRow], columns: Mapping[str, str], known: Sequence[str]) -> list[SourceRow]:
    """Return the rows with the user's columns under our names, and without those that have no name of ours.

    `columns` is {name of ours: name in the table}. A name of ours (`known`) that is not in it, and is not another one's
    column, is read as it is.
    """
    names = list(dict.fromkeys(name for line in lines for name in line.record))
    for name, column in columns.items():
        if name not in known:
            raise ConfigError(
                f"settings.columns.{name}: no such column. Known: {', '.join(known)}.{did_you_mean(name, known)}"
            )
        if column not in names:
            raise DataError(
                f"{lines[0].file}: no column {column!r}, which settings.columns.{name} names. Found:"
                f" {', '.join(names)}.{did_you_mean(column, names)}"
            )
    taken = {name: columns.get(name, name) for name in known if name in columns or name not in columns.values()}
    return [
        replace(line, record={name: line.record[column] for name, column in taken.items() if column in line.record})
        for line in lines
    ]


def drawn_splits(images: Iterable[str], shares: Mapping[Any, float]) -> dict[str, str]:
    """Return the split of each image, by its name.

    Images are ordered by the sha256 of their name, so that neither their order nor an edit of other columns changes
    anything, and cut at the shares, in the order train, validation, test. Images beyond the last share have no split.
    """
    ordered = sorted(images, key=lambda name: hashlib.sha256(name.encode()).digest())
    drawn: dict[str, str] = {}
    begin, total = 0, 0.0
    for split in (split for split in SPLITS if split in shares):
        total += shares[split]
        end = round(total * len(ordered))
        drawn |= dict.fromkeys(ordered[begin:end], split)
        begin = end
    return drawn


def find_tables(folder: Path, split: str, files: Mapping[Any, str] | None) -> tuple[list[Path], bool]:
    """Return the tables that hold a split, sorted by name, and whether they hold all splits.

    `files` is the setting; None for the usual names.
    """
    if files is not None:
        of_all = split not in files
        pattern = files.get("rows") if of_all else files[split]
        try:
            matches = sorted(folder.glob(pattern)) if pattern is not None and not limits.leaves_folder(pattern) else []
        except ValueError:  # such as "a**"
            matches = []
        if not (tables := [path for path in matches if path.is_file()]):
            listed = ", ".join(sorted(path.name for path in folder.glob("*"))[:10]) or "nothing"
            raise DataError(f"{folder}: settings.files names no table for {split}: {pattern}. Found: {listed}.")
        return tables, of_all
    tables = [path for path in usual_tables(folder) if stem_of(path) in (split, "rows")]
    if len(tables) != 1:
        listed = " and ".join(path.name for path in tables) or "no table"
        raise DataError(
            f"{folder}: found {listed}, expected one table named {split} or rows, with the suffix"
            f" {', '.join(SUFFIXES)}, or one of these and .gz. `settings.files` names others."
        )
    return tables, stem_of(tables[0]) == "rows"


def usual_tables(folder: Path) -> list[Path]:
    """Return the tables of a folder that are named as a split, or rows, sorted by name."""
    return sorted(path for path in folder.glob("*") if stem_of(path) in (*SPLITS, "rows") and path.is_file())


def stem_of(path: Path) -> str | None:
    """Return the split that a table is named for, or another name in lower case; None if it is no table."""
    if not is_table(path):
        return None
    return split_name(path.name.lower().removesuffix(".gz").removesuffix(suffix_of(path)))


def read_table(file: Path) -> tuple[list[SourceRow], str]:
    """Return the rows of one table, and in words how it was read."""
    read = read_records(file)
    lines = [SourceRow(file=file, unit=read.unit, number=number - 1, record=record) for number, record in read.rows]
    if not lines:
        raise DataError(f"{file}: has no rows. Expected one row per question.")
    return lines, read.form


# {column of a conversation: (name of the speaker, name of what is said, speakers that ask, speakers that answer)}
_CONVERSATIONS = {
    "conversations": ("from", "value", ("human", "user"), ("gpt", "assistant")),
    "messages": ("role", "content", ("user",), ("assistant",)),
}
# Columns of options: A, B, ...; option_A, Choice B, option c.
_OPTION = re.compile(r"(?P<plain>[A-J])|(?i:option|choice)[ _]?(?P<named>[A-Ja-j])")
_IMAGE_TAG = re.compile(r"\A\s*<image>\s*|\s*<image>\s*\Z")
_IDS = ("id", "donor_id", "image_id", "group")
_LISTS = ("reference_answers", "options")
NUMBERED = re.compile(r"image_[1-9]\d?")  # columns of images
_DATA_URL = re.compile(r"\Adata:image/[\w.+-]+;base64,", re.IGNORECASE)
# How PNG, JPEG, GIF, WebP, TIFF and BMP begin in base64, which has no dot.
_BASE64 = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "SUkq", "TU0AK", "Qk")
_LONGEST_NAME = 255  # characters of a file's name; what is longer and has no dot is an image in base64


def unfolded(lines: Sequence[SourceRow]) -> list[SourceRow]:
    """Return the rows with columns that the loader reads in place of those of other programs.

    These are question and reference_answers in place of a conversation, as LLaVA's are, without a marker `<image>`
    before or after the question; and options in place of a column per option, as in VLMEvalKit's and PMC-VQA's tables.
    NaN is null.
    """
    columns = dict.fromkeys(name for line in lines for name in line.record)
    made = []
    for line in lines:
        values = line.record.items()
        record = {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values}
        made.append(replace(line, record=record))
    if (letters := _option_columns(columns)) is not None:
        made = [_gathered(line, letters, "options") for line in made]
    if not columns.keys().isdisjoint(_CONVERSATIONS):
        unfolded_rows = [_unfolded(line) for line in made]
        refuse(result for result in unfolded_rows if isinstance(result, str))
        made = [result for result in unfolded_rows if isinstance(result, SourceRow)]
    return made


def _option_columns(columns: Collection[str]) -> list[str] | None:
    """Return the columns that hold one option each, from A on; None without at least two, or beside `options`."""
    names = {(match["plain"] or match["named"]).upper(): name for name in columns if (match := _OPTION.fullmatch(name))}
    in_order = [names[letter] for letter in sorted(names)]
    is_complete = sorted(names) == list(string.ascii_uppercase[: len(names)]) and len(names) > 1
    return in_order if is_complete and "options" not in columns else None


def _gathered(line: SourceRow, columns: Sequence[str], target: str) -> SourceRow:
    """Return the row with a list, `target`, in place of `columns`, of which those at the end may be empty."""
    values = [line.record.get(name) for name in columns]
    while values and values[-1] in (None, ""):
        values.pop()
    others = {name: value for name, value in line.record.items() if name not in columns}
    note = f"{target.removesuffix('s')}s are those of the columns {', '.join(columns)}"
    return replace(line, record={**others, target: values}, notes=(*line.notes, note) if values else line.notes)


def _unfolded(line: SourceRow) -> SourceRow | str:
    name = next((name for name in _CONVERSATIONS if line.record.get(name) is not None), None)
    if name is None or "question" in line.record:
        return line
    speaker, field, ask, answer = _CONVERSATIONS[name]
    turns = line.record[name]
    turns = turns if isinstance(turns, list) and all(isinstance(turn, Mapping) for turn in turns) else []
    if len(turns) != 2 or turns[0].get(speaker) not in ask or turns[1].get(speaker) not in answer:
        who = ", ".join(str(turn.get(speaker))[:20] for turn in turns[:6]) or "no turns"
        return (
            f"{line.place}: {name} has {len(turns)} turns ({who}), expected a question by {ask[0]} and an answer by"
            f" {answer[0]}. Write one row per question."
        )
    question, reply = (turn.get(field) for turn in turns)
    if not isinstance(question, str) or not isinstance(reply, str):
        return f"{line.place}: {name}: {field} is no text in both turns. Write texts, and the image in its own column."
    bare = _IMAGE_TAG.sub("", question)
    record = {key: value for key, value in line.record.items() if key != name}
    notes = ("a marker <image> beside the question is taken off",) if bare != question else ()
    return replace(line, record={**record, "question": bare, "reference_answers": [reply]}, notes=(*line.notes, *notes))


def in_form(lines: Sequence[SourceRow]) -> list[SourceRow]:
    """Return the rows, whose columns have our names, with values in the form that the loader documents.

    What is in no known form stays as it is, for the loader to refuse. Ids that have lost digits are refused.
    """
    for name, kind in (*((name, ID) for name in _IDS), *((name, TEXTS) for name in _LISTS)):
        values = [line.record.get(name) for line in lines]
        texts = pl.Series([str(value) if isinstance(value, str | float) else None for value in values], dtype=pl.String)
        wrong = pl.select(kind.parsed(pl.lit(texts))).to_series().is_null() & texts.is_not_null()
        refuse(
            f"{line.place}: {name} is {text!r}: {kind.expected}."
            for line, text, is_wrong in zip(lines, texts, wrong, strict=True)
            if is_wrong
        )
    return [_in_form(line) for line in lines]


def _in_form(line: SourceRow) -> SourceRow:
    record, notes = dict(line.record), list(line.notes)
    for name in _IDS:
        if _is_whole(value := record.get(name)) or isinstance(value, str):
            record[name] = _text(value)
    for name in _LISTS:
        if record.get(name) is not None:
            record[name] = [_text(item) for item in _listed(record[name])]
    options: list[Any] = stored if isinstance(stored := record.get("options"), list) else []
    while options and options[-1] is None:  # what a row does not fill of a struct
        options.pop()
    if all(isinstance(option, str) for option in options) and (bare := unlabeled(options)) != options and all(bare):
        record["options"] = bare
        notes.append("labels (A., B., ...) of options are taken off")
    if "split" in record:
        record["split"] = split_name(record["split"])
    if isinstance(kind := record.get("answer_type"), str):
        plain = kind.strip().lower()
        record["answer_type"] = ANSWER_TYPES.get(plain, plain) or None
    if "image" in record:
        record["image"] = image_in(record["image"])
    return line if record == line.record else replace(line, record=record, notes=tuple(notes))


def with_images(lines: Sequence[SourceRow]) -> list[SourceRow]:
    """Return the rows with a list `image` in place of the columns image_1, image_2, ...; the last ones may be empty."""
    columns = sorted(
        {name for line in lines for name in line.record if NUMBERED.fullmatch(name)},
        key=lambda name: int(name.removeprefix("image_")),
    )
    if not columns or any("image" in line.record for line in lines):
        return list(lines)
    problems = []
    for line in lines:
        filled = [line.record.get(name) not in (None, "") for name in columns]
        if (n := sum(filled)) == 0 or not all(filled[:n]):
            others = "and a later one is not" if n else "and so are all others"
            empty = columns[filled.index(False)]
            problems.append(
                f"{line.place}: {empty} is empty, {others}; expected images from image_1 on, without a gap."
            )
    refuse(problems)
    return [_gathered(line, columns, "image") for line in lines]


def _listed(value: Any) -> list[Any]:
    """Return the items of a list; a mapping from A, B, ... has its values."""
    if isinstance(value, Mapping) and list(value) == list(string.ascii_uppercase[: len(value)]):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else [value]


def _is_whole(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and value.is_integer())


def _text(value: Any) -> Any:
    """Return a number as text, 2.0 as "2"."""
    if _is_whole(value):
        return str(int(value))
    return str(value) if isinstance(value, float) and math.isfinite(value) else value


def image_in(value: Any) -> Any:
    """Return the images of a list, or its only one; the bytes of one in base64; a backslash in a path is a slash."""
    if isinstance(value, list | tuple) and len(value) != 1:
        return list(map(image_in, value))
    if isinstance(value, list | tuple):
        value = value[0]
    if not isinstance(value, str):
        return value
    if _DATA_URL.match(value) or ("." not in value and (value.startswith(_BASE64) or len(value) > _LONGEST_NAME)):
        try:
            return base64.b64decode("".join(_DATA_URL.sub("", value).split()), validate=True)
        except (binascii.Error, ValueError):
            return value
    return value.replace("\\", "/")
