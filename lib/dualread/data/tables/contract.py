"""What a table of answers, and one of donor pairs, may hold: each column is declared once. `checks` compares a table.

A table that is not so is refused in one sentence with column, row and value, which says what to write. Nothing is
guessed from values: other names, alternatives, options, decimal commas and words for missing values are what the user
says (`TableOptions`). Three things are unambiguous, and are read and said: percentages whose every value has the
sign, decimal commas between semicolons, and float32 numbers that were stored with more digits than they had.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import polars as pl

from dualread.errors import ConfigError

# Begin the columns of a table with one column per method, whose name follows.
WIDE, WIDE_SCORE = "confidence_", "score_"
CLAIM, REPORT = "claim", "report"  # columns
MISSING_WORDS = ("nan", "NaN", "None", "NA", "N/A", "n/a", "null", "NULL", "<NA>", "NaT", "#N/A")
_TRUTHS = {"1": True, "0": False, "1.0": True, "0.0": False, "true": True, "false": False}
ANSWER_TYPES = {"yes/no": "closed", "number": "open", "other": "open", "open": "open", "closed": "closed"}
_LIST_IN_TEXT = r"""(?s)^(?:array\(|c\(|[\[({]).*['"].*[\])}]$"""
_CUT_NUMBER = r"^[0-9](?:\.[0-9]+)?[eE]\+[0-9]{2,}$"


Names = TypeVar("Names", pl.Expr, pl.Series)


@dataclass(frozen=True)
class ColumnType:
    """A type: its name, what messages expect, and the values of a column of texts, null where a text is none."""

    name: str
    expected: str
    parsed: Callable[[pl.Expr], pl.Expr]


def _number(text: pl.Expr) -> pl.Expr:
    number = text.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)


PROBABILITY = ColumnType(
    "probability",
    "expected a probability from 0 to 1 with a decimal point: 0.85, or 85% in every row. Write 1 for 1.0000001."
    " Decimal commas need --decimal ,. Scores of which only the order counts, such as log-probabilities, belong in a"
    " column 'score' (--columns score=NAME); where higher means less sure, such as an entropy, --columns score=-NAME",
    lambda text: pl.when(_number(text).is_between(0, 1)).then(_number(text)),
)
SCORE = ColumnType("number", "expected a finite number with a decimal point", _number)
ID = ColumnType(
    "id",
    "expected an id with all its digits, which a spreadsheet has cut; write ids as text",
    lambda text: pl.when(~text.str.contains(_CUT_NUMBER)).then(text),
)
TEXT = ColumnType("text", "expected one text per row", lambda text: text)
TEXTS = ColumnType(
    "text or list",
    "expected one text, or a list of texts, per row; a list that was written into a text is none. Save lists as .jsonl"
    " or .parquet, or write a#b and add --alternatives '#'",
    lambda text: pl.when(~text.str.contains(_LIST_IN_TEXT)).then(text),
)
TRUTH = ColumnType(
    "1 or 0",
    "expected 1 or 0, true or false; an empty cell where nobody judged the answer",
    lambda text: text.str.to_lowercase().replace_strict(_TRUTHS, default=None, return_dtype=pl.Boolean),
)
PLACE = ColumnType(
    "whole number",
    "expected a whole number of characters, 0 or more",
    lambda text: text.cast(pl.Int64, strict=False).pipe(lambda number: pl.when(number >= 0).then(number)),
)
ANSWER_TYPE = ColumnType(
    "open or closed",
    "expected open or closed, or VQA's yes/no, number, other",
    lambda text: text.str.to_lowercase().replace_strict(ANSWER_TYPES, default=None, return_dtype=pl.String),
)


@dataclass(frozen=True)
class UserColumn:
    """A column that is read: name, type, meaning, and whether every row needs a value."""

    name: str
    type: ColumnType
    meaning: str
    is_filled: bool = True


ANSWERS = (
    UserColumn("confidence", PROBABILITY, "probability that the answer is correct"),
    UserColumn("score", SCORE, "in place of confidence: a number of which only the order counts; higher is more sure"),
    UserColumn("correct", TRUTH, "whether the answer is right; rows without a value are left out and counted", False),
    UserColumn("answer", TEXT, "the answer; an empty one is wrong", False),
    UserColumn("reference_answer", TEXTS, "the gold answer, or a list of accepted ones", False),
    UserColumn("image_id", ID, "the image; intervals resample images, without it every row counts as independent"),
    UserColumn("cluster_id", ID, "what intervals resample in place of the image, such as the patient"),
    UserColumn("question", TEXT, "adds the within-question AUROC"),
    UserColumn("answer_type", ANSWER_TYPE, "each type also gets metrics of its own"),
    UserColumn("claim", TEXT, "a number or text: each row is a claim of a report, and intervals never split a report"),
    UserColumn("report", ID, "with claim: the report; without it, sample_id is the report's name"),
    UserColumn("start", PLACE, "with claim: its first character in the report"),
    UserColumn("end", PLACE, "with claim: the character after its last one; spans do not overlap"),
    UserColumn("method", ID, "the method that gave the confidence"),
    UserColumn("sample_id", ID, "the question's name, once per method; needed with pairs and to compare methods"),
    UserColumn("dataset", ID, "each data set is evaluated by itself"),
    UserColumn("split", ID, "as dataset"),
    UserColumn("study", ID, "the study whose resamples are drawn; a study writes it"),
    UserColumn("replicates", ID, "the number of resamples; a study writes it"),
)
_OF_DONORS = ("confidence", "score", "correct", "answer", "reference_answer", "image_id", "cluster_id")
PAIRS = tuple(
    replace(column, name=f"donor_{column.name}" if column.name in _OF_DONORS else column.name)
    for column in ANSWERS
    if column.name not in ("question", "answer_type", "replicates", "start", "end")
)
# Columns that are read only beside a column `claim`.
OF_CLAIMS = ("report", "start", "end")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What a user says about the tables."""

    # {declared name: name in the user's tables}; "-NAME" reads a number with the other sign, as a score.
    columns: Mapping[str, str] = field(default_factory=dict)
    cluster: str | None = None  # the column whose values are resampled, in place of image_id
    by: Sequence[str] = ()  # the columns whose values are groups of answers, each with metrics of its own
    # {choice of a question: the column of its probability}; empty where a row has no such choice.
    choices: Mapping[str, str] = field(default_factory=dict)
    alternatives: str | None = None  # what separates accepted answers in one text; None for nothing
    options: Sequence[str] = ()  # the columns of a question's options A, B, ..., or the one that holds lists of them
    # Words that stand for an empty cell; rows without a reference answer are then left out and counted. None if nothing
    # is said: then an empty reference, and the usual words for one, are refused.
    missing: Sequence[str] | None = None
    decimal: str = "."  # "," if numbers may have decimal commas

    def __post_init__(self) -> None:
        """Check what is no text or no sign.

        Raises:
            ConfigError: `alternatives` is empty, or `decimal` is neither a point nor a comma.
        """
        if self.alternatives == "":
            raise ConfigError("--alternatives: is empty, expected what separates alternatives, such as '|'.")
        if self.decimal not in (".", ","):
            raise ConfigError(f"--decimal {self.decimal}: expected . or a comma.")

    @property
    def clusters(self) -> tuple[str, ...]:
        """The columns of the cluster in answers and in pairs."""
        return () if self.cluster is None else (self.cluster, f"donor_{self.cluster}")

    @property
    def kept(self) -> set[str]:
        """The columns that clusters, groups, choices and options name: they keep their names."""
        return {*self.clusters, *self.by, *self.choices.values(), *self.options}

    def has_claims(self, columns: Sequence[str]) -> bool:
        """Whether the rows of a table with these columns are claims of reports."""
        return CLAIM in columns or self.columns.get(CLAIM) in columns

    def reading(self, declared: Sequence[UserColumn]) -> "ColumnsRead":
        """Return which columns of a table are read; a negated confidence is a score."""
        known = {column.name for column in declared}
        names = {
            name.replace("confidence", "score", 1) if column.startswith("-") else name: column
            for name, column in self.columns.items()
            if name in known or name.startswith((WIDE, WIDE_SCORE))
        }
        return ColumnsRead(declared=declared, options=self, names=names)


@dataclass(frozen=True, kw_only=True)
class ColumnsRead:
    """Which columns of a user's table are read, and under which names."""

    declared: Sequence[UserColumn]  # ANSWERS or PAIRS
    options: TableOptions
    names: Mapping[str, str]  # {declared name: the user's name}, where the user says so

    @property
    def declared_names(self) -> set[str]:
        """The names of the declared columns."""
        return {column.name for column in self.declared}

    def __contains__(self, column: str) -> bool:
        named = {*self.names.values(), *(column.removeprefix("-") for column in self.names.values())}
        known = {*self.declared_names, *self.options.kept, *named}
        return column in known or column.startswith((WIDE, WIDE_SCORE))


def plain_ids(ids: Names) -> Names:
    """Return names without what tables change in them: Unicode form, case, spaces, zeros, and the signs of a path.

    "007", "7" and "7.0" are "7"; "./CT 01.png" and "ct01" are "ct01". Names that are equal only so are probably one.
    """
    suffix = r"\.(?:png|jpe?g|tiff?|bmp|gif|webp|dcm|npy|nii|nii\.gz|mha|nrrd)$"
    plain = ids.str.normalize("NFKC").str.to_lowercase().str.replace_all(r"\s+", "").str.replace_all(r"%2f|\\", "/")
    plain = plain.str.replace(r"^(?:\./)+", "").str.replace(suffix, "")
    return plain.str.replace(r"^0*([0-9]+?)(?:\.0+)?$", "${1}")
