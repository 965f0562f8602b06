"""What a data set loader has to provide and what it returns; how official files, which may be damaged, are checked.

A loader is a module with `load_rows(folder, split, settings) -> Loaded`, perhaps with a class `Settings` that says what
`datasets.<name>.settings` may hold (`schema.base.settings_class`), and with these literals, which are read without
importing it:

    HUB_FILES   for each split, patterns of the files that it needs from the hub's repository (`data/test-*.parquet`);
                these are the splits of the data set
    TERMS       one or two sentences for people: license, citation, where the official files are, and whether one has
                to apply for access

If there is a test split alone, NEVER_FITTED says why to those who ask for another one.

If they are known, these help `dualread plan`:

    SIZES       for each split {"open": questions, "closed": questions, "images": images}, with the default settings
    DOWNLOAD_GB size of the download, in gigabytes
    MOST_SHOWN  the largest number of images of a question, where it is more than one

A loader is called by `load`, which checks the split and gives it an object of its `Settings`. It raises a DataError
that lists up to ten rows if files are missing or damaged, or a value is not as the format has it. It keeps or drops
rows by fixed rules. Every rule that can drop a row has an `AuditStep`, even if it drops none. A loader selects nothing
at random and decodes no image: `dualread.data.questions` selects questions, checks images and identifies them.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from dualread import limits
from dualread.artifacts.tables import from_many_rows
from dualread.data.tables.files import parsed
from dualread.errors import ConfigError, DataError, did_you_mean, refuse
from dualread.grading.canonical import canonical
from dualread.schema.base import TOGETHER, NoSettings, Wire
from dualread.schema.columns import QUESTION_COLUMNS


@dataclass(frozen=True, slots=True)
class Picture:
    """One of the images of a question.

    Attributes:
        source: Absolute path of the official image file, or the image's bytes if the official table holds them. Equal
            bytes are one object, so that a table with many questions per image needs little memory.
        name: The name of the image in the data set, equal for all questions on one image.
        role: What it is among the images of its question, such as "prior"; None if the data set does not say it.
    """

    source: Path | bytes
    name: str
    role: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One question of an official file, with its text unchanged and its fields renamed.

    Attributes:
        official_id: The id of the question in the data set; becomes the end of `sample_id`.
        question: The question, verbatim.
        reference_answers: Accepted gold answers, verbatim; one or more, possibly an empty string.
        answer_type: "open" or "closed".
        content_family: The content family that the data set records, in lower case; None if it records none.
        options: Visible options of a multiple-choice question; empty for other questions.
        modality: Imaging modality; None if the data set records none.
        location: Part of the body; None if the data set records none.
        images: What it shows, in order; one or more. All have roles, or none has.
        source_row: 0-based row of the official file.
        donor_id: `official_id` of the same-question donor, in the same split, if the data set itself names one; else
            None.
        patient: The patient, or case, as the data set names it, equal in all its splits; None if it names none.
        columns: Name and value of the further columns that make groups of answers; None where the value is blank.
    """

    official_id: str
    question: str
    reference_answers: tuple[str, ...]
    answer_type: str
    content_family: str | None = None
    options: tuple[str, ...] = ()
    modality: str | None = None
    location: str | None = None
    images: tuple[Picture, ...]
    source_row: int
    donor_id: str | None = None
    patient: str | None = None
    columns: tuple[tuple[str, str | None], ...] = ()

    @property
    def image_name(self) -> str:
        """The name of what is shown: that of the image, or the names of all in their order."""
        return TOGETHER.join(picture.name for picture in self.images)


@dataclass(frozen=True, kw_only=True)
class AuditStep:
    """One step from the official file to the table of questions: how many rows it kept and dropped, and why."""

    step: str
    kept: int
    dropped: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The rows of one split, the official file that they come from, and the audit of the rows that were dropped."""

    file: Path
    rows: Sequence[Row]
    audit: Sequence[AuditStep]

    def question_columns(self, dataset: str, split: str) -> pl.DataFrame:
        """Return the further columns of the questions, which make groups of answers; no rows where there are none."""
        records = (
            {"sample_id": f"{dataset}/{split}/{row.official_id}", "column": name, "value": value}
            for row in self.rows
            for name, value in row.columns
        )
        return from_many_rows(records, QUESTION_COLUMNS)


def askable(rows: Sequence[Row], no_gold: str) -> tuple[list[Row], list[AuditStep]]:
    """Return the rows that can be asked, in their order, and one audit step per rule.

    Rows have all options that were found, and no reference answer if no option is the gold one; `no_gold` says why, as
    the end of "dropped where ...". A row counts as dropped by the first rule that it breaks.
    """
    rules = (
        (
            "four options",
            "a question has exactly four options, each with a canonical form",
            lambda row: len(row.options) == 4 and all(map(canonical, row.options)),
        ),
        (
            "distinct options",
            "no two options have the same canonical form",
            lambda row: len(set(map(canonical, row.options))) == 4,
        ),
        ("gold option", f"dropped where {no_gold}", lambda row: len(row.reference_answers) > 0),
    )
    return kept_by(rules, rows)


def kept_by(
    rules: Iterable[tuple[str, str, Callable[[Row], bool]]], rows: Sequence[Row]
) -> tuple[list[Row], list[AuditStep]]:
    """Return the rows that hold under all rules, and one audit step per rule (step, reason, whether a row holds)."""
    kept, audit = list(rows), []
    for step, reason, holds in rules:
        before, kept = len(kept), [row for row in kept if holds(row)]
        audit.append(AuditStep(step=step, kept=len(kept), dropped=before - len(kept), reason=reason))
    return kept, audit


def answer_type(answer: str) -> str:
    """Return "closed" for yes and no, in upper or lower case and with or without white space around, else "open"."""
    return "closed" if answer.strip().lower() in ("yes", "no") else "open"


def unlabeled(options: Sequence[str]) -> list[str]:
    """Remove the labels "A. ...", "B. ...", if every option has its own; otherwise "C. difficile" would lose its C."""
    texts = [option.strip() for option in options]
    letters = string.ascii_uppercase
    labels = [re.match(rf"\(?{letter}\s*[.:)]\s*", text) for letter, text in zip(letters, texts, strict=False)]
    bare = [text[label.end() :] for label, text in zip(labels, texts, strict=False) if label]
    return bare if len(bare) == len(texts) else texts


def load(loader: ModuleType, folder: Path, split: str, settings: Wire) -> Loaded:
    """Return the rows that a loader reads in a folder of official files.

    Raises:
        ConfigError: The data set has no such split, or a setting is unknown, missing, or not allowed.
        DataError: A file is missing or damaged, or a row has a value that the format does not allow.
    """
    name, splits = loader.__name__.rpartition(".")[2], list(loader.HUB_FILES)
    if split not in splits:
        meant = did_you_mean(split, splits) + getattr(loader, "NEVER_FITTED", "")
        raise ConfigError(f"{name}: no split named {split!r}. Known: {', '.join(splits)}.{meant}")
    chosen = getattr(loader, "Settings", NoSettings).from_spec(settings, f"{name}: settings")
    return loader.load_rows(folder, split, chosen)


def read_json(file: Path, kind: type, files: str) -> Any:
    """Return the content of a JSON file, a `kind` (list or dict), in which no object has the same key twice.

    `files` names the official files, for the message where it is missing.
    """
    if not file.is_file():
        raise DataError(f"{file}: no such file. Expected the official files: {files}.")
    try:
        content = parsed(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not JSON ({error}). Restore it from the official archive.") from error
    if not isinstance(content, kind):
        raise DataError(f"{file}: holds a {type(content).__name__}, expected a {kind.__name__} of rows.")
    return content


def lines_of(file: Path) -> dict[int, str]:
    """Return the lines of a text file by their numbers, from 0, without line ends (LF or CRLF) and blank lines."""
    try:
        text = file.read_text(encoding="utf-8-sig")  # turns CRLF into one line feed
    except ValueError as error:
        raise DataError(f"{file}: not UTF-8 text ({error}). Restore it from the official archive.") from error
    return {i: line for i, line in enumerate(text.split("\n")) if line.strip()}


@dataclass(frozen=True)
class Allowed:
    """What a value of an official file has to be: a test, and words for people."""

    holds: Callable[[Any], bool]
    expected: str


def word_of(*words: str) -> Allowed:
    """Return the field of a text that is one of the words, in any case and with white space around it."""
    return Allowed(lambda value: isinstance(value, str) and value.strip().lower() in words, ", ".join(words).upper())


def path_below(folder: str) -> Allowed:
    """Return the field of a path that stays inside its folder, which `folder` describes."""
    return Allowed(lambda value: isinstance(value, str) and not limits.leaves_folder(value), folder)


TEXT = Allowed(lambda value: isinstance(value, str), "text")
MAYBE_TEXT = Allowed(lambda value: value is None or isinstance(value, str), "text or null")
INTEGER = Allowed(lambda value: type(value) is int, "an integer")  # bool is an int to isinstance


def check_records(
    records: Iterable[tuple[Path, int | str, Any]], fields: Mapping[str, Allowed], name: str | None = None
) -> None:
    """Refuse records, each with its file and the number or name of its row, of which a value is not as `fields` say.

    The key `name`, if there is one, has a value that names a record in messages.
    """
    refuse(problem for file, row, record in records for problem in problems_of(file, row, record, fields, name))


def problems_of(
    file: Path, row: int | str, record: Any, fields: Mapping[str, Allowed], name: str | None = None
) -> Iterator[str]:
    """Yield a sentence per value of a record that is not as `fields` say; see `check_records`."""
    where = f"{file}: row {row}:"
    if not isinstance(record, dict):
        keys = " and ".join(list(fields)[:2])
        yield f"{where} is a {type(record).__name__}, expected an object with {keys}. Correct the row."
        return
    if name is not None:
        where += f" {name} {record.get(name)}:"
    for key, field in fields.items():
        if not field.holds(value := record.get(key)):
            yield f"{where} {key} is {value!r:.200}, expected {field.expected}. Correct the row."


def is_texts(value: Any) -> bool:
    """Return whether `value` is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def lower(text: str | None) -> str | None:
    """Return `text` in lower case without white space at the ends; None for None and for blank text."""
    return (text or "").strip().lower() or None
