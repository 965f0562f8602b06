"""Your own data, as a table: one per split, named train, validation and test, or one named rows for all splits.

Any of .jsonl, .ndjson, .json, .csv, .tsv and .parquet will do, also with .gz (`data/tables`); val, valid and
dev are validation. The table has one row per question. These columns are required, `split` only in rows.* without the
setting `shares`:

    question            text
    reference_answers   a list of accepted answers, or one text; with the setting `alternatives`, what it separates.
                        Where there are options, the text of one of them, or its letter or number
    image               a path inside the folder; or the image's bytes, in parquet or in base64; or {bytes, path}; or a
                        list of 1 to 20 of these, all of which the question shows, in this order. In its place, there
                        may be columns image_1, image_2, ...
    split               train, validation or test

These may be missing, or null in some rows:

    id                  text or an integer, unique in its split; default: a digest of question, answers, options and
                        image
    answer_type         open or closed, or yes/no, number or other as VQA has them; default: closed if every reference
                        answer is yes or no, else open
    options             the 2 to 10 visible options of a multiple-choice question, as a list or as {A: ..., B: ...};
                        default: none
    image_id            equal for all questions on one image; default: the image's path, or a digest of its bytes. For
                        questions on one image alone
    donor_id            id of the same-question donor; if no row names one, donors are computed
    group               the patient, or whatever else one split and one role have to hold as a whole; intervals resample
                        groups. With `shares`, groups are drawn in place of images. A group with rows of two splits is
                        refused, as are names of groups that may be one, such as 7 and 007
    modality, location, content_family      text; default: unknown

In place of question and reference_answers, a column `conversations` or `messages` may hold one question and one answer,
as LLaVA has them; in place of options, there may be a column per option (A, B, ... or option_A, Choice B). A backslash
in a path is a slash.

`Settings` are for tables that are not in this form.
"""

import hashlib
import json
import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from dualread import limits
from dualread.data.datasets.base import TEXT, Allowed, AuditStep, Loaded, Picture, Row, is_texts, lower
from dualread.data.datasets.gold_columns import with_texts
from dualread.data.datasets.source_rows import (
    NUMBERED,
    SPLITS,
    SourceRow,
    drawn_splits,
    find_tables,
    in_form,
    read_table,
    renamed,
    unfolded,
    with_images,
)
from dualread.data.questions.roles import connected
from dualread.errors import ConfigError, DataError, did_you_mean, refuse
from dualread.grading.canonical import canonical
from dualread.schema.base import MOST_IMAGES, TOGETHER, Listed, Names, NotEmpty, Section, Split
from dualread.schema.columns import FEWEST_OPTIONS, MANIFEST, MOST_OPTIONS

HUB_FILES = {"train": ("*",), "validation": ("*",), "test": ("*",)}
TERMS = "Your own data, or other data that you brought into this form; the terms are those of its owner."

_LONGEST_PATH = 1024  # characters


class Settings(Section):
    """How tables are read that are not in this form."""

    files: Annotated[Mapping[Split | Literal["rows"], NotEmpty], Field(min_length=1)] | None = None
    """The table of each split, or one for all of them (`rows`): patterns of files in the folder, in place of the names
    above."""
    columns: Mapping[str, NotEmpty] | None = None
    """The name in the table of each column above. Other columns are then ignored; without this setting, refused."""
    shares: Annotated[Mapping[Split, Annotated[float, Field(gt=0, le=1)]], Field(min_length=1)] | None = None
    """Share of the images of each split, for one table without `split`. Images are ordered by the digest of their name
    and cut at the shares, so that all questions about one image are in one split. With a column `group`, groups are
    drawn so, in place of images."""
    alternatives: NotEmpty | None = None
    """What separates several reference answers, or options, in one text, such as `#`; nothing by default."""
    gold: Literal["text", "letter", "number from 0", "number from 1"] | None = None
    """How reference answers name options, where several ways fit."""
    image_roles: Annotated[Listed[NotEmpty], Field(min_length=2, max_length=MOST_IMAGES)] | None = None
    """What the images of each question are, in their order, such as [prior, current]: every row has as many images
    then, and image changes and donors can tell them apart."""
    booleans: Literal["yes/no", "true/false"] | None = None
    """What True and False stand for in reference answers."""
    subgroups: Names | None = None
    """Further columns of texts or whole numbers whose values are groups of answers, such as sex or site; `subgroups` of
    the study may name them. Blank values are in no group."""


def _picture(value: Any) -> str | bytes | None:
    """Return the path inside the folder, or the bytes, that a value of the column `image` holds; None for neither."""
    if isinstance(value, dict):
        value = value.get("path") if value.get("bytes") is None else value["bytes"]
    if isinstance(value, bytes):
        return value or None
    is_path = isinstance(value, str) and len(value) <= _LONGEST_PATH and not re.match(r"data:|[a-z]+://", value.lower())
    return value if is_path and not limits.leaves_folder(value) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_ANSWERS = Allowed(
    lambda value: isinstance(value, list) and value != [] and all(isinstance(item, str | bool) for item in value),
    'text or a list of texts (as text, every one in quotes: ["a", "b"])',
)
_OPTIONS = Allowed(
    lambda value: (
        value == [] or (is_texts(value) and all(map(str.strip, value)) and FEWEST_OPTIONS <= len(value) <= MOST_OPTIONS)
    ),
    f"none, or a list of {FEWEST_OPTIONS} to {MOST_OPTIONS} texts",
)
_NAME = Allowed(lambda value: type(value) is int or (isinstance(value, str) and value != ""), "text or an integer")
_GROUP = Allowed(
    lambda value: isinstance(value, str) or (type(value) in (int, float) and value % 1 == 0), "text or a whole number"
)
_NO_GROUP = ("", "nan", "none", "null", "n/a", "#n/a", "<na>")  # as programs write that there is none
_REQUIRED: dict[str, Allowed] = {
    "question": TEXT,
    "reference_answers": _ANSWERS,
    "image": Allowed(
        lambda value: 0 < len(_listed(value)) <= MOST_IMAGES and None not in map(_picture, _listed(value)),
        f"a path inside the folder, bytes, or {{bytes, path}}, or a list of 1 to {MOST_IMAGES} of them",
    ),
}
_SPLIT: dict[str, Allowed] = {"split": Allowed(lambda value: value in SPLITS, "train, validation or test")}
_OPTIONAL: dict[str, Allowed] = {
    "id": _NAME,
    "answer_type": Allowed(lambda value: value in ("open", "closed"), "open or closed"),
    "options": _OPTIONS,
    "image_id": TEXT,
    "donor_id": _NAME,
    "group": _NAME,
    "modality": TEXT,
    "location": TEXT,
    "content_family": TEXT,
}


COLUMNS = (*_REQUIRED, *_SPLIT, *_OPTIONAL)
_OF_ANSWERS = ("study", "replicates", "method", "answer", "reference_answer", "correct", "confidence", "group", "by")


def load_rows(folder: Path, split: str, settings: Settings) -> Loaded:
    """Return the rows of `split`, in the order of the file."""
    files, of_all = find_tables(folder, split, settings.files)
    lines = formed([line for file in files for line in read_table(file)[0]], settings, of_all=of_all)
    lines = with_texts(lines, settings.gold, settings.booleans)
    if not of_all and (groups := _groups(lines)):
        refuse(_divided(*_of_other_tables(folder, split, groups, settings), files[0]))
    return loaded(folder, files, lines, split, settings, of_all=of_all)


def formed(lines: Sequence[SourceRow], settings: Settings, *, of_all: bool) -> list[SourceRow]:
    """Return the rows of one split, or of all, with our columns; values have the documented form, but for the gold.

    Refused are unknown columns, and rows that lack a value or have one of the wrong kind.
    """
    lines, further = unfolded(lines), settings.subgroups or ()
    if taken := sorted({*further} & {*COLUMNS, *MANIFEST.columns, *_OF_ANSWERS}):
        raise ConfigError(
            f"settings.subgroups: {taken[0]!r} is a column of every study. Give yours another name in settings.columns."
        )
    if lines and settings.columns is not None:
        numbered = {name for line in lines for name in (*line.record, *settings.columns) if NUMBERED.fullmatch(name)}
        lines = renamed(lines, settings.columns, (*COLUMNS, *further, *sorted(numbered)))
    lines = in_form([line.split_at(settings.alternatives) for line in with_images(lines)])
    for name in further:
        if lines and not any(name in line.record for line in lines):
            raise DataError(
                f"{lines[0].file}: no column {name!r}, which settings.subgroups names. Add it, or remove it there."
            )
    required = _REQUIRED | (_SPLIT if of_all and not settings.shares else {})
    refuse(_problems(lines, required, _OPTIONAL | dict.fromkeys(further, _GROUP)))
    refuse(_of_other_number(lines, settings.image_roles))
    return lines


def _of_other_number(lines: Sequence[SourceRow], roles: Sequence[str] | None) -> Iterator[str]:
    """Yield the rows with other images than `roles` say, and those that name several images as if they were one."""
    for line in lines:
        n = len(_listed(line.record["image"]))
        if roles is not None and n != len(roles):
            yield f"{line.place}: {n} images, expected {', '.join(roles)} (settings.image_roles). Add or remove some."
        if n > 1 and line.record.get("image_id") is not None:
            yield f"{line.place}: image_id names one image, and there are {n}. Remove it: paths or bytes name them."


def loaded(
    folder: Path, files: Sequence[Path], lines: Sequence[SourceRow], split: str, settings: Settings, *, of_all: bool
) -> Loaded:
    """Return a question for each row of `split`, at least one.

    `lines` are the rows of `files`, in the form that `formed` and `with_texts` give; `of_all` says whether these tables
    hold all splits.
    """

    @cache  # the rows about one picture share its path or bytes
    def image_of(value: str | bytes) -> tuple[Path | bytes, str]:
        """Return the image that a picture's path or bytes stand for, and its name."""
        if isinstance(value, bytes):
            return value, hashlib.sha256(value).hexdigest()
        return folder.absolute() / value, str(PurePosixPath(value))

    images = [[image_of(value) for value in map(_picture, _listed(line.record["image"])) if value] for line in lines]
    shown = [
        tuple(
            Picture(source, _value(line.record, "image_id", name), role)
            for (source, name), role in zip(of_line, settings.image_roles or [None] * len(of_line), strict=True)
        )
        for line, of_line in zip(lines, images, strict=True)
    ]
    splits = _splits(lines, shown, split, settings, of_all=of_all)
    chosen = [
        _row(line.number if len(files) == 1 else i, line.record, pictures, [name for _, name in of_line], settings)
        for i, (line, pictures, of_line) in enumerate(zip(lines, shown, images, strict=True))
        if splits[i] == split
    ]
    if not chosen:
        raise DataError(f"{files[0]}: no row of the split {split!r}. Add some, or remove the split from the config.")
    reason = f"rows of {', '.join(file.name for file in files)} for {split}"
    audit = [AuditStep(step="split", kept=len(chosen), dropped=len(lines) - len(chosen), reason=reason)]
    notes = Counter(note for line, part in zip(lines, splits, strict=True) if part == split for note in line.notes)
    for note, n in notes.items():
        audit.append(AuditStep(step="form", kept=len(chosen), dropped=0, reason=f"{n} rows: {note}"))
    return Loaded(file=files[0], rows=chosen, audit=audit)


def _splits(
    lines: Sequence[SourceRow], shown: Sequence[Sequence[Picture]], split: str, settings: Settings, *, of_all: bool
) -> list[Any]:
    """Return the split of each row; refuse images of two groups, and groups of two splits."""
    groups = _groups(lines)
    group_of: dict[str, str] = {}
    refuse(
        f"{line.place}: the image {picture.name!r} is in the groups {first!r} and {group!r}. Expected one."
        for line, group, pictures in (zip(lines, groups, shown, strict=True) if groups else ())
        for picture in pictures
        if (first := group_of.setdefault(picture.name, group)) != group
    )
    if of_all and settings.shares:
        names: Sequence[str] = groups
        if not names:  # what has to be in one split: an image, or the first of all that it leads to
            of_rows = [[picture.name for picture in pictures] for pictures in shown]
            first_of = connected(of_rows)
            names = [first_of[of_row[0]] for of_row in of_rows]
        drawn = drawn_splits(set(names), settings.shares)
        return [drawn.get(name) for name in names]
    splits = [line.record.get("split", split) if of_all else split for line in lines]
    refuse(_divided(groups, splits, lines[0].file))
    return splits


def _groups(lines: Sequence[SourceRow]) -> list[str]:
    """Return the group of each row; none where there is no such column. Refuse rows without a group."""
    if not any("group" in line.record for line in lines):
        return []
    groups = [str(line.record.get("group") or "").strip() for line in lines]
    missing = [line for line, group in zip(lines, groups, strict=True) if group.lower() in _NO_GROUP]
    refuse(
        f"{line.place}: group is missing ({line.record.get('group')!r}). Add it to all rows, or remove the column."
        for line in missing
    )
    refuse(f"{lines[0].file}: {problem}" for problem in _alike(groups))
    return groups


def _alike(groups: Iterable[str]) -> Iterator[str]:
    """Yield the groups that may be one: a program may have taken zeros from a number's ends, or added them."""
    known: dict[str, str] = {}
    for group in dict.fromkeys(groups):
        number = re.fullmatch(r"0*([0-9]+)(\.0+)?", group)
        if number and (other := known.setdefault(number[1], group)) != group:
            yield f"the groups {other!r} and {group!r} are one number. Write one name for one group, and no such two."


def _of_other_tables(
    folder: Path, split: str, groups: Sequence[str], settings: Settings
) -> tuple[list[str], list[str]]:
    """Return the groups of this split and of those that have tables of their own, and the split of each."""
    all_groups, splits = list(groups), [split] * len(groups)
    for other in (name for name in SPLITS if name != split):
        try:
            files, of_all = find_tables(folder, other, settings.files)
        except DataError:  # none, or several: said where that split is read
            continue
        if not of_all:
            lines = formed([line for file in files for line in read_table(file)[0]], settings, of_all=False)
            more = _groups(lines)
            all_groups, splits = [*all_groups, *more], [*splits, *[other] * len(more)]
    refuse(f"{folder}: {problem}" for problem in _alike(all_groups))
    return all_groups, splits


def _divided(groups: Sequence[str], splits: Sequence[Any], file: Path) -> Iterator[str]:
    """Yield the groups that have rows of two splits."""
    first: dict[str, Any] = {}
    pairs = zip(groups, splits if groups else (), strict=True)
    for group, other in {group: split for group, split in pairs if first.setdefault(group, split) != split}.items():
        both = f"{first[group]} and of {other}"
        yield f"{file}: the group {group!r} has rows of {both}. Put all of its rows into one split."


def _problems(
    lines: Sequence[SourceRow], required: Mapping[str, Allowed], optional: Mapping[str, Allowed]
) -> Iterator[str]:
    columns = {**required, **optional}
    seen = set(columns)
    for line in lines:
        place, record = line.place, line.record
        for column in [column for column in record if column not in seen]:
            seen.add(column)  # an unknown column is reported where it is first met
            meant = did_you_mean(column, columns)
            yield (
                f"{place}: unknown column {column!r}. Known: {', '.join(columns)}.{meant} Rename or remove it, or name"
                " yours in settings.columns."
            )
        for column, field in columns.items():
            value = record.get(column)
            if value is None and column in required:
                yield f"{place}: {column} is missing, expected {field.expected}. Add it."
            elif value is not None and not field.holds(value):
                yield f"{place}: {column} is {reprlib.repr(value)}, expected {field.expected}. Correct it."


def _row(
    source_row: int, record: Mapping[str, Any], images: tuple[Picture, ...], names: Sequence[str], settings: Settings
) -> Row:
    """Return a question; `names` are the paths or digests of its images, also where its table names them otherwise."""
    answers, options = tuple(record["reference_answers"]), tuple(record.get("options") or ())
    content = json.dumps([record["question"], answers, options, TOGETHER.join(names)])
    closed = all(canonical(answer) in ("yes", "no") for answer in answers)
    values = ((name, record.get(name)) for name in settings.subgroups or ())
    numbers = ((name, int(value) if isinstance(value, float) else value) for name, value in values)
    groups = ((name, "" if value is None else str(value).strip()) for name, value in numbers)
    return Row(
        official_id=str(_value(record, "id", hashlib.sha256(content.encode()).hexdigest()[:16])),
        question=record["question"],
        reference_answers=answers,
        answer_type=_value(record, "answer_type", "closed" if closed else "open"),
        content_family=lower(record.get("content_family")),
        options=options,
        modality=lower(record.get("modality")),
        location=lower(record.get("location")),
        images=images,
        source_row=source_row,
        donor_id=None if record.get("donor_id") is None else str(record["donor_id"]),
        patient=None if record.get("group") is None else str(record["group"]).strip(),
        columns=tuple((name, None if text.lower() in _NO_GROUP else text) for name, text in groups),
    )


def _value(record: Mapping[str, Any], column: str, otherwise: Any) -> Any:
    return otherwise if record.get(column) is None else record[column]
