"""Step 1: read the answers, the pairs and the calibration answers, wherever they come from (`inputs`, `log`)."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import polars as pl

from dualread.errors import ConfigError, did_you_mean
from dualread.own.given import ANSWERS, PAIRS, UserTable, about_values, mapped
from dualread.own.grades import with_options
from dualread.own.inputs import given_in_memory, given_of, is_address, local_file, read_address, read_given
from dualread.own.log import read_logged

WIDE = "confidence_"  # begins the columns of a table with one column of confidences per method, whose name follows
_SIMILAR = 0.8
_SHOWN = 8  # columns that a sentence names
_IN_LOGS = "#"  # the readers of logs have made lists of alternatives
_ADDED = {"id", "ids", "type", "types", "number", "index"}  # question_id is no misspelling of question


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What a user says about the tables.

    Attributes:
        columns: {name by which a column is read: its name in the user's tables}.
        log_format: The harness that wrote the answers, if they are a log.
        score: The score of the log that says what is correct.
        cluster: The column whose values are resampled.
        options: Columns that hold the options of multiple-choice questions.
        alternatives: What separates alternatives in one text of the reference answers; None for `#`.
        stated_scale: What stands for certainty in the stated confidences of a log; None to find it.
        only: {column: the values that are evaluated}; all if there are none.
    """

    columns: Mapping[str, str]
    log_format: str | None
    score: str | None
    cluster: str | None
    alternatives: str | None = None
    options: Sequence[str] = ()
    stated_scale: int | None = None
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def used(self) -> set[str]:
        """Names of all columns that may be read in a table."""
        own = {name for one in self.columns.values() for name in (one, one.removeprefix("-"))}
        clusters = set() if self.cluster is None else {self.cluster, f"donor_{self.cluster}"}
        return _Used({*ANSWERS, *PAIRS, *own, *clusters, *self.options})


class _Used(set[str]):
    """Names of columns, and those with one column per method."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).startswith(WIDE)


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of a user, with their columns under the names by which they are read."""

    answers: UserTable
    pairs: UserTable | None
    calibration: UserTable | None

    def all(self) -> list[tuple[UserTable, Collection[str]]]:
        """Return those that were given, with the names by which columns of each are read."""
        tables = [(self.answers, ANSWERS), (self.pairs, PAIRS), (self.calibration, ANSWERS)]
        return [(given, known) for given, known in tables if given is not None]

    def unused(self, *named: str | None) -> list[str]:
        """Return sentences that name the columns that are not used.

        Args:
            named: Columns that the user named besides: the cluster, options.

        Raises:
            DataError: A column has nearly the name of one that is read.
        """
        own = {name for one in named if one is not None for name in (one, f"donor_{one}")}
        sentences = [_other_columns(given, {*known, *own}) for given, known in self.all()]
        return [sentence for sentence in sentences if sentence is not None]

    def only(self, column: str, wanted: Sequence[str]) -> "Tables":
        """Return the rows with these values in a column; all of a table of pairs or of calibration without it.

        Raises:
            ConfigError: The answers have no such value.
        """
        self.answers.need(column, f"by which --{column} chooses")
        known = sorted(set(self.answers.identity(column)))
        if unknown := [name for name in wanted if name not in known]:
            raise ConfigError(
                f"--{column} {unknown[0]}: not in {self.answers.path}. Known: {', '.join(known)}."
                f"{did_you_mean(unknown[0], known)}"
            )

        def chosen(given: UserTable) -> UserTable:
            return given.where(given.identity(column).is_in(list(wanted))) if given.has(column) else given

        return Tables(
            answers=chosen(self.answers),
            pairs=None if self.pairs is None else chosen(self.pairs),
            calibration=None if self.calibration is None else chosen(self.calibration),
        )

    def notes(self) -> list[str]:
        """Return sentences about how logs and renamed columns were read."""
        return [f"{given.path}: {note}" for given, _ in self.all() for note in given.notes]

    def left_out(self) -> dict[str, int]:
        """Return {"file: why": number of answers in a log that cannot be evaluated}."""
        return {f"{given.path}: {why}": n for given, _ in self.all() for why, n in given.left_out.items()}


def read_tables(predictions: Any, pairs: Any, calibration: Any, names: TableOptions) -> Tables:
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
    whole: list[tuple[UserTable, Collection[str]]] = []
    read = Tables(
        answers=_answers(predictions, "predictions", names, whole),
        pairs=None if pairs is None else _mapped(_given(pairs, "pairs", names), PAIRS, names, whole),
        calibration=None if calibration is None else _answers(calibration, "calibration", names, whole),
    )
    _check_mapping(names.columns, whole)
    for column, wanted in names.only.items():
        read = read.only(column, wanted) if wanted else read
    return read


def _answers(table: Any, name: str, names: TableOptions, whole: list[tuple[UserTable, Collection[str]]]) -> UserTable:
    if names.log_format is None:
        return _mapped(_given(table, name, names), ANSWERS, names, whole)
    if not isinstance(table, str | Path):
        raise ConfigError(f"{name}: {type(table).__name__}; a log (--from {names.log_format}) is given by its path.")
    path = local_file(str(table)) if is_address(table) else Path(table)
    logged = read_logged(
        path,
        names.log_format,
        score=names.score,
        columns={name: own for name, own in names.columns.items() if name in ANSWERS},
        cluster=names.cluster,
        scale=names.stated_scale,
    )
    given = given_of(logged.frame, path, notes=logged.notes)
    given = _mapped(replace(given, left_out=logged.left_out), ANSWERS, names, whole)
    return replace(given, separator=_IN_LOGS)


def _mapped(
    given: UserTable, known: Collection[str], names: TableOptions, whole: list[tuple[UserTable, Collection[str]]]
) -> UserTable:
    negated = {name: own for name, own in names.columns.items() if name in known and _negates(given, own)}
    whole.append((given, known))
    given = replace(mapped(given, names.columns, known, keep=_kept(names)), separator=names.alternatives)
    if names.options and (known is ANSWERS or given.has(names.options[0])):
        given = with_options(given, names.options)
    if known is ANSWERS:
        given = _one_row_per_method(given)
    notes = [f"column {own[1:]!r} is read with the other sign ({name})" for name, own in negated.items()]
    return _scored(replace(given, notes=(*given.notes, *notes, *about_values(given))))


def _one_row_per_method(given: UserTable) -> UserTable:
    """Return a table with a column of confidences per method as one with a row per method; other tables as they are.

    A method whose column is empty is left out, which `notes` says.
    """
    wide = [name for name in given.frame.columns if name.startswith(WIDE) and name != WIDE]
    if given.has("confidence") or given.has("method") or not wide:
        return given
    filled = [name for name in wide if given.frame[name].null_count() < len(given.frame)]
    empty = [name.removeprefix(WIDE) for name in wide if name not in filled]
    notes = [f"column {name!r} is the confidence of the method {name.removeprefix(WIDE)!r}" for name in filled]
    notes += [f"left out: {', '.join(empty)} (no confidence in any row)"] if empty else []
    if not filled:
        raise given.error(f"columns {', '.join(wide)} are empty. Expected the confidences of a method in each.")
    others = given.frame.drop(wide)
    parts = [
        others.with_columns(given.frame[name].alias("confidence"), method=pl.lit(name.removeprefix(WIDE)))
        for name in filled
    ]
    if len({part["confidence"].dtype for part in parts}) > 1:  # such as whole numbers beside others
        parts = [part.with_columns(pl.col("confidence").cast(pl.String)) for part in parts]
    return replace(
        given, frame=pl.concat(parts), rows=pl.concat([given.rows] * len(parts)), notes=(*given.notes, *notes)
    )


def _scored(given: UserTable) -> UserTable:
    """Leave out, and count, the rows whose answers nobody scored: `correct` is empty or NaN."""
    for column in ("correct", "donor_correct"):
        if not given.has(column):
            continue
        text = given.optional_text(column)
        missing = text.is_null() | (text.str.to_lowercase() == "nan")
        if missing.any() and not missing.all():
            n, of = int(missing.sum()), len(missing)
            why = f"{given.column(column)} is empty or NaN, so not scored"
            note = f"left out: {n} of {of} rows ({why})"
            left_out = {**given.left_out, why: n}
            given = replace(given.where(~missing), left_out=left_out, notes=(*given.notes, note))
    return given


def _kept(names: TableOptions) -> tuple[str, ...]:
    return () if names.cluster is None else (names.cluster,)


def _given(table: Any, name: str, names: TableOptions) -> UserTable:
    if isinstance(table, UserTable):
        return table
    if is_address(table):
        return read_address(str(table), names.used)
    return read_given(Path(table), names.used) if isinstance(table, str | Path) else given_in_memory(table, name)


def _check_mapping(columns: Mapping[str, str], tables: Sequence[tuple[UserTable, Collection[str]]]) -> None:
    """Refuse a mapping that names a column that is not read, or one that no table has.

    Args:
        columns: As in `mapped`.
        tables: The tables as they were given, and the names by which columns of each are read.

    Raises:
        ConfigError: The message lists what there is, and the nearest name.
    """
    for name, own in columns.items():
        concerned = [given for given, known in tables if name in known]
        if not concerned:
            known = sorted({one for _, names in tables for one in names})
            raise ConfigError(
                f"--columns {name}={own}: no column {name!r} is read. Known: {', '.join(known)}."
                f"{did_you_mean(name, known)} Write NAME=YOURS, such as confidence={own}."
            )
        if not any(given.has(own) or _negates(given, own) for given in concerned):
            found = concerned[0].frame.columns
            raise ConfigError(
                f"--columns {name}={own}: {concerned[0].path} has no column {own!r}. Found: {', '.join(found)}."
                f"{did_you_mean(own, found)}"
            )


def _other_columns(given: UserTable, known: Collection[str]) -> str | None:
    """Return a sentence about the columns that are not used, or None if there are none.

    Raises:
        DataError: A column has nearly the name of a known one that the table lacks: it would be ignored because of a
            misspelling.
    """
    others = [name for name in given.frame.columns if name not in known]
    needless = {"answer", "reference_answer"} if given.has("correct") and "donor_answer" not in known else set()
    missing = {_plain(name): name for name in known if not given.has(name) and name not in needless}
    for name in others:
        nearest = get_close_matches(_plain(name), missing, n=1, cutoff=_SIMILAR)
        if nearest and not _words(name) - _words(missing[nearest[0]]) & _ADDED:
            raise given.error(
                f"column {name!r} would be ignored. Did you mean {missing[nearest[0]]!r}? Rename it, to that or to"
                f" something less similar, or say so: --columns {missing[nearest[0]]}={name}."
            )
    if not others:
        return None
    named = ", ".join(others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
    return f"{given.path}: {len(others)} column{'s' if len(others) > 1 else ''} not used: {named}"


def _negates(given: UserTable, own: str) -> bool:
    return own.startswith("-") and given.has(own[1:]) and not given.has(own)


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+", name.lower()))


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
