"""`dualread.evaluate`: every metric of a user's confidences, from files or from tables in memory."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from dualread.commands.evaluate.cells import Cells, cells_of
from dualread.commands.evaluate.columns import ANSWERS, PAIRS, check_mapping, mapped, other_columns
from dualread.commands.evaluate.differences import differences
from dualread.commands.evaluate.given import Given, given_of, read_given
from dualread.commands.evaluate.hub import is_address, local_file, read_address
from dualread.commands.evaluate.logged import read_logged
from dualread.commands.evaluate.measured import Measured, measure
from dualread.commands.evaluate.shared import shared_questions
from dualread.commands.evaluate.thresholds import chooser_of, thresholds
from dualread.errors import ConfigError, DataError
from dualread.evaluation.metrics.risk_control import DELTA

REPLICATES = 10_000


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What `evaluate` found.

    Attributes:
        metrics: One row per data set, method, subset and metric: dataset (null if the table names none), method, subset
            (all, open, closed), metric, estimate (null with a reason), low, high (95% interval), n, n_clusters, reason.
        differences: One row per data set, metric and baseline, with p and p_holm; None if nothing was compared.
        thresholds: One row per data set, method, target_risk and rule (empirical, certified): threshold, and coverage
            and risk of the answers with at least this confidence; None without a target risk.
        warnings: Sentences about values that contradict each other, and about questions that both chose a threshold
            and judge it.
        unused: Sentences that name the columns that were not used.
        notes: Sentences about how logs and renamed columns were read.
        left_out: {"file: why": number of answers in a log that cannot be evaluated}.
        parts: The joined rows behind them, one per data set.
    """

    metrics: pl.DataFrame
    differences: pl.DataFrame | None
    thresholds: pl.DataFrame | None
    warnings: Sequence[str]
    unused: Sequence[str]
    notes: Sequence[str]
    left_out: Mapping[str, int]
    parts: Sequence[Cells]


def evaluate(
    predictions: Any,
    pairs: Any = None,
    *,
    cluster: str | None = None,
    compare: Sequence[str] = (),
    calibration: Any = None,
    target_risk: float | Sequence[float] = (),
    delta: float = DELTA,
    replicates: int = REPLICATES,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    log_format: str | None = None,
    score: str | None = None,
) -> Evaluation:
    """Return every metric, with intervals that resample images; the same numbers as `dualread evaluate`.

    A table is a polars or pandas data frame, a mapping from column names to values, the path of a .csv, .jsonl or
    .parquet file, or "hf://owner/name", a data set of the Hugging Face hub. `dualread evaluate --help` lists the
    columns.

    Args:
        predictions: The table of answers.
        pairs: The table of donor pairs, for CCG-AUC.
        cluster: The column whose values are resampled, such as patients; by default image_id, if there is one.
        compare: Methods: the first is compared with each other one, or with all if it stands alone.
        calibration: Answers that choose the thresholds, with the columns of `predictions`; needed for `target_risk`.
        target_risk: Largest error rates of the kept answers, each in (0, 1).
        delta: Largest probability with which a certified threshold may be wrong, in (0, 1).
        replicates: Number of resamples; 0 for no intervals.
        seed: Seed of the resampling.
        columns: {column of the tables above: name that it has in yours}, such as {"confidence": "score"}.
        log_format: The harness that wrote `predictions` and `calibration`, if they are logs: "inspect", "lm-eval",
            "lmms-eval", "vlmevalkit".
        score: The score of the log that says whether an answer is correct; needed if it has several. "graded" grades
            the answers by their references.

    Raises:
        DataError: A table, a column or a value is missing or wrong.
        ConfigError: An option is out of range or names an unknown method.
    """
    if replicates < 0:
        raise ConfigError(f"--replicates: {replicates}, expected 0 (no intervals) or a positive number.")
    targets = [target_risk] if isinstance(target_risk, int | float) else list(target_risk)
    if bool(targets) != (calibration is not None):
        raise ConfigError(
            "--target-risk and --calibration: give both. The calibration answers choose the threshold; they must not be"
            " those on which the confidence was fitted."
        )
    if score is not None and log_format is None:
        raise ConfigError("--score: needs a log (--from); in a table, the column 'correct' says what is correct.")
    source = _Source(columns or {}, log_format, score, keep=(cluster,) if cluster else ())
    answers = source.answers(predictions, "predictions")
    chosen_on = None if calibration is None else source.answers(calibration, "calibration")
    donors = None if pairs is None else source.pairs(pairs)
    check_mapping(source.columns, source.tables)
    parts = cells_of(answers, pairs=donors, cluster=cluster)
    choosers = cells_of(chosen_on, cluster=cluster) if chosen_on is not None else []
    tables = [(answers, ANSWERS), (donors, PAIRS), (chosen_on, ANSWERS)]
    known = {cluster or "", f"donor_{cluster}"}
    unused = [
        sentence
        for given, names in tables
        if given is not None and (sentence := other_columns(given, {*names, *known}))
    ]
    measured = [measure(cells, replicates=replicates, seed=seed) for cells in parts]
    return Evaluation(
        metrics=pl.concat(one.metrics for one in measured),
        differences=_differences(measured, compare),
        thresholds=pl.concat(thresholds(cells, choosers, target_risks=targets, delta=delta) for cells in parts)
        if targets
        else None,
        warnings=[
            *(said for cells in (*parts, *choosers) for said in cells.warnings),
            *(said for cells in parts if targets and (said := shared_questions(cells, chooser_of(cells, choosers)))),
        ],
        unused=unused,
        notes=[f"{given.path}: {note}" for given, _ in tables if given is not None for note in given.notes],
        left_out={
            f"{given.path}: {why}": count
            for given, _ in tables
            if given is not None
            for why, count in given.left_out.items()
        },
        parts=parts,
    )


def _differences(measured: Sequence[Measured], compare: Sequence[str]) -> pl.DataFrame | None:
    if not compare:
        return None
    return pl.concat(differences(one, compare[0], compare[1:]) for one in measured)


@dataclass(frozen=True)
class _Source:
    """How the user's tables are read, and those that were, with the names by which their columns are read."""

    columns: Mapping[str, str]
    log_format: str | None
    score: str | None
    keep: tuple[str, ...]
    tables: list[tuple[Given, Collection[str]]] = field(default_factory=list)

    def answers(self, table: Any, name: str) -> Given:
        if self.log_format is None:
            return self._mapped(_given(table, name), ANSWERS)
        if not isinstance(table, str | Path):
            raise ConfigError(f"{name}: {type(table).__name__}; a log (--from {self.log_format}) is given by its path.")
        path = local_file(str(table)) if is_address(table) else Path(table)
        logged = read_logged(path, self.log_format, score=self.score, graded="correct" not in self.columns)
        self.tables.append((logged.whole, ANSWERS))
        return logged.answers(self.columns, keep=self.keep)

    def pairs(self, table: Any) -> Given:
        return self._mapped(_given(table, "pairs"), PAIRS)

    def _mapped(self, given: Given, known: Collection[str]) -> Given:
        self.tables.append((given, known))
        return mapped(given, self.columns, known, keep=self.keep)


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
