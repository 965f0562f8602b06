"""Read what a user gives: data frames, mappings, files, logs of other harnesses, and tables of the hub."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dualread.commands.evaluate.columns import ANSWERS, PAIRS, check_mapping, mapped, other_columns
from dualread.commands.evaluate.given import Given, given_of, read_given
from dualread.commands.evaluate.hub import is_address, local_file, read_address
from dualread.commands.evaluate.logged import read_logged
from dualread.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class Names:
    """What a user says about the tables.

    Attributes:
        columns: {name by which a column is read: its name in the user's tables}.
        log_format: The harness that wrote the answers, if they are a log.
        score: The score of the log that says what is correct.
        cluster: The column whose values are resampled.
    """

    columns: Mapping[str, str]
    log_format: str | None
    score: str | None
    cluster: str | None


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of a user, with their columns under the names by which they are read."""

    answers: Given
    pairs: Given | None
    calibration: Given | None

    def all(self) -> list[tuple[Given, Collection[str]]]:
        """Return those that were given, with the names by which columns of each are read."""
        tables = [(self.answers, ANSWERS), (self.pairs, PAIRS), (self.calibration, ANSWERS)]
        return [(given, known) for given, known in tables if given is not None]

    def unused(self, cluster: str | None) -> list[str]:
        """Return sentences that name the columns that are not used.

        Raises:
            DataError: A column has nearly the name of one that is read.
        """
        own = {cluster or "", f"donor_{cluster}"}
        sentences = [other_columns(given, {*known, *own}) for given, known in self.all()]
        return [sentence for sentence in sentences if sentence is not None]

    def notes(self) -> list[str]:
        """Return sentences about how logs and renamed columns were read."""
        return [f"{given.path}: {note}" for given, _ in self.all() for note in given.notes]

    def left_out(self) -> dict[str, int]:
        """Return {"file: why": number of answers in a log that cannot be evaluated}."""
        return {f"{given.path}: {why}": n for given, _ in self.all() for why, n in given.left_out.items()}


def read_tables(predictions: Any, pairs: Any, calibration: Any, names: Names) -> Tables:
    """Read the tables.

    Args:
        predictions: The answers: a table, the path of one or of a log, or an address of the hub.
        pairs: The donor pairs, a table; None for none.
        calibration: As `predictions`; None for none.
        names: What the user says about them.

    Raises:
        DataError: A table cannot be read.
        ConfigError: `names` says something that is not so.
    """
    whole: list[tuple[Given, Collection[str]]] = []
    read = Tables(
        answers=_answers(predictions, "predictions", names, whole),
        pairs=None if pairs is None else _mapped(_given(pairs, "pairs"), PAIRS, names, whole),
        calibration=None if calibration is None else _answers(calibration, "calibration", names, whole),
    )
    check_mapping(names.columns, whole)
    return read


def _answers(table: Any, name: str, names: Names, whole: list[tuple[Given, Collection[str]]]) -> Given:
    if names.log_format is None:
        return _mapped(_given(table, name), ANSWERS, names, whole)
    if not isinstance(table, str | Path):
        raise ConfigError(f"{name}: {type(table).__name__}; a log (--from {names.log_format}) is given by its path.")
    path = local_file(str(table)) if is_address(table) else Path(table)
    logged = read_logged(path, names.log_format, score=names.score, graded="correct" not in names.columns)
    whole.append((logged.whole, ANSWERS))
    return logged.answers(names.columns, keep=_kept(names))


def _mapped(given: Given, known: Collection[str], names: Names, whole: list[tuple[Given, Collection[str]]]) -> Given:
    whole.append((given, known))
    return mapped(given, names.columns, known, keep=_kept(names))


def _kept(names: Names) -> tuple[str, ...]:
    return () if names.cluster is None else (names.cluster,)


def _given(table: Any, name: str) -> Given:
    if isinstance(table, Given):
        return table
    if is_address(table):
        return read_address(str(table))
    if isinstance(table, str | Path):
        return read_given(Path(table))
    if isinstance(table, pl.DataFrame):
        return given_of(table, name)
    if isinstance(table, Mapping):
        return given_of(_frame(table.items(), name), name)
    if hasattr(table, "columns"):  # pandas, or what has its form
        return given_of(_frame(((str(column), table[column].tolist()) for column in table.columns), name), name)
    raise DataError(
        f"{name}: {type(table).__name__}; expected a polars or pandas data frame, a mapping of columns, or a path."
    )


def _frame(items: Any, name: str) -> pl.DataFrame:
    try:
        return pl.DataFrame([pl.Series(str(column), list(_values(values)), strict=False) for column, values in items])
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{name}: is not a table ({error}). Expected one list of values per column.") from error


def _values(values: Any) -> Iterator[Any]:
    """Yield plain values, and None where pandas has NaN for a missing text or number."""
    for value in values:
        plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
        yield None if isinstance(plain, float) and plain != plain else plain
