"""What readers get and give.

A reader is a module with these literals, which the workflow reads without importing it:
    FEATURES: tuple[str, ...]: The tensors of the replay that it reads; empty for a reader that needs none.
    PARENTS: tuple[str, ...]: Roles of the fitted readers that it builds on.
    FITTED_ON: str | None: The split whose answers and labels `fit` reads, "train" or "validation". With None it reads
        no examples, and an actor need not answer the training split for it.
    VIEWS: str | None: When it reads the views that its config entry lists: "fit" (of the answers that it is fitted on)
        or "score" (of every answer, those that it is fitted on included). With None it has no views.
and these functions:
    fit(examples, settings, parents, seed) -> Weights
    score(reader, answers) -> Scores
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from dualread.errors import ConfigError, DualReadError, ReaderError, did_you_mean
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
class View:
    """What an actor was asked or shown besides, about the same answers and in their order.

    A view is of one kind; the fields of the others are None.

    Attributes:
        name: The entry of `views` in the config.
        texts: Further completions of each answer (samples, replies to a prompt), in the order of sample_index; none
            where the view does not ask about the answer, because it is not valid.
        log_probs: Log-probability of each choice in nats, float64 [n]; the choices need not add up to 1. NaN where the
            view does not ask about the answer.
        source: Gives a named tensor of a replay of the same completion with another image.
        rows: int [n], that replay's row of each answer.
    """

    name: str
    texts: tuple[tuple[str, ...], ...] | None = None
    log_probs: Mapping[str, np.ndarray] | None = None
    source: Callable[[str], np.ndarray] | None = None
    rows: np.ndarray | None = None

    def completions(self) -> tuple[tuple[str, ...], ...]:
        """Return `texts`.

        Raises:
            ConfigError: The view is of another kind.
        """
        return self._kind(self.texts, "completions")

    def choices(self) -> Mapping[str, np.ndarray]:
        """Return `log_probs`.

        Raises:
            ConfigError: The view is of another kind.
        """
        return self._kind(self.log_probs, "choices")

    def features(self, name: str) -> np.ndarray:
        """Return the tensor `name` of the view's replay, float32 [n, D].

        Raises:
            ConfigError: The view is of another kind.
        """
        return self._kind(self.source, "states")(name)[self._kind(self.rows, "states")]

    def take(self, index: np.ndarray) -> "View":
        """Return the view of the answers at the integer positions `index`."""
        return replace(
            self,
            texts=None if self.texts is None else tuple(self.texts[i] for i in index),
            log_probs=None if self.log_probs is None else {name: p[index] for name, p in self.log_probs.items()},
            rows=None if self.rows is None else self.rows[index],
        )

    def _kind(self, value: Any, what: str) -> Any:
        if value is None:
            raise ConfigError(f"views.{self.name}: gives no {what}, which this reader needs. Name another view.")
        return value


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers of one actor, without labels.

    Attributes:
        table: One row an answer, `COLUMNS`.
        source: Gives a named tensor of the replay, float32 [rows of the replay, D]; called on first use.
        rows: int [n], the replay's row of each answer.
        views: The views that the method's config entry lists, in that order.
    """

    table: pl.DataFrame
    source: Callable[[str], np.ndarray]
    rows: np.ndarray
    views: tuple[View, ...] = ()

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
        views = tuple(view.take(index) for view in self.views)
        return replace(self, table=self.table[index], rows=self.rows[index], views=views)

    def only_view(self) -> View:
        """Return the one view of a reader that has one.

        Raises:
            ConfigError: The method's config entry lists none or several.
        """
        if len(self.views) != 1:
            names = ", ".join(view.name for view in self.views) or "none"
            raise ConfigError(f"views: {names}; this reader needs exactly one. Correct the method's config entry.")
        return self.views[0]


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
        """Return the examples of one role: fit, stop, calibration or validation."""
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
    """What a reader says about each answer.

    Attributes:
        score: float64 [n], finite; higher is more confident. Any scale: log-odds where a temperature was fitted.
        confidence: float64 [n], the probability in [0, 1] that the answer is correct.
        imputed: bool [n], whether the reader has no value here and 0.5 stands in.
    """

    score: np.ndarray
    confidence: np.ndarray
    imputed: np.ndarray


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
    """Score `answers` by the module that `reader` names.

    Raises:
        ReaderError: Its scores are not finite, its confidences not in [0, 1], or there is not one of each per answer.
    """
    scores: Scores = load(reader.module).score(reader, answers)
    _check(scores, answers, reader.module)
    return scores


def _check(scores: Scores, answers: Answers, module: str) -> None:
    for name in ("score", "confidence", "imputed"):
        if (shape := np.shape(getattr(scores, name))) != (len(answers),):
            raise ReaderError(f"{module}: {name} has shape {shape}, expected ({len(answers)},), one value per answer.")
    confidence = np.asarray(scores.confidence)
    rules = (
        ("score", np.isfinite(scores.score), "a finite number; higher is more confident, such as log-odds"),
        ("confidence", (confidence >= 0) & (confidence <= 1), "a probability in [0, 1]"),  # NaN is in no range
    )
    for name, good, expected in rules:
        if bad := np.flatnonzero(~good).tolist():
            value, sample = getattr(scores, name)[bad[0]], answers.table["sample_id"][bad[0]]
            raise ReaderError(
                f"{module}: {name} of {sample} is {value}, and {len(bad)} of {len(answers)} are wrong. Expected"
                f" {expected}. Where the reader has no value, give confidence 0.5 and set imputed."
            )


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
        meant = "".join(did_you_mean(name, names) for name in unknown)
        known = ", ".join(names) or "none"
        raise ConfigError(f"{module}: unknown settings {', '.join(unknown)}. Known: {known}.{meant}")
