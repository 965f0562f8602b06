"""Find the printed cell that some words identify, in the CSV file of a table."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.store.place import Target

# Names of the first column that holds a value; the columns before it identify the value.
_VALUES = ("mean", "value", "estimate", "printed")
_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class PrintedCell:
    """A row of a table's CSV file, with all values as text; `seed` if only one seed is wanted."""

    row: Mapping[str, str]
    seed: int | None = None

    @property
    def name(self) -> str:
        """The words that identify the cell."""
        return cell_name(self.row)


def find_cell(target: Target, text: str) -> PrintedCell:
    """Return the cell that `text` identifies by words in any order, each a value of its row (`slake`, `dataset=slake`).

    Any words that only one cell has will do, such as a whole row pasted from the CSV file. `seed=17`, or an integer
    that is not a value of the table, selects one seed of the mean.

    Raises:
        ArtifactError: The artifact is not a table.
        ConfigError: No cell has all words, or several cells have.
    """
    rows = _rows(target)
    words = [word for word in re.split(r"[,\s]+", text) if word]
    values = {value for row in rows for value in row.values()}
    seeds = [word for word in words if word.removeprefix("seed=").isdecimal() and word not in values]
    words = [word for word in words if word not in seeds]
    matching = [row for row in rows if all(_says(row, word) for word in words)]
    if matching and all(row == matching[0] for row in matching):
        return PrintedCell(row=matching[0], seed=int(seeds[0].removeprefix("seed=")) if seeds else None)
    raise ConfigError(_advice(text, words, rows, matching, values))


def cell_name(row: Mapping[str, str]) -> str:
    """Return the words that identify a row of a table's CSV file."""
    names = []
    for column, value in row.items():
        if column in _VALUES:
            break
        if column != "table" and value:
            names.append(value)
    return ",".join(names)


def _rows(target: Target) -> list[dict[str, str]]:
    names = [name for name in target.manifest.files if name.endswith(".csv")]
    if len(names) != 1:
        raise ArtifactError(
            f"{target.directory}: holds {len(names)} .csv files, but --cell needs a table, which has one."
            " Give a table such as tables/main.tex."
        )
    with (target.directory / names[0]).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _says(row: Mapping[str, str], word: str) -> bool:
    column, equals, value = word.partition("=")
    return row.get(column) == value if equals else word in row.values()


def _advice(text: str, words: Sequence[str], rows: list[dict], matching: list[dict], values: set[str]) -> str:
    """Return a message that lists the matching or nearest cells and says how to identify one."""
    if matching:
        listed = [cell_name(row) for row in matching[:_SHOWN]]
        more = f", and {len(matching) - _SHOWN} more" if len(matching) > _SHOWN else ""
        return (
            f"--cell {text}: {len(matching)} cells have these words. Add a word, or its column (method=base):\n  "
            + "\n  ".join(listed)
            + more
        )
    nearly = []
    for word in words:
        column, equals, value = word.partition("=") if "=" in word else ("", "", word)
        near = get_close_matches(value, values, n=1) or [value]
        nearly.append(f"{column}{equals}{near[0]}")
    ranked = sorted(rows, key=lambda row: -sum(_says(row, word) for word in nearly))
    listed = dict.fromkeys(cell_name(row) for row in ranked)
    lines = [f"--cell {text}: no cell has all these words. The nearest:", *list(listed)[:_SHOWN]]
    columns, unknown = list(rows[0]) if rows else [], []
    for word in words:
        column, equals, value = word.partition("=") if "=" in word else ("", "", word)
        if equals and column not in columns:
            known = f"There is no column {column!r}. Known: {', '.join(columns)}."
            unknown.append(f"{known}{did_you_mean(column, columns)}")
        elif value not in values:
            unknown.append(f"No cell has {value!r}.{did_you_mean(value, values)}")
    return "\n".join(["\n  ".join(lines), *unknown])
