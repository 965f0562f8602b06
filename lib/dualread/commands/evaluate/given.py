"""A user's table: its columns are read as text and converted to values; every error names the rows.

In every format, a value is read as its text, so that a .csv and a .parquet file with the same table give the same
metrics (the float32 0.9 is read as 0.9, not as 0.8999999762).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from dualread import plugins
from dualread.commands.evaluate._json_lines import read_json_lines
from dualread.errors import DataError, did_you_mean


def _read_csv(content: bytes) -> pl.DataFrame:
    """Read a .csv separated by what occurs most often in its first line: commas, semicolons, or tabs."""
    text = content.decode("utf-8-sig")
    separator = max(",;\t", key=text.partition("\n")[0].count)
    return pl.read_csv(text.encode(), infer_schema=False, separator=separator)


FORMATS: dict[str, Callable[[bytes], pl.DataFrame]] = {
    ".csv": _read_csv,
    ".jsonl": lambda content: read_json_lines(content.decode("utf-8-sig")),
    ".parquet": lambda content: pl.read_parquet(content),
}
_TRUTHS = {"1": True, "0": False, "1.0": True, "0.0": False, "true": True, "false": False}
_SHOWN = 5  # rows that an error names


@dataclass(frozen=True, kw_only=True)
class Given:
    """The rows of one file.

    Attributes:
        path: The file, or a word for a table in memory, for messages.
        frame: The columns as they were read.
        rows: int64 [n], the number of each row: 1 is the first row below the header; blank lines are counted.
        notes: Sentences about how the file was read.
        left_out: {why: number of answers that the file records and that cannot be evaluated}.
    """

    path: Path | str
    frame: pl.DataFrame
    rows: pl.Series
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def where(self, chosen: pl.Series) -> "Given":
        """Return the rows for which bool [n] `chosen` is true."""
        return replace(self, frame=self.frame.filter(chosen), rows=self.rows.filter(chosen))

    def has(self, column: str) -> bool:
        """Whether the table has this column."""
        return column in self.frame.columns

    def error(self, sentence: str) -> DataError:
        """Return an error that starts with the file's name."""
        return DataError(f"{self.path}: {sentence}")

    def need(self, column: str, why: str, *, advice: str | None = None) -> None:
        """Raise DataError, which lists the existing columns, if the table lacks this column.

        Args:
            column: Its name.
            why: What needs it.
            advice: What to do; by default, to say under which other name it is there.
        """
        if not self.has(column):
            found = self.frame.columns
            if advice is None:
                advice = f" If it has another name, say which: --columns {column}=NAME.{_harness_of(found)}"
            raise self.error(
                f"no column {column!r}, {why}. Found: {', '.join(found)}.{did_you_mean(column, found)}{advice}"
            )

    def optional_text(self, column: str) -> pl.Series:
        """Return the column as stripped text [n], null for empty values.

        Raises:
            DataError: The column holds lists, objects, or bytes that are not text.
        """
        values = self.frame[column]
        if values.dtype.is_nested() or values.dtype == pl.Object:
            raise self.error(f"column {column!r} holds {values.dtype}; expected one value per row.")
        try:
            return values.cast(pl.String, strict=False).str.strip_chars().replace("", None)
        except pl.exceptions.PolarsError as error:
            raise self.error(f"column {column!r} holds {values.dtype} ({error}); expected text in UTF-8.") from error

    def text(self, column: str, advice: str = "Every row needs one.") -> pl.Series:
        """Return the column as text [n].

        Raises:
            DataError: The column holds lists or objects, or a row has no value.
        """
        text = self.optional_text(column)
        if missing := self.rows.filter(text.is_null()).to_list():
            raise self.error(f"column {column!r} has no value in {self._count(missing)}: {some(missing)}. {advice}")
        return text

    def number(self, column: str) -> pl.Series:
        """Return the column as float64 [n], finite.

        Raises:
            DataError: A row has no value, NaN, or something else than a finite number.
        """
        text = self.text(column, advice := _without_confidence(column))
        numbers = text.cast(pl.Float64, strict=False)
        if missing := self.rows.filter(numbers.is_nan().fill_null(False)).to_list():
            raise self.error(f"column {column!r} is NaN in {self._count(missing)}: {some(missing)}. {advice}")
        self.refuse(
            column, text, ~numbers.is_finite().fill_null(False), "expected a finite number with a decimal point"
        )
        return numbers

    def truth(self, column: str) -> pl.Series:
        """Return the column as bool [n].

        Raises:
            DataError: A value is not 0, 1, true or false (in upper or lower case).
        """
        text = self.text(column)
        values = text.str.to_lowercase().replace_strict(_TRUTHS, default=None, return_dtype=pl.Boolean)
        self.refuse(column, text, values.is_null(), "expected 1 or 0, true or false")
        return values

    def one_of(self, column: str, known: Sequence[str]) -> pl.Series:
        """Return the column as text [n] in lower case.

        Raises:
            DataError: A value is not among `known`.
        """
        text = self.text(column)
        values = text.str.to_lowercase()
        self.refuse(column, text, ~values.is_in(known), f"expected {' or '.join(known)}")
        return values

    def alternatives(self, column: str) -> list[list[str]]:
        """Return the texts of each row: the elements of a list, or the parts of one text separated by `#`.

        A row without a value has none.

        Raises:
            DataError: An element of a list is not a single value, or only some rows hold lists.
        """
        values = self.frame[column]
        if not isinstance(values.dtype, pl.List | pl.Object):
            return [text.split("#") if text else [] for text in self.optional_text(column)]
        try:
            lists = values.cast(pl.List(pl.String)).to_list()
        except pl.exceptions.PolarsError as error:
            raise self.error(
                f"column {column!r} holds {values.dtype}; expected either a text or a list of texts in all rows."
            ) from error
        return [[text for text in texts or () if text is not None] for texts in lists]

    def refuse(self, column: str, text: pl.Series, wrong: pl.Series, expected: str) -> None:
        """Raise DataError if bool [n] `wrong` is true anywhere; the message gives the first such rows and values."""
        if rows := self.rows.filter(wrong).to_list():
            shown = [f"row {row}: {value!r}" for row, value in zip(rows, text.filter(wrong), strict=True)]
            raise self.error(f"column {column!r} is wrong in {self._count(rows)}: {some(shown)}; {expected}.")

    def _count(self, rows: Sequence[int]) -> str:
        return f"{len(rows)} of {len(self.rows)} rows"


def read_given(path: Path) -> Given:
    """Read a .csv, .jsonl or .parquet file.

    Raises:
        DataError: The file cannot be read, has another format, has two columns of one name, or has no rows.
    """
    if path.suffix.lower() not in FORMATS:
        read_by = [name for name in plugins.known("logs") if path.suffix in plugins.declared("logs", name, "SUFFIXES")]
        options = " or ".join(f"--from {name.replace('_', '-')}" for name in read_by)
        raise DataError(
            f"{path}: unknown format {path.suffix!r}. Known: {', '.join(FORMATS)}."
            + (f" If it is a log of another harness, add {options}." if read_by else "")
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}). Expected a .csv, .jsonl or .parquet file."
        ) from error
    if not content.strip():
        raise DataError(f"{path}: is empty; expected a table with one row per answer (dualread evaluate --help).")
    try:
        frame = FORMATS[path.suffix.lower()](content)
    except (pl.exceptions.PolarsError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise DataError(
            f"{path}: is not a {path.suffix} table in UTF-8 ({first}). In .csv, separate columns by commas and put text"
            " that contains a comma in double quotes; in .jsonl, put one object on each line, with null for a missing"
            " number."
        ) from error
    return given_of(frame, path)


def given_of(frame: pl.DataFrame, path: Path | str) -> Given:
    """Return the rows of a table that `path` names in messages; rows without any value are left out.

    Raises:
        DataError: Two columns have the same name, or there are no rows.
    """
    names = [name.strip() for name in frame.columns]
    twice = {name for name in names if names.count(name) > 1}
    # polars renames the second of two .csv columns with the same name.
    twice |= {found[1] for name in names if (found := re.fullmatch(r"(.+)_duplicated_\d+", name)) and found[1] in names}
    if twice:
        raise DataError(f"{path}: column {min(twice)!r} occurs more than once. Rename or delete the others.")
    filled = pl.Series([], dtype=pl.Boolean)  # blank lines at the end are common
    if names:
        filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    if not filled.any():
        raise DataError(
            f"{path}: has no rows. Expected one row per answer; found columns: {', '.join(names) or 'none'}."
        )
    rows = pl.int_range(1, len(filled) + 1, eager=True).filter(filled)
    return Given(path=path, frame=frame.rename(dict(zip(frame.columns, names, strict=True))).filter(filled), rows=rows)


def _harness_of(columns: Sequence[str]) -> str:
    """Return advice for a table whose columns are the fields of another harness's log, else ""."""
    fields = {name: plugins.declared("logs", name, "FIELDS") for name in plugins.known("logs")}
    found = [name.replace("_", "-") for name, keys in fields.items() if keys and set(keys) <= set(columns)]
    return f" This looks like a log of {found[0]}: if it is, add --from {found[0]}." if found else ""


def _without_confidence(column: str) -> str:
    return f"Drop these rows for every method, or impute a {column} (the workflow uses 0.5) and report that you did."


def some(shown: Sequence[object]) -> str:
    """Return the first few of these as text."""
    return ", ".join(map(str, shown[:_SHOWN])) + (", ..." if len(shown) > _SHOWN else "")
