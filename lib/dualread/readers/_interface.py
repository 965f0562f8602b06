"""What readers get and give.

A reader is a module with:
    FEATURES: tuple[str, ...]: The tensors of the replay that it reads; empty for a reader that needs none.
    PARENTS: tuple[str, ...]: Roles of the fitted readers that it builds on.
    LABELS: bool: Whether `fit` reads examples; where not, an actor need not answer the training split for it.
    fit(examples, settings, parents, seed) -> Weights
    score(reader, answers) -> Scores
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from dualread.errors import ConfigError, DualReadError
from dualread.plugins import load as load_plugin

# Columns of `Answers.table`. The label is not among them, on purpose.
COLUMNS = (
    "sample_id",
    "dataset",
    "split",
    "role",
    "condition",
    "question_key",
    "canonical_answer",
    "verbalized_confidence",
    "parse_status",
)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers of one actor, without labels.

    Attributes:
        table: One row an answer, `COLUMNS`.
        source: Gives a named tensor of the replay, float32 [rows of the replay, D]; called on first use.
        rows: int [n], the replay's row of each answer.
    """

    table: pl.DataFrame
    source: Callable[[str], np.ndarray]
    rows: np.ndarray

    def __post_init__(self) -> None:
        if tuple(self.table.columns) != COLUMNS:
            raise ValueError(f"Answers: columns {self.table.columns}, expected {list(COLUMNS)}.")
        if self.rows.shape != (len(self.table),):
            raise ValueError(f"Answers: rows has shape {self.rows.shape}, expected ({len(self.table)},).")

    def __len__(self) -> int:
        return len(self.table)

    def features(self, name: str) -> np.ndarray:
        """Return the tensor `name` for these answers, float32 [n, D]."""
        return self.source(name)[self.rows]

    def take(self, index: np.ndarray) -> "Answers":
        """Return the answers at the integer positions `index`."""
        return replace(self, table=self.table[index], rows=self.rows[index])


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Answers with labels: what readers are fitted on."""

    answers: Answers
    correct: np.ndarray  # bool [n]

    def __len__(self) -> int:
        return len(self.answers)

    @classmethod
    def none(cls) -> "Examples":
        """Return no examples at all, for readers whose `fit` reads none."""
        table = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))
        answers = Answers(table=table, source=dict[str, np.ndarray]().__getitem__, rows=np.zeros(0, dtype=np.int64))
        return cls(answers=answers, correct=np.zeros(0, dtype=bool))

    def partition(self, role: str) -> "Examples":
        """Return the examples of one role: fit, stop or calibration."""
        index = np.flatnonzero((self.answers.table["role"] == role).to_numpy())
        return Examples(answers=self.answers.take(index), correct=self.correct[index])

    def require(self, role: str, *, both_classes: bool) -> "Examples":
        """Return `partition(role)`.

        Raises:
            DualReadError: It is empty or, if `both_classes`, all its answers are correct or all are wrong.
        """
        found = self.partition(role)
        n_correct = int(found.correct.sum())
        if len(found) == 0 or (both_classes and n_correct in (0, len(found))):
            needed = "correct and wrong answers" if both_classes else "at least one answer"
            raise DualReadError(
                f"partition {role!r}: {n_correct} correct of {len(found)} answers; a reader needs {needed} there. "
                "Give the data set more images, change the shares of its roles, or train the actor differently."
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What fitting found: arrays, and notes of JSON values (temperature, epochs, vocabularies)."""

    tensors: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FittedReader:
    """A reader that can score: which module, with which settings and weights, on which parents.

    Attributes:
        module: Name inside the package, such as "readers.psr".
        provenance: JSON values that scoring does not need: actor, seed, digests, token positions, counts.
    """

    module: str
    settings: Mapping[str, Any]
    weights: Weights
    parents: Mapping[str, "FittedReader"] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """One value an answer: raw score (higher = more confident), confidence in [0, 1], whether 0.5 stands in."""

    score: np.ndarray  # float64 [n]
    confidence: np.ndarray  # float64 [n]
    imputed: np.ndarray  # bool [n]


def load(module: str) -> Any:
    """Import the reader called `module`, such as "readers.psr".

    Raises:
        ConfigError: There is no such reader; the message lists the known ones.
    """
    family, _, name = module.rpartition(".")
    if family != "readers":
        raise ConfigError(f"reader.module: {module!r} is not in the family readers. Expected readers.<name>.")
    return load_plugin(family, name)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Score `answers` by the module that `reader` names."""
    return load(reader.module).score(reader, answers)


def log_odds(reader: FittedReader, answers: Answers) -> np.ndarray:
    """Return the uncalibrated log-odds of a parent, float64 [n].

    Raises:
        ConfigError: The reader's score is not in log-odds (it has no temperature).
    """
    temperature(reader)
    return score(reader, answers).score


def calibrated_log_odds(reader: FittedReader, answers: Answers) -> np.ndarray:
    """Return the log-odds of a parent divided by its temperature, float64 [n]; never through a probability."""
    return log_odds(reader, answers) / temperature(reader)


def temperature(reader: FittedReader) -> float:
    """Return the reader's temperature.

    Raises:
        ConfigError: It has none.
    """
    if "temperature" not in reader.weights.notes:
        raise ConfigError(f"parents: {reader.module} gives no log-odds. Expected a reader with a temperature.")
    return float(reader.weights.notes["temperature"])


def check_settings(settings: Mapping[str, Any], names: Collection[str], *, module: str) -> None:
    """Refuse missing and unknown settings.

    Raises:
        ConfigError: The message lists the settings that the reader has.
    """
    if missing := sorted(set(names) - set(settings)):
        raise ConfigError(f"{module}: settings lack {', '.join(missing)}. Expected: {', '.join(names) or 'none'}.")
    if unknown := sorted(set(settings) - set(names)):
        raise ConfigError(f"{module}: unknown settings {', '.join(unknown)}. Known: {', '.join(names) or 'none'}.")
