"""A user's table: its columns are brought under the declared names, and each is checked as `contract` declares it."""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import polars as pl

from dualread.data.tables.contract import (
    ANSWERS,
    CLAIM,
    ID,
    MISSING_WORDS,
    OF_CLAIMS,
    PROBABILITY,
    SCORE,
    TEXT,
    TEXTS,
    WIDE,
    WIDE_SCORE,
    ColumnsRead,
    ColumnType,
    TableOptions,
    UserColumn,
)
from dualread.data.tables.files import RawTable
from dualread.errors import DataError, did_you_mean
from dualread.evaluation.decimals import as_float64, once_float32
from dualread.grading.options import option_of

_SHOWN = 5  # rows that an error names
_LONGEST = 80  # characters of a value that an error shows


def _shown(text: str | None) -> str:
    """Return a value as messages show it."""
    return "empty" if text is None else repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}..."


@dataclass(frozen=True, kw_only=True)
class CheckedTable(RawTable):
    """A table with the declared columns that it has, each with its type, and int64 `row`; references are lists.

    Each row of `frame` has `confidence`, and `is_score` says whether it is one of which only the order counts.
    `user_names` is {declared name: name in the file}, where the user said so; `unused` are columns that are not read;
    `options` are those by which it was checked.
    """

    user_names: Mapping[str, str] = field(default_factory=dict)
    unused: Sequence[str] = ()
    options: TableOptions = field(default_factory=TableOptions)

    def has(self, *names: str) -> bool:
        """Whether the table has all of these columns."""
        return all(name in self.frame.columns for name in names)

    def column(self, name: str) -> str:
        """Return how messages call a column."""
        user_name = self.user_names.get(name, name)
        return f"column {name!r}" if user_name == name else f"column {user_name!r} ({name})"

    @property
    def confidence(self) -> str | None:
        """The user's name of the column of confidences, or of scores; None where methods have columns of their own."""
        names = {name: name for name in ("score", "confidence") if name in self.columns} | dict(self.user_names)
        return next((names[name].removeprefix("-") for name in ("confidence", "score") if name in names), None)

    def error(self, sentence: str) -> DataError:
        """Return an error that begins with the file's name."""
        return DataError(f"{self.source}: {sentence}")

    def need(self, column: str, why: str, *, is_declared: bool = True) -> None:
        """Raise DataError, which lists the existing columns, if the table lacks this one, declared or not."""
        if not self.has(column):
            advice = f" If it has another name, say which: --columns {column}=NAME." if is_declared else ""
            meant = did_you_mean(column, self.columns)
            raise self.error(f"no column {column!r}, {why}. Found: {', '.join(self.columns)}.{meant}{advice}")

    def refuse(self, column: str, wrong: pl.Series, texts: pl.Series, expected: str) -> None:
        """Raise DataError if bool [n] `wrong` is true anywhere; the message gives the first rows and their texts."""
        if n := int(wrong.sum()):
            rows = zip(self.frame["row"].filter(wrong)[:_SHOWN], texts.filter(wrong), strict=False)
            shown = ", ".join([f"row {row}: {_shown(text)}" for row, text in rows] + ["..."] * (n > _SHOWN))
            raise self.error(f"{self.column(column)} is wrong in {n} of {len(wrong)} rows: {shown}; {expected}.")

    def with_column(self, values: pl.Series | pl.Expr | Sequence[pl.Expr], *notes: str) -> "CheckedTable":
        """Return the table with a column, or several, replaced, and further notes."""
        return replace(self, frame=self.frame.with_columns(values), notes=(*self.notes, *notes))


def checked(
    table: RawTable,
    read: ColumnsRead,
    *,
    is_graded: bool = True,
    claims: Callable[[CheckedTable], CheckedTable] | None = None,
) -> CheckedTable:
    """Bring a table's columns under the declared names (ANSWERS or PAIRS), and check each one.

    `is_graded` says whether rows without a reference, or a verdict, are refused or left out. `claims` names the claims
    of a table, before rows are left out; None if rows are read as answers only.
    """
    options, is_answers = read.options, read.declared is ANSWERS
    has_claims = claims is not None and options.has_claims(table.columns)
    prefix = "" if is_answers else "donor_"
    typed = [column for column in read.declared if has_claims or column.name not in (CLAIM, *OF_CLAIMS)]
    known = {column.name for column in typed}
    if table.rows.is_empty():
        raise DataError(f"{table.source}: has no rows. Found the columns {', '.join(table.columns[:20]) or 'none'}.")
    _refuse_misspelled(table, read, {*known, *(() if claims is None else [CLAIM])})
    checking = {"frame": _renamed(table, read.names, options), "user_names": read.names, "options": options}
    answers = CheckedTable(**{**vars(table), **checking})
    if options.missing:
        texts = pl.selectors.string() - pl.selectors.by_name("question", require_all=False)
        answers = answers.with_column(texts.replace(dict.fromkeys(options.missing)))
    if is_answers:
        answers = _one_row_per_method(answers)
    # An é of two characters, as some systems write it, is the é of one.
    answers = answers.with_column(pl.selectors.string().str.normalize("NFC"))
    if claims is not None and has_claims:
        for column in typed:
            if column.name in (CLAIM, *OF_CLAIMS, "sample_id") and answers.has(column.name):
                answers = _typed(answers, column.name, column.type, is_filled=column.is_filled)
        answers = claims(answers)
    correct, reference = f"{prefix}correct", f"{prefix}reference_answer"
    answers = _with_references(answers, reference)
    if is_graded and answers.has(correct):
        answers = _scored(answers, correct, MISSING_WORDS)
    elif is_graded and answers.has(reference):
        answers = _with_every_reference(answers, reference)
    clusters = (UserColumn(cluster, ID, "is resampled") for cluster in options.clusters if cluster not in known)
    for column in (*typed, *clusters):
        if answers.has(column.name) and column.type not in (TEXTS, PROBABILITY, SCORE):
            answers = _typed(answers, column.name, column.type, is_filled=column.is_filled)
    answers = _with_confidence(answers, prefix)
    for name in options.choices.values() if is_answers else ():
        answers.need(name, "which --choices names", is_declared=False)
        answers = _typed(answers, name, PROBABILITY)
    if options.options and (is_answers or answers.has(options.options[0])):
        answers = _with_options(answers, prefix)
    return answers


def _refuse_misspelled(table: RawTable, read: ColumnsRead, known: Set[str]) -> None:
    """Refuse a column that is a declared one but for case, spaces and signs: it would be ignored by mistake."""
    others = sorted(known - {*read.options.columns} - {*table.columns})
    plain = {re.sub("[^a-z]", "", name): name for name in others}
    for column in table.columns:
        if column not in read and (name := plain.get(re.sub("[^a-z]", "", column.lower()))) is not None:
            raise DataError(
                f"{table.source}: column {column!r} would be ignored. Did you mean {name!r}? Rename it, or say so:"
                f" --columns {name}={column!r}."
            )


def _renamed(table: RawTable, names: Mapping[str, str], options: TableOptions) -> pl.DataFrame:
    """Return the columns under their declared names; those that clusters, groups or options name keep theirs."""
    frame, keep = table.frame, options.kept
    columns = {name: pl.col(name) for name in frame.columns if name not in names.values() or name in keep}
    for name, column in names.items():
        if column in frame.columns:
            columns[name] = pl.col(column).alias(name)
        elif (positive := column.removeprefix("-")) in frame.columns:
            columns.pop(positive, None) if positive not in keep else None
            if frame[positive].dtype.is_numeric():
                columns[name] = -pl.col(positive).cast(pl.Float64).alias(name)
            else:
                text = pl.col(positive).cast(pl.String)
                negated = pl.when(text.str.starts_with("-")).then(text.str.strip_prefix("-")).otherwise("-" + text)
                columns[name] = negated.alias(name)
    return pl.DataFrame([table.rows.alias("row")]).hstack(frame.select(columns.values()))


def _one_row_per_method(table: CheckedTable) -> CheckedTable:
    """Return a table with a column per method as one with a row per method."""
    wide = [name for name in table.frame.columns if name.startswith((WIDE, WIDE_SCORE))]
    if table.has("confidence") or table.has("score") or table.has("method") or not wide:
        return table
    # An empty column is none, unless no row has an answer: then no method can have a confidence in any.
    nothing_answered = table.has("answer") and not _has_answer(table.frame["answer"]).any()
    empty = {name for name in wide if table.frame[name].null_count() == len(table.frame)}
    filled = [name for name in wide if name not in empty or (nothing_answered and name.startswith(WIDE))]
    if not filled:
        raise table.error(f"columns {', '.join(wide)} are empty. Expected the confidences of a method in each.")
    rest, parts = table.frame.drop(wide), []
    for name in filled:
        kind, _, method = name.partition("_")
        parts.append(rest.with_columns(table.frame[name].cast(pl.String).alias(kind), method=pl.lit(method)))
    notes = [f"each column confidence_NAME or score_NAME is a method: {', '.join(filled)}"]
    if left_out := sorted({*wide} - {*filled}):
        notes.append(f"left out: {', '.join(left_out)} (no value in any row)")
    return replace(table, frame=pl.concat(parts, how="diagonal"), notes=(*table.notes, *notes))


def _has_answer(answers: pl.Series) -> pl.Series:
    """Return which values are more than punctuation, bool [n]; whatever is no text counts, and is checked later."""
    if answers.dtype not in (pl.String, pl.Null):
        return answers.is_not_null()
    return answers.cast(pl.String).fill_null("").str.contains(r"[\pL\pN]")


def _with_references(table: CheckedTable, column: str) -> CheckedTable:
    """Make lists of references, null where there is none."""
    if not table.has(column):
        return table
    if table.frame[column].dtype != pl.List(pl.String):
        table = _typed(table, column, TEXTS)
        text, separator = pl.col(column), table.options.alternatives
        lists = pl.concat_list(text) if separator is None else text.str.split(separator)
        table = table.with_column(pl.when(text.is_not_null()).then(lists).alias(column))
    lists = pl.col(column).list.eval(pl.element().str.strip_chars().replace("", None).drop_nulls())
    return table.with_column(pl.when(lists.list.len() > 0).then(lists).alias(column))


def _with_every_reference(table: CheckedTable, column: str) -> CheckedTable:
    """Refuse an empty reference, and a word that may mean none; leave such rows out if --missing says what they are."""
    if table.options.missing is not None:
        return _scored(table, column, table.options.missing)
    lists = table.frame[column]
    doubtful = lists.list.eval(pl.element().is_in(MISSING_WORDS)).list.any().fill_null(True)
    expected = (
        "expected a reference answer. If these rows have none, --missing nan (in Python missing=['nan']) leaves out"
        " those that are empty or have this word; if the word is an answer, give --missing without a word"
    )
    if lists.null_count():
        expected += ". pandas makes None, NA and null empty; if they are answers, read with keep_default_na=False"
    table.refuse(column, doubtful, lists.list.join(" | "), expected)
    return table


def _scored(table: CheckedTable, column: str, words: Sequence[str]) -> CheckedTable:
    """Leave out and count the rows that nobody judged, or that have no reference."""
    values = table.frame[column]
    texts = values.list.join("\n") if values.dtype == pl.List else values.cast(pl.String)
    unscored = texts.is_null() | texts.is_in(list(words))
    if unscored.all():
        raise table.error(f"{table.column(column)} has no value in any row. Leave it out, or judge the answers.")
    if not unscored.any():
        return table
    n, why = int(unscored.sum()), f"no value in {table.column(column)}"
    notes = (*table.notes, f"left out: {n} of {len(unscored)} rows ({why})")
    return replace(table, frame=table.frame.filter(~unscored), notes=notes, left_out={**table.left_out, why: n})


def _with_confidence(table: CheckedTable, prefix: str) -> CheckedTable:
    """Check confidences and scores: a row's confidence counts, and its score where it has none."""
    # An answer that does not exist, and is not marked as right, needs neither: it is less certain than all others.
    confidence, score = f"{prefix}confidence", f"{prefix}score"
    names = [name for name in (confidence, score) if table.has(name)]
    if not names:
        return table
    for name in names:
        table = _typed(table, name, PROBABILITY if name == confidence else SCORE)
    methods = "method" if table.has("method") else pl.lit(0)
    both = pl.col(confidence).is_null() & pl.col(score).is_not_null()
    of_score, value = both if len(names) == 2 else pl.lit(names == [score]), pl.coalesce(names)
    table = table.with_column([of_score.alias("is_score"), value.alias(confidence)])
    if table.frame["is_score"].any():
        table = table.with_column([], f"only the order of {table.column(score)} counts")
    if table.has(f"{prefix}answer"):
        absent = pl.col(confidence).is_null() & ~_has_answer(table.frame[f"{prefix}answer"])
        absent &= ~pl.col(f"{prefix}correct") if table.has(f"{prefix}correct") else pl.lit(True)
        if n := int(table.frame.select(absent.sum()).item()):
            is_score = pl.col("is_score").any().over(methods)
            least = pl.when(is_score).then(pl.col(confidence).min().over(methods)).otherwise(0.0)
            note = f"{n} of {len(table.frame)} rows have no answer and no confidence: less certain than all others"
            by_name = ((confidence, least), ("is_score", is_score))
            table = table.with_column(
                [pl.when(absent).then(value).otherwise(name).alias(name) for name, value in by_name], note
            )
    texts = table.frame[confidence].cast(pl.String)
    expected = (
        "expected a value in every row. Drop these rows for every method, or impute a confidence (the workflow uses"
        " 0.5) and report that you did"
    )
    table.refuse(confidence, texts.is_null(), texts, expected)
    return table


def _typed(table: CheckedTable, name: str, kind: ColumnType, *, is_filled: bool = False) -> CheckedTable:
    """Check one column, and give it its type."""
    values, called, notes = table.frame[name], table.column(name), []
    if values.dtype.is_nested() or values.dtype in (pl.Object, pl.Binary):
        raise table.error(f"{called} holds {values.dtype}; {kind.expected}.")
    if values.dtype.is_float() and kind in (ID, TEXT, TEXTS):
        raise table.error(
            f"{called} holds floating-point numbers, such as {values.drop_nulls().first()}; write ids and answers as"
            " texts or whole numbers, as in frame[NAME].astype('Int64')."
        )
    is_number = kind in (PROBABILITY, SCORE)
    if is_number and values.dtype.is_float():  # a float32 .9 is .9
        values = pl.Series(as_float64(values.to_numpy()), nan_to_null=True)
    numbers = texts = values.cast(pl.String)
    if is_number and texts.dtype == pl.String:
        if texts.str.contains("%", literal=True).any() and texts.str.ends_with("%").all():
            percent = _decimal(table, texts.str.strip_chars_end("% "))
            numbers = (percent.cast(pl.Float64, strict=False) / 100).cast(pl.String)
            notes.append(f"{called} holds percentages; they are divided by 100")
        else:
            numbers = _decimal(table, texts)
        if not numbers.equals(texts) and texts.str.contains(",", literal=True).any():
            notes.append(f"{called} has decimal commas, such as 0,5; read as 0.5")
    typed = pl.select(kind.parsed(pl.lit(numbers))).to_series()
    table.refuse(name, typed.is_null() & texts.is_not_null(), texts, kind.expected)
    if is_filled:
        table.refuse(name, texts.is_null(), texts, "expected a value in every row")
    if is_number and not table.has("study") and (meant := once_float32(typed.drop_nulls().to_numpy())) is not None:
        typed = typed.scatter(typed.is_not_null().arg_true(), pl.Series(meant))
        notes.append(f"{called} holds float32 numbers with more digits than they had; read as those")
    return table.with_column(typed.alias(name), *notes)


def _decimal(table: CheckedTable, texts: pl.Series) -> pl.Series:
    """Return numbers with points for decimal commas: between semicolons, or if the user says so; without a point."""
    may = table.options.decimal == "," or table.separator == ";"
    has_points = texts.str.contains(".", literal=True).any()
    return texts.str.replace(",", ".", literal=True) if may and not has_points else texts


def _with_options(table: CheckedTable, prefix: str) -> CheckedTable:
    """Put the text of an option in place of an answer, or a reference, that is its letter."""
    for column in table.options.options:
        table.need(column, "which --options names", is_declared=False)
    columns = [table.frame[column] for column in table.options.options]
    texts = (column.cast(pl.String).fill_null("") for column in columns)
    choices = columns[0].to_list() if columns[0].dtype == pl.List else list(zip(*texts, strict=True))
    choices = [[text or "" for text in row or ()] for row in choices]

    def option_text(text: str, options: Sequence[str]) -> str | None:
        place = option_of(text, options)
        return None if place is None else options[place]

    answer, reference = f"{prefix}answer", f"{prefix}reference_answer"
    if table.has(answer):
        rows = zip(table.frame[answer], choices, strict=True)
        answers = [text and (option_text(text, texts) or text) for text, texts in rows]
        table = table.with_column(pl.Series(answer, answers, dtype=pl.String))
    if table.has(reference):
        rows = zip(table.frame[reference].to_list(), choices, strict=True)
        references = [[option_text(item, texts) for item in items or ()] for items, texts in rows]
        nameless = pl.Series([None in items for items in references], dtype=pl.Boolean)
        shown = table.frame[reference].list.join(" | ")
        table.refuse(reference, nameless, shown, "expected the text or the letter of one of the row's options")
        table = table.with_column(pl.Series(reference, references, dtype=pl.List(pl.String)))
    return table
