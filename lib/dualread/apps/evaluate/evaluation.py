"""`dualread.evaluate`: the steps from a user's tables, in files or in memory, to every metric of its confidences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any
from unicodedata import normalize

import polars as pl

from dualread.apps.evaluate.answer_sets import answer_sets
from dualread.apps.evaluate.claims import claim_filters
from dualread.apps.evaluate.claims import doubts as doubts_of_filters
from dualread.apps.evaluate.evaluation_data import evaluation_data
from dualread.apps.evaluate.log import LogOptions
from dualread.apps.evaluate.metrics import differences, measure
from dualread.apps.evaluate.printed import summary
from dualread.apps.evaluate.report import evaluation_report
from dualread.apps.evaluate.results import Results
from dualread.apps.evaluate.subgroups import groups_of
from dualread.apps.evaluate.tables import read_tables
from dualread.apps.evaluate.thresholds import ThresholdOptions, chooser_of, doubts, overlaps, thresholds
from dualread.data.tables.checks import CheckedTable
from dualread.data.tables.contract import TableOptions
from dualread.errors import ConfigError, printable
from dualread.evaluation.decimals import as_float64
from dualread.evaluation.metrics.risk_control import DELTA
from dualread.schema.metrics import ENOUGH_REPLICATES, FEWEST_REPLICATES

REPLICATES = 2_000
_LEVEL = 0.05
_SHOWN = 8  # columns that a sentence names


class Evaluation(Results):
    """What `evaluate` computed; `print` shows it on one screen, as `dualread evaluate` does."""

    def __str__(self) -> str:
        """Return the lines of `summary` and the first warning."""
        lines = [line.text for line in summary(evaluation_report(self))]
        if self.warnings:
            lines.append(f"{len(self.warnings)} warnings in .warnings, the first: {self.warnings[0]:.60}")
        return printable("\n".join(lines))

    __repr__ = __str__


def evaluate(
    predictions: Any,
    pairs: Any = None,
    *,
    cluster: str | None = None,
    by: str | Sequence[str] = (),
    compare: str | Sequence[str] = (),
    calibration: Any = None,
    target_risk: float | Sequence[float] = (),
    delta: float = DELTA,
    share_delta: int = 1,
    choices: Mapping[str, str] | None = None,
    miss: float = 0.1,
    max_per_image: int | None = None,
    max_reports: int | None = None,
    replicates: int | None = None,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    log_format: str | None = None,
    score: str | None = None,
    alternatives: str | None = None,
    stated_scale: int | None = None,
    missing: str | Sequence[str] | None = None,
    decimal: str = ".",
    options: str | Sequence[str] = (),
    methods: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> Evaluation:
    """Return every metric, with intervals that resample images; the same numbers as `dualread evaluate`.

    A table is a data frame of polars, pandas, pyarrow or datasets, a mapping from column names to values, a list of
    rows, the path of a .csv, .tsv, .jsonl, .ndjson, .json or .parquet file, or "hf://owner/name", a data set of the
    Hugging Face hub. `dualread evaluate --help` lists the columns.

    Args:
        predictions: The table of answers.
        pairs: The table of donor pairs, for CCG-AUC.
        cluster: The column whose values are resampled, such as patients; by default image_id, if there is one.
        by: Columns whose values are groups of answers, such as sex or site: every metric of each group, simultaneous
            intervals, the worst group, differences to the rest, and certified thresholds (`Evaluation.groups`).
        compare: Methods: the first is compared with each other one, or with all if it stands alone, on the questions
            that all of them answer.
        calibration: Answers that choose thresholds, with the columns of `predictions`; for `target_risk` and `choices`.
        target_risk: Largest error rates of the kept answers, each in (0, 1).
        delta: Largest probability with which a certified threshold may be wrong, in (0, 1).
        share_delta: Number of thresholds that share delta. Where the best of K methods, or of K target risks, is chosen
            by what is certified for it, give K; with 1, each threshold is meant by itself.
        choices: {choice of a question, as in `reference_answer`: the column of its probability}, for sets of choices.
        miss: How often a set of choices may miss the right one, in (0, 1).
        max_per_image: Largest number of answers to an image that the source can have; by default the largest number
            among the calibration images. With `cluster`, to one of its values.
        max_reports: Of claims, the largest number of reports that a cluster of the source can have; by default that of
            the calibration reports.
        replicates: Number of resamples, 39 or more; 0 for no intervals but those of CCG-AUC, VRS and VBR, which need
            none. By default 2,000, or as many as the column `replicates` says, which the tables of a study have.
        seed: Seed of the resampling.
        columns: {column of the tables above: name that it has in yours}, such as {"confidence": "p_true"}; a column
            `score` holds numbers of which only the order counts, with the other sign by {"score": "-entropy"}.
        log_format: The harness that wrote `predictions` and `calibration`, if they are logs: "inspect", "lm-eval",
            "lmms-eval", "vlmevalkit".
        score: The score of the log that says whether an answer is correct; needed if it has several. "graded" grades
            the answers by their references.
        alternatives: What separates accepted answers in one text of `reference_answer`, such as "#"; default: nothing.
        missing: Words that stand for an empty cell, such as "NA"; rows without a reference answer are then left out and
            counted. By default such rows are refused. [] for no word.
        decimal: "," if numbers in texts have decimal commas.
        options: The columns that hold the options of multiple-choice questions, such as ["A", "B", "C", "D"], or the
            one column that holds lists of them: letters of options are then read as their texts.
        stated_scale: What stands for certainty in the confidences that a log states: 1, 10 or 100; needed where 100 may
            not be meant, because no number is above 10, or one is between 0 and 1.
        methods: Only these methods; all if empty.
        datasets: Only these data sets; all if empty.

    Raises:
        DataError: A table, a column or a value is missing or wrong, or an image has more than `max_per_image` answers.
        ConfigError: An option is out of range or names an unknown method.
    """
    columns = {str(name): str(column) for name, column in (columns or {}).items()}  # pandas may have numbers as names
    options = [options] if isinstance(options, str) else list(options)
    by = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    compare = [normalize("NFC", name) for name in ([compare] if isinstance(compare, str) else compare or ())]
    if replicates is not None and 0 != replicates < FEWEST_REPLICATES:
        raise ConfigError(f"--replicates: {replicates}, expected {ENOUGH_REPLICATES}.")
    try:
        targets = as_float64(target_risk, name="--target-risk").ravel().tolist()
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if bool(targets or choices) != (calibration is not None):
        raise ConfigError(
            "--target-risk and --calibration: give both, or --choices and --calibration. The calibration answers choose"
            " the threshold; they must not be those on which the confidence was fitted."
        )
    wanted = ThresholdOptions(
        target_risks=targets,
        delta=delta,
        share_delta=share_delta,
        max_per_image=max_per_image,
        max_reports=max_reports,
    )
    tables = read_tables(
        predictions,
        pairs,
        calibration,
        TableOptions(
            columns=columns,
            cluster=cluster,
            by=by,
            choices=choices or {},
            alternatives=alternatives,
            options=options,
            missing=[missing] if isinstance(missing, str) else missing,
            decimal=decimal,
        ),
        LogOptions(log_format=log_format, score=score, stated_scale=stated_scale),
        {"method": tuple(methods), "dataset": tuple(datasets)},
    )
    answers = tables["predictions"]
    replicates = _replicates(answers) if replicates is None else replicates
    parts = evaluation_data(answers, tables.get("pairs"), cluster=cluster, by=by, choices=choices)
    warnings = [text for cells in parts for text in cells.warnings]
    if "calibration" in tables:
        of_groups = by if targets else ()
        calibrated = evaluation_data(tables["calibration"], cluster=cluster, by=of_groups, choices=choices)
        parts = [replace(cells, chooser=chooser_of(cells, calibrated)) for cells in parts]
        warnings += [text for cells in calibrated for text in cells.warnings]
    measured = [measure(cells, replicates=replicates, seed=seed) for cells in parts]
    compared = None
    if compare:
        frames, doubted = zip(
            *(differences(part, compare, replicates=replicates, seed=seed) for part in measured), strict=True
        )
        compared = pl.concat(frames)
        warnings += [*chain(*doubted), *_too_few_resamples(compared, replicates)]
    for cells in parts:
        warnings += overlaps(cells)
        warnings += [*doubts(cells, wanted), *doubts_of_filters(cells, wanted)] if targets else []
    return Evaluation(
        metrics=pl.concat(part.metrics for part in measured),
        differences=compared,
        thresholds=thresholds(parts, wanted) if targets else None,
        warnings=warnings,
        unused=[text for table in tables.values() for text in _unused(table)],
        notes=[f"{table.source}: {note}" for table in tables.values() for note in table.notes],
        left_out={f"{table.source}: {why}": n for table in tables.values() for why, n in table.left_out.items()},
        parts=parts,
        replicates=replicates,
        seed=seed,
        answer_sets=answer_sets(parts, by, miss) if choices else None,
        groups=groups_of(parts, by, wanted, replicates=replicates, seed=seed) if by else None,
        claim_filter=claim_filters(parts, wanted),
    )


def _replicates(answers: CheckedTable) -> int:
    """Return the number of resamples that a table says, one in all rows, or else the usual one."""
    if not answers.has("replicates"):
        return REPLICATES
    texts = answers.frame["replicates"].cast(pl.String)
    wrong = ~texts.str.contains("^[0-9]{1,6}$") | (texts != texts[0])
    answers.refuse("replicates", wrong, texts, "expected one number")
    few = texts.cast(pl.Int64).is_between(1, FEWEST_REPLICATES - 1)
    answers.refuse("replicates", few, texts, f"expected {ENOUGH_REPLICATES}")
    return int(texts[0])


def _unused(table: CheckedTable) -> Iterator[str]:
    """Yield a sentence that names columns that are not used."""
    if n := len(table.unused):
        more = ", ..." if n > _SHOWN else ""
        yield f"{table.source}: {n} column{'s' if n > 1 else ''} not used: {', '.join(table.unused[:_SHOWN])}{more}"


def _too_few_resamples(differences: pl.DataFrame, replicates: int) -> Iterator[str]:
    """Yield a warning if no difference from so many baselines can be significant after Holm's adjustment."""
    n = differences["baseline"].n_unique()
    if replicates and (smallest := 2 * n / (replicates + 1)) >= _LEVEL:
        yield (
            f"warning: with {replicates} resamples and {n} baselines no p (Holm) can be below {smallest:.2g}, but for"
            f" CCG-AUC. Use --replicates {int(2 * n / _LEVEL)} or more."
        )
