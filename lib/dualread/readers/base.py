"""What the file of a reader defines, and the types that it takes and returns.

A reader is a module with the function `score(reader, answers) -> Scores`. Where something is fitted, it also has
`fit(examples, settings, parents, seed) -> Weights`; where the actor brings the weights, `weights_of(actor) -> Weights`
reads them in the actor's folder. `declarations` lists the literals that it may declare.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dualread import plugins
from dualread.errors import ConfigError, ReaderError, UndefinedScoreError, UnfittedError, in_a_line
from dualread.readers.answers import COLUMNS, Answers, Examples, ViewAnswers
from dualread.schema.base import NoSettings, Section, Wire

# All that the file of a reader needs is imported from here.
__all__ = [
    "COLUMNS",
    "Answers",
    "Examples",
    "FittedReader",
    "Scores",
    "ViewAnswers",
    "Weights",
    "calibrated_log_odds",
    "fit",
    "fit_or_reason",
    "load",
    "log_odds",
    "score",
    "settings_of",
    "temperature",
]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What fitting found.

    Attributes:
        tensors: Arrays by name.
        notes: JSON values by name, such as a temperature, a number of epochs or a vocabulary.
    """

    tensors: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FittedReader:
    """A reader that can score, or the reason why there is none.

    Attributes:
        module: The module's name inside the package, such as "readers.psr".
        settings: The reader's own `Settings`, with which it was fitted.
        weights: What fitting found; empty where nothing is fitted.
        parents: The fitted readers on which the reader builds, by role.
        provenance: JSON values that scoring does not need: actor, seed, digests, token positions, counts.
        unfitted: Why it could not be fitted, so that it cannot score; None for a reader that can.
    """

    module: str
    settings: Any
    weights: Weights
    parents: Mapping[str, "FittedReader"] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    unfitted: str | None = None


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What a reader says about each answer.

    Attributes:
        score: float64 [n], finite; higher is more confident. The scale is free; a reader with a temperature gives
            log-odds. What `score` below returns is NaN where a judge gave no verdict of samples, and imputed.
        confidence: float64 [n], the probability in [0, 1] that the answer is correct.
        imputed: bool [n], true where the reader has no value and the confidence is 0.5 instead.
    """

    score: np.ndarray
    confidence: np.ndarray
    imputed: np.ndarray


def load(module: str) -> Any:
    """Import the reader called `module`, such as "readers.psr"; an unknown one is a ConfigError."""
    return plugins.load("readers", plugins.name_of("readers", module))


def settings_of(module: str, settings: Wire) -> Section:
    """Return `settings` as what the reader called `module` declares as its `Settings`; or a ConfigError."""
    return getattr(load(module), "Settings", NoSettings).from_spec(settings, f"{module}: settings")


def fit(
    module: str,
    examples: Examples,
    settings: Wire,
    parents: Mapping[str, FittedReader],
    seed: int,
    actor: Path | None = None,
) -> Weights:
    """Fit the reader called `module`; a reader without `fit` has no weights, or those that the actor's folder brings.

    `examples` are empty for a reader that is not fitted, `parents` fitted readers by role.

    Raises:
        ConfigError: There is no such reader, or a setting is missing, unknown, or not allowed.
        UnfittedError: The reader, or one that it builds on, cannot be fitted on these examples: a class is missing,
            they are separable, a computation does not converge, or a weight is not finite. Or the actor brings none.
        ReaderError: `fit` returned something else.
    """
    chosen = settings_of(module, settings)
    for role, parent in parents.items():
        if parent.unfitted is not None:
            raise UnfittedError(f"{role} ({parent.provenance.get('method', parent.module)}): {parent.unfitted}")
    reader = load(module)
    try:
        if (unclear := examples.answers.without_verdict()).any():
            known = np.flatnonzero(~unclear)
            examples = Examples(answers=examples.answers.take(known), correct=examples.correct[known])
        if hasattr(reader, "weights_of"):
            weights = reader.weights_of(actor)
        else:
            weights = reader.fit(examples, chosen, parents, seed) if hasattr(reader, "fit") else Weights()
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise UnfittedError(f"{module}: the computation fails ({in_a_line(error)}).") from error
    _check_type(weights, Weights, f"{module}: fit")
    if broken := sorted(name for name, tensor in weights.tensors.items() if not np.isfinite(tensor).all()):
        raise UnfittedError(f"{module}: fitting ended with NaN or infinite values in {', '.join(broken)}.")
    return weights


def fit_or_reason(module: str, *arguments: Any) -> tuple[Weights, str | None]:
    """Return what `fit` returns, and None; or no weights, and the reason why it cannot be fitted."""
    try:
        return fit(module, *arguments), None
    except UnfittedError as error:
        return Weights(), str(error)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Score `answers` with the module that `reader` names.

    Raises:
        UndefinedScoreError: A score is not finite, or a confidence is not in [0, 1].
        ReaderError: The reader could not be fitted; or `score` returned something else, or not one value per answer.
    """
    if reader.unfitted is not None:
        raise ReaderError(f"{reader.module}: there is no fitted reader: {reader.unfitted}")
    seen = _seen_by(reader, answers)
    scores: Scores = load(reader.module).score(reader, seen)
    _check_type(scores, Scores, f"{reader.module}: score")
    _check_scores(scores, answers, reader.module)
    if not (unclear := seen.without_verdict()).any():
        return scores
    return Scores(
        score=np.where(unclear, np.nan, scores.score),
        confidence=np.where(unclear, 0.5, scores.confidence),
        imputed=scores.imputed | unclear,
    )


def _seen_by(reader: FittedReader, answers: Answers) -> Answers:
    """Return the answers with the reader's own views: a reader gives a parent its own answers to score."""
    names = [view["name"] for view in reader.provenance.get("scoring", {}).get("views", ())]
    if names == [view.name for view in answers.views] or "scoring" not in reader.provenance:
        return answers
    known = {view.name: view for view in (*answers.others, *answers.views)}
    if missing := [name for name in names if name not in known]:
        raise ReaderError(f"{reader.module}: there is no view {missing[0]} of these answers, which the reader reads.")
    return replace(answers, views=tuple(known[name] for name in names), others=tuple(known.values()))


def log_odds(reader: FittedReader, answers: Answers) -> np.ndarray:
    """Return the uncalibrated log-odds that a parent gives, float64 [n]; a ConfigError if it has no temperature."""
    temperature(reader)
    return score(reader, answers).score


def calibrated_log_odds(reader: FittedReader, answers: Answers) -> np.ndarray:
    """Return the log-odds that a parent gives, divided by its temperature, float64 [n].

    They are never computed from a probability, which may have been rounded to 0 or 1.
    """
    return log_odds(reader, answers) / temperature(reader)


def temperature(reader: FittedReader) -> float:
    """Return the reader's temperature; a ConfigError if it has none."""
    if "temperature" not in reader.weights.notes:
        raise ConfigError(f"parents: {reader.module} gives no log-odds. Expected a reader with a temperature.")
    return float(reader.weights.notes["temperature"])


def _check_type(value: Any, expected: type, where: str) -> None:
    if not isinstance(value, expected):
        name, actual = expected.__name__, type(value).__name__
        raise ReaderError(f"{where} returned an object of type {actual}. Expected `{name}` of readers/base.py.")


def _check_scores(scores: Scores, answers: Answers, module: str) -> None:
    for name in ("score", "confidence", "imputed"):
        if (shape := np.shape(getattr(scores, name))) != (len(answers),):
            raise ReaderError(f"{module}: {name} has shape {shape}, expected ({len(answers)},), one value per answer.")
    confidence = np.asarray(scores.confidence)
    rules = (
        ("score", np.isfinite(scores.score), "a finite number that is higher for more confidence, such as log-odds"),
        ("confidence", (confidence >= 0) & (confidence <= 1), "a probability in [0, 1]"),  # false for NaN
    )
    for name, good, expected in rules:
        if bad := np.flatnonzero(~good).tolist():
            value, sample = getattr(scores, name)[bad[0]], answers.table["sample_id"][bad[0]]
            raise UndefinedScoreError(
                f"{module}: {name} of {sample} is {value}, and {len(bad)} of {len(answers)} values are wrong."
                f" Expected {expected}. Where the reader has no value, give a finite score, the confidence 0.5, and set"
                " imputed."
            )
