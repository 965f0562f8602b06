"""The answers of one run of a finished study as plain tables, read from its artifacts without Snakemake."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import read_table, reason_of
from dualread.artifacts.tensors import read_tensors
from dualread.declared.columns import GRADED, MANIFEST, PAIRS, PREDICTIONS, Schema
from dualread.errors import ConfigError, DataError, did_you_mean
from dualread.evaluation.answer_metrics import STORED
from dualread.evaluation.exchange import DONOR, answers_table, pairs_table
from dualread.progress import say


@dataclass(frozen=True, kw_only=True)
class StudyTables:
    """One run of a study as plain tables.

    Attributes:
        answers: The columns of `exchange.answers_table`, of all chosen data sets.
        pairs: Those of `exchange.pairs_table`; None if no chosen data set has donors.
        calibration: The answers on which the study chooses thresholds; None if it has no validation split.
        replicates: Number of resamples behind the study's intervals.
    """

    answers: pl.DataFrame
    pairs: pl.DataFrame | None
    calibration: pl.DataFrame | None
    replicates: int


def read_study(
    folder: Path, *, run: str | None, methods: Sequence[str] = (), datasets: Sequence[str] = ()
) -> StudyTables:
    """Read the test answers of one run, and its validation answers.

    Args:
        folder: results/<study>.
        run: "<backbone>/<actor>/<seed>"; may be None if the study has one run.
        methods: Names of methods; all of the run if empty.
        datasets: Names of data sets; all if empty.

    Raises:
        DataError: The folder is no finished study.
        ConfigError: The run, a method or a data set is unknown, or there are several runs and none was chosen.
    """
    place = folder / "predictions" / _chosen_run(folder, run)
    names = _chosen("method", methods, sorted(path.parent.name for path in place.glob("*/predictions.parquet")))
    reasons = {name: reason_of(place / name / "predictions.parquet") for name in names}
    for name, reason in reasons.items():
        if reason is not None:
            if name in methods:
                raise ConfigError(f"{folder}: method {name!r} has no confidences, {reason}")
            say(f"{folder}: method {name!r} is left out, {reason}")
    names = [name for name in names if reasons[name] is None]
    if not names:
        raise DataError(f"{folder}: no method of this run has confidences.")
    predictions = pl.concat(read_table(place / name / "predictions.parquet", PREDICTIONS) for name in names)
    shards = sorted(set(predictions.select("dataset", "split").iter_rows()))
    tested = _chosen("dataset", datasets, [dataset for dataset, split in shards if split == "test"])
    reader = _Reader(folder, place.relative_to(folder / "predictions"), predictions)
    pairs = [table for dataset in tested if (table := reader.pairs(dataset, "test")) is not None]
    validation = [dataset for dataset, split in shards if split == "validation"]
    return StudyTables(
        answers=pl.concat(reader.answers(dataset, "test") for dataset in tested),
        pairs=pl.concat(pairs) if pairs else None,
        calibration=pl.concat(reader.answers(dataset, "validation") for dataset in validation) if validation else None,
        replicates=_replicates(folder / "metrics" / _chosen_run(folder, run) / names[0] / "replicates.safetensors"),
    )


@dataclass(frozen=True)
class _Reader:
    folder: Path
    run: Path
    predictions: pl.DataFrame

    def answers(self, dataset: str, split: str) -> pl.DataFrame:
        manifest, graded = self._manifest(dataset, split), self._graded(dataset, split, "original")
        return answers_table(study=self.folder.name, manifest=manifest, predictions=self.predictions, graded=graded)

    def pairs(self, dataset: str, split: str) -> pl.DataFrame | None:
        path = self.folder / "pairs" / dataset / split / "pairs.parquet"
        if not path.exists() or (pairs := read_table(path, PAIRS)).is_empty():
            return None
        manifest, graded = self._manifest(dataset, split), self._graded(dataset, split, DONOR)
        return pairs_table(manifest=manifest, pairs=pairs, predictions=self.predictions, graded=graded)

    def _manifest(self, dataset: str, split: str) -> pl.DataFrame:
        return self._read(self.folder / "manifests" / dataset / split, MANIFEST)

    def _graded(self, dataset: str, split: str, condition: str) -> dict[str, pl.DataFrame]:
        return {condition: self._read(self.folder / "graded" / self.run / dataset / split / condition, GRADED)}

    def _read(self, place: Path, schema: Schema) -> pl.DataFrame:
        return read_table(place / f"{schema.name}.parquet", schema)


def _chosen_run(folder: Path, run: str | None) -> str:
    places = (folder / "predictions").glob("*/*/*/*/predictions.parquet")
    runs = sorted({"/".join(path.parts[-5:-2]) for path in places})
    if not runs:
        raise DataError(f"{folder}: no predictions in it; expected the folder of a finished study, results/<study>.")
    if run is None and len(runs) > 1:
        raise ConfigError(f"{folder}: has {len(runs)} runs. Choose one with --run: {', '.join(runs)}.")
    return _chosen("run", [run] if run else [], runs)[0]


def _chosen(kind: str, names: Sequence[str], known: Collection[str]) -> list[str]:
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(
            f"--{kind} {unknown[0]}: not in the study. Known: {', '.join(known)}.{did_you_mean(unknown[0], known)}"
        )
    return list(names) or list(known)


def _replicates(path: Path) -> int:
    """Return the number of resamples in the output of compute_metrics; 0 if it computed none."""
    found = read_tensors(path)
    return max((len(values) for name, values in found.items() if name.rpartition("/")[2] in STORED), default=0)
