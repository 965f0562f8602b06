"""The tables of a user's own data: which files they are, their rows, and the splits of images that no column names.

The loader `table` reads them, and `dualread new` looks at them.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dualread.data.datasets._files import leaves_folder
from dualread.data.foreign_tables.read import SUFFIXES, read_records, suffix_of
from dualread.errors import ConfigError, DataError, did_you_mean

SPLITS = ("train", "validation", "test")
_SPLIT_NAMES = {"training": "train", "val": "validation", "valid": "validation", "dev": "validation", "testing": "test"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One row of a table as it was read.

    Attributes:
        file: The table.
        unit: "line" or "row".
        number: The 0-based number of its line or row.
        record: Its values.
        notes: What was changed about it, in words that are equal for all rows that were changed so.
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

    def converted(self) -> "Line":
        """Return the row of a .csv, whose cells are texts, with lists in place of texts that `#` separates."""
        if suffix_of(self.file) not in (".csv", ".tsv"):
            return self
        texts = {name: self.record[name] for name in ("reference_answers", "options") if self.record.get(name)}
        split = {
            name: [item.strip() for item in text.split("#")]
            for name, text in texts.items()
            if "#" in text and not text.startswith(("[", "{"))
        }
        notes = ("the gold answers are several, separated by #",) if "reference_answers" in split else ()
        return replace(self, record={**self.record, **split}, notes=(*self.notes, *notes)) if split else self


def split_name(name: Any) -> Any:
    """Return train, validation or test for a usual name of one, in upper or lower case; another value as it is."""
    plain = name.strip().lower() if isinstance(name, str) else name
    return _SPLIT_NAMES.get(plain, plain) if isinstance(plain, str) and plain in {*SPLITS, *_SPLIT_NAMES} else name


def renamed(lines: Sequence[Line], columns: Mapping[str, str], known: Sequence[str]) -> list[Line]:
    """Return the rows with the user's columns under our names, and without those that have no name of ours.

    Args:
        lines: The rows.
        columns: {name of ours: name in the table}. A name of ours that is not in it, and is not another one's column,
            is read as it is.
        known: The names of ours.

    Raises:
        ConfigError: A name is not ours.
        DataError: No row has a column that the mapping names.
    """
    found = list(dict.fromkeys(name for line in lines for name in line.record))
    for name, own in columns.items():
        if name not in known:
            raise ConfigError(
                f"settings.columns.{name}: no such column. Known: {', '.join(known)}.{did_you_mean(name, known)}"
            )
        if own not in found:
            raise DataError(
                f"{lines[0].file}: no column {own!r}, which settings.columns.{name} names. Found: {', '.join(found)}."
                f"{did_you_mean(own, found)}"
            )
    taken = {name: columns.get(name, name) for name in known if name in columns or name not in columns.values()}
    return [
        replace(line, record={name: line.record[own] for name, own in taken.items() if own in line.record})
        for line in lines
    ]


def drawn_splits(images: Iterable[str], shares: Mapping[str, float]) -> dict[str, str]:
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


def find_tables(folder: Path, split: str, files: Mapping[str, str] | None) -> tuple[list[Path], bool]:
    """Return the tables that hold a split, sorted by name, and whether they hold all splits.

    Args:
        folder: The folder of the data set.
        split: train, validation or test.
        files: The setting `files`; None for the usual names.

    Raises:
        DataError: There is none, or there are several of the usual names.
    """
    if files is not None:
        of_all = split not in files
        pattern = files.get("rows") if of_all else files[split]
        try:
            matches = sorted(folder.glob(pattern)) if pattern is not None and not leaves_folder(pattern) else []
        except ValueError:  # such as "a**"
            matches = []
        if not (found := [path for path in matches if path.is_file()]):
            raise DataError(
                f"{folder}: settings.files names no table for {split}: {pattern}. Found: {_listed(folder)}."
            )
        return found, of_all
    found = [path for path in usual_tables(folder) if stem_of(path) in (split, "rows")]
    if len(found) != 1:
        listed = " and ".join(path.name for path in found) or "no table"
        raise DataError(
            f"{folder}: found {listed}, expected one table named {split} or rows, with the suffix"
            f" {', '.join(SUFFIXES)}, or one of these and .gz. `settings.files` names others."
        )
    return found, stem_of(found[0]) == "rows"


def usual_tables(folder: Path) -> list[Path]:
    """Return the tables of a folder that are named as a split, or rows, sorted by name."""
    return sorted(path for path in folder.glob("*") if stem_of(path) in (*SPLITS, "rows") and path.is_file())


def stem_of(path: Path) -> str | None:
    """Return the split that a table is named for, or another name in lower case; None if it is no table."""
    if (suffix := suffix_of(path)) not in SUFFIXES:
        return None
    return split_name(path.name.lower().removesuffix(".gz").removesuffix(suffix))


def _listed(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in folder.glob("*"))[:10]) or "nothing"


def read_table(file: Path) -> tuple[list[Line], str]:
    """Return the rows of one table, and in words how it was read.

    Raises:
        DataError: The file is in another format, cannot be read, or has no rows.
    """
    read = read_records(file)
    found = [Line(file=file, unit=read.unit, number=number - 1, record=record) for number, record in read.rows]
    if not found:
        raise DataError(f"{file}: has no rows. Expected one row per question.")
    return found, read.form
