"""Step 1, one table: which columns a user's table may have, and how their texts become values.

In every format, a value is read as its text, so that a .csv and a .parquet file with the same table give the same
metrics (the float32 0.9 is read as 0.9, not as 0.8999999762). Every error names the rows.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from dualread import plugins
from dualread.data.foreign_tables.values import LOST, listed, lost_digits, whole
from dualread.errors import DataError, did_you_mean
from dualread.evaluation.decimals import as_float64, once_float32

ANSWERS = (
    *("confidence", "correct", "answer", "reference_answer", "image_id", "question", "answer_type", "method"),
    *("sample_id", "dataset", "split", "study", "replicates"),
)
PAIRS = (
    *("sample_id", "donor_image_id", "donor_confidence", "donor_correct", "donor_answer", "donor_reference_answer"),
    *("method", "dataset", "split", "study"),
)
_SHOWN = 5  # rows that an error names
_LONGEST = 200  # characters of a value that an error shows
ANSWER_TYPES = {  # the words of VQA, and of others
    **dict.fromkeys(("yes/no", "yes-no", "yesno", "y/n", "binary", "close", "closed-ended", "close-ended"), "closed"),
    **dict.fromkeys(("number", "other", "open-ended", "free-form"), "open"),
}
_COMMAS = r"^[+-]?(?:[0-9]+|[0-9]*,[0-9]+)(?:[eE][+-]?[0-9]+)?\s*%?$"
_NO_THOUSANDS = r"^[+-]?(?:0?,|[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})(?:[^0-9]|$))"
_WHOLE = r"^[+-]?[0-9]+(?:\.0+)?$"
_TRUTHS = {"1": True, "0": False, "1.0": True, "0.0": False, "true": True, "false": False}


@dataclass(frozen=True, kw_only=True)
class UserTable:
    """The rows of one file.

    Attributes:
        path: The file, or a word for a table in memory, for messages.
        frame: The columns as they were read.
        rows: int64 [n], the number of each row: 1 is the first row below the header; blank lines are counted.
        notes: Sentences about how the file was read.
        left_out: {why: number of answers that the file records and that cannot be evaluated}.
        own: {name by which a column is read: its name in the file}, where they differ.
        separator: What separates alternatives in one text; None for `#`, as long as nothing else seems to.
    """

    path: Path | str
    frame: pl.DataFrame
    rows: pl.Series
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None

    def where(self, chosen: pl.Series) -> "UserTable":
        """Return the rows for which bool [n] `chosen` is true."""
        return replace(self, frame=self.frame.filter(chosen), rows=self.rows.filter(chosen))

    def has(self, column: str) -> bool:
        """Whether the table has this column."""
        return column in self.frame.columns

    def column(self, name: str) -> str:
        """Return how messages call the column that is read by this name."""
        return (
            f"column {self.own[name]!r} ({name})" if self.own.get(name, name) not in ("", name) else f"column {name!r}"
        )

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
            raise self.error(f"{self.column(column)} holds {values.dtype}; expected one value per row.")
        if str(values.dtype) == "Float16":  # polars writes float32 as the shortest decimal, but not these
            values = pl.Series(as_float64(values.to_numpy()), nan_to_null=True)
        try:
            return values.cast(pl.String, strict=False).str.strip_chars().replace("", None)
        except pl.exceptions.PolarsError as error:
            raise self.error(
                f"{self.column(column)} holds {values.dtype} ({error}); expected text in UTF-8."
            ) from error

    def text(self, column: str, advice: str = "Every row needs one.") -> pl.Series:
        """Return the column as text [n].

        Raises:
            DataError: The column holds lists or objects, or a row has no value.
        """
        text = self.optional_text(column)
        if missing := self.rows.filter(text.is_null()).to_list():
            raise self.error(f"{self.column(column)} has no value in {self._count(missing)}: {some(missing)}. {advice}")
        return text

    def identity(self, column: str) -> pl.Series:
        """Return names, such as ids of images, as text [n]; 3.0 is 3 where all of them are whole numbers.

        Raises:
            DataError: As in `text`; or they are numbers that lost digits, such as 1.23E+17, which would be equal.
        """
        text = self.text(column)
        if text.str.contains(r"^[+-]?[0-9]+\.0+$").any() and text.str.contains(_WHOLE).all():
            text = text.str.replace(r"\.0+$", "")
        values = self.frame[column]
        lost = lost_digits(values if values.dtype.is_float() else text)
        self.refuse(column, text, lost.fill_null(False), "expected ids with all their digits; " + LOST)
        return text

    def wholes(self, column: str) -> pl.Series:
        """Return answers as text [n], null for empty values; a whole number that is stored as a float, 2.0, is 2.

        Those of a study are what they are.
        """
        text = self.optional_text(column)
        return text if self.has("study") else text.str.replace(r"^([+-]?[0-9]+)\.0$", "${1}")

    def number(self, column: str) -> pl.Series:
        """Return the column as float64 [n], finite; of a column of percentages ("85%") the hundredth part.

        A comma is a decimal comma where no number has a point, and one at least cannot have thousands separated by it.
        Numbers that had been float32 are what they meant: 0.8999999761581421 is .9. Those of a study are what they are.

        Raises:
            DataError: A row has no value, NaN, or something else than a finite number.
        """
        text = self.text(column, advice := _without_confidence(column))
        if has_decimal_commas(text):
            text = text.str.replace(",", ".", literal=True)
        if text.str.ends_with("%").all():  # the sign decides; where only some have it, it is refused
            percent = text.str.strip_chars_end("% ")
            numbers = percent.cast(pl.Float64, strict=False) / 100
        else:
            numbers = text.cast(pl.Float64, strict=False)
        if missing := self.rows.filter(numbers.is_nan().fill_null(False)).to_list():
            raise self.error(f"{self.column(column)} is NaN in {self._count(missing)}: {some(missing)}. {advice}")
        self.refuse(
            column, text, ~numbers.is_finite().fill_null(False), "expected a finite number with a decimal point"
        )
        meant = None if self.has("study") else once_float32(numbers.to_numpy())
        return numbers if meant is None else pl.Series(numbers.name, meant)

    def truth(self, column: str) -> pl.Series:
        """Return the column as bool [n].

        Raises:
            DataError: A value is not 0, 1, true or false (in upper or lower case).
        """
        text = self.text(column)
        values = text.str.to_lowercase().replace_strict(_TRUTHS, default=None, return_dtype=pl.Boolean)
        self.refuse(column, text, values.is_null(), "expected 1 or 0, true or false; write 1 for yes")
        return values

    def one_of(self, column: str, known: Sequence[str], others: Mapping[str, str] | None = None) -> pl.Series:
        """Return the column as text [n] in lower case.

        Args:
            column: Its name.
            known: The values.
            others: {other word: the value that it stands for}.

        Raises:
            DataError: A value is not among `known`, nor an other word.
        """
        text = self.text(column)
        values = text.str.to_lowercase().replace(dict(others or {}))
        self.refuse(column, text, ~values.is_in(known), f"expected {' or '.join(known)}")
        return values

    def alternatives(self, column: str) -> list[list[str]]:
        """Return the texts of each row: the elements of a list, or the parts of one text separated by `separator`.

        A list may be written into a text, as JSON, Python and numpy print it. A row without a value has none. A whole
        number that is stored as a float, 2.0, is 2.

        Raises:
            DataError: An element of a list is not a single value, or only some rows hold lists; or a text looks like a
                list and cannot be read as one.
        """
        values = self.frame[column]
        if not isinstance(values.dtype, pl.List | pl.Array | pl.Object):
            return self._parts(column)
        try:
            lists = values.cast(pl.List(pl.String)).to_list()
        except pl.exceptions.PolarsError as error:
            raise self.error(
                f"{self.column(column)} holds {values.dtype}; expected either a text or a list of texts in all rows."
            ) from error
        return [[str(whole(text)) for text in texts or () if text is not None] for texts in lists]

    def _parts(self, column: str) -> list[list[str]]:
        text, separator = self.optional_text(column), self.separator or "#"
        known: dict[str, list[str]] = {}
        wrong = set()
        for one in text.drop_nulls().unique():
            try:
                items = listed(one)
            except ValueError:
                wrong.add(one)
                continue
            known[one] = [str(whole(part.strip())) for part in (one.split(separator) if items is None else items)]
        self.refuse(
            column,
            text,
            text.is_in(list(wrong)).fill_null(False),
            'expected one answer, or alternatives as a#b or as a list such as ["a", "b"] with every text in quotes',
        )
        return [[] if one is None else known[one] for one in text]

    def refuse(self, column: str, text: pl.Series, wrong: pl.Series, expected: str) -> None:
        """Raise DataError if bool [n] `wrong` is true anywhere; the message gives the first such rows and values."""
        if rows := self.rows.filter(wrong).to_list():
            shown = [f"row {row}: {short(value)}" for row, value in zip(rows, text.filter(wrong), strict=True)]
            raise self.error(f"{self.column(column)} is wrong in {self._count(rows)}: {some(shown)}; {expected}.")

    def _count(self, rows: Sequence[int]) -> str:
        return f"{len(rows)} of {len(self.rows)} rows"


def mapped(
    given: UserTable, columns: Mapping[str, str], known: Collection[str], *, keep: Collection[str] = ()
) -> UserTable:
    """Return the table with the user's own columns under the names by which they are read.

    Names may be exchanged, as in {"answer": "prediction", "reference_answer": "answer"}. A column whose name is needed
    for another one is left out, which `notes` says.

    Args:
        given: The table.
        columns: {name by which it is read: name in the table}; what does not concern this table is ignored.
        known: The names by which columns of this table are read.
        keep: Columns that also keep their own name.
    """
    given = _with_negated(given, columns, known)
    chosen = {name: own for name, own in columns.items() if name in known and given.has(own)}
    used = set(chosen.values()) - set(keep)
    rest = [name for name in given.frame.columns if name not in chosen and name not in used]
    lost = [name for name in chosen if given.has(name) and name not in chosen.values()]
    notes = [f"column {name!r} is not used; --columns puts {chosen[name]!r} in its place" for name in lost]
    frame = given.frame.select(*rest, *(pl.col(own).alias(name) for name, own in chosen.items()))
    own = {name: own for name, own in chosen.items() if name != own}
    return replace(given, frame=frame, notes=(*given.notes, *notes), own=own)


def about_values(given: UserTable) -> list[str]:
    """Return sentences about values that are read as something else than what is written there."""
    said = []
    for column in filter(given.has, ("confidence", "donor_confidence")):
        text = given.optional_text(column).drop_nulls()
        if text.str.ends_with("%").all():
            said.append(f"{given.column(column)} holds percentages; they are divided by 100")
        if has_decimal_commas(text):
            said.append(f"{given.column(column)} has decimal commas, such as 0,5; read as 0.5")
        numbers = text.cast(pl.Float64, strict=False)
        if not given.has("study") and numbers.is_finite().all() and once_float32(numbers.to_numpy()) is not None:
            said.append(f"{given.column(column)} holds float32 numbers with more digits than they had; read as those")
    for column in ("answer", "donor_answer"):
        if given.has(column) and not given.frame[column].dtype.is_nested() and given.frame[column].dtype != pl.Object:
            text = given.optional_text(column)
            if n := int((text != given.wholes(column)).sum()):
                said.append(
                    f"{given.column(column)} holds whole numbers as floats, such as 2.0, in {n} rows; read as 2"
                )
    if given.has("answer_type"):
        kinds = set(given.optional_text("answer_type").str.to_lowercase().drop_nulls()) & set(ANSWER_TYPES)
        if kinds:
            listed = ", ".join(f"{kind} as {ANSWER_TYPES[kind]}" for kind in sorted(kinds))
            said.append(f"{given.column('answer_type')} is read so: {listed}")
    return said


def has_decimal_commas(text: pl.Series) -> bool:
    """Whether numbers are written with decimal commas: all with commas or as whole numbers, and not all like 1,234."""
    return bool(text.str.contains(_COMMAS).all() and text.str.contains(_NO_THOUSANDS).any())


def _with_negated(given: UserTable, columns: Mapping[str, str], known: Collection[str]) -> UserTable:
    """Add the column "-score" where `columns` names it and the table has only "score": the same with the other sign."""
    for own in [own for name, own in columns.items() if name in known and own.startswith("-")]:
        if given.has(own[1:]) and not given.has(own):
            text = given.optional_text(own[1:])
            negated = pl.when(text.str.starts_with("-")).then(text.str.strip_prefix("-")).otherwise("-" + text)
            frame = given.frame.with_columns(negated.alias(own))
            given = replace(given, frame=frame if own[1:] in columns.values() else frame.drop(own[1:]))
    return given


def _harness_of(columns: Sequence[str]) -> str:
    """Return advice for a table whose columns are the fields of another harness's log, else ""."""
    fields = {name: plugins.declared("logs", name, "FIELDS") for name in plugins.known("logs")}
    found = [name.replace("_", "-") for name, keys in fields.items() if keys and set(keys) <= set(columns)]
    return f" This looks like a log of {found[0]}: if it is, add --from {found[0]}." if found else ""


def _without_confidence(column: str) -> str:
    return f"Drop these rows for every method, or impute a {column} (the workflow uses 0.5) and report that you did."


def short(value: object) -> str:
    """Return a value as messages show it: cut, if it is long."""
    shown = repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}... ({len(shown):,} characters)"


def some(shown: Sequence[object]) -> str:
    """Return the first few of these as text."""
    return ", ".join(map(str, shown[:_SHOWN])) + (", ..." if len(shown) > _SHOWN else "")
