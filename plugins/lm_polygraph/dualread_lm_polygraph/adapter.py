"""Estimators of LM-Polygraph as readers: what they are given, what is refused, and what becomes of their numbers.

An estimator is a class of `lm_polygraph.estimators` whose instances take named statistics of n answers and return n
uncertainties, higher for less certain. It checks nothing: statistics of another shape give wrong numbers. So each
statistic is checked here before the call, and each uncertainty after it.

An estimator is called with one answer at a time, so that no number depends on the other answers. The score is the
negative uncertainty, in the estimator's own unit and higher for more confidence. A Platt map with a positive slope
turns it into the confidence. The units are in docs/estimators.md.

References:
    Fadeeva et al., LM-Polygraph: Uncertainty Estimation for Language Models, EMNLP 2023 (system demonstrations).
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dualread.errors import ConfigError, ReaderError, UnfittedError, in_a_line
from dualread.readers.base import Answers, Examples, Weights
from dualread.readers.calibrated import platt_notes

Statistics = Mapping[str, Any]
# An estimator adds in the order of tokens or samples, and equal uncertainties differ in their last digits by that. They
# have to be ties: CCG-AUC counts a tie as one half.
_DIGITS = 12

Estimator = Callable[[dict[str, Any]], np.ndarray]


def open_estimator(name: str, parameters: Mapping[str, Any] | None = None) -> Estimator:
    """Return a new instance of the estimator called `name`, made with `parameters`.

    Raises:
        ReaderError: LM-Polygraph cannot be imported here.
        ConfigError: The estimator takes other parameters.
    """
    try:
        from lm_polygraph import estimators  # pyright: ignore  # not needed to check types
    except ImportError as error:
        raise ReaderError(
            f"{name}: LM-Polygraph cannot be imported by {sys.executable} ({in_a_line(error)})."
            " Expected the packages of plugins/lm_polygraph/requirements.lock beside DualRead: `make env-estimators`"
            " installs them."
        ) from error
    try:
        return getattr(estimators, name)(**(parameters or {}))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"settings.parameters: {parameters}: LM-Polygraph's {name} refuses them"
            f" ({in_a_line(error)}). Expected arguments of its constructor."
        ) from error


def certainty(
    estimator: Estimator, statistics: Iterable[Statistics], names: Sequence[str], shared: Statistics | None = None
) -> np.ndarray:
    """Return the negative uncertainties in 12 significant digits, float64 [n]; higher is more certain.

    Args:
        estimator: The estimator.
        statistics: Of each answer, as a batch of one.
        names: What messages call each answer.
        shared: Statistics that all answers have in common, such as those of training answers.

    Raises:
        UnfittedError: The estimator does not return one finite number for an answer.
    """
    found = np.empty(len(names), dtype=np.float64)
    for i, (of_one, name) in enumerate(zip(statistics, names, strict=True)):
        uncertainty = np.asarray(estimator({**of_one, **(shared or {})}), dtype=np.float64)
        if uncertainty.shape != (1,) or not np.isfinite(uncertainty[0]):
            raise UnfittedError(
                f"{name}: LM-Polygraph's {type(estimator).__name__} returns {uncertainty.tolist()} for one answer."
                " Expected one finite number. Choose another estimator for these answers."
            )
        found[i] = 0.0 - float(f"{uncertainty[0]:.{_DIGITS}g}")  # a plain minus sign would turn 0.0 into -0.0
    return found


def with_platt(score: np.ndarray, given: Examples, partition: str, estimator: str, **tensors: np.ndarray) -> Weights:
    """Return `tensors` and the Platt map of `score` [n], fitted on the answers `given` of one partition."""
    notes = platt_notes(
        score,
        given,
        reader=f"LM-Polygraph's {estimator}",
        partition=partition,
        advice=f"Give the partition {partition} more images",
    )
    return Weights(tensors=tensors, notes=notes)


def of_tokens(name: str, values: np.ndarray, *, sign: int, where: str) -> dict[str, Any]:
    """Return the statistic `name`, one number in nats for each token of an answer, as a batch of one.

    Args:
        name: greedy_log_likelihoods or entropy.
        values: The numbers [tokens].
        sign: -1 where no number can be above 0 (log-probabilities), 1 where none can be below 0 (entropies).
        where: The answer that errors name.

    Raises:
        ReaderError: There is no token, or a number is not finite or of the other sign.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ReaderError(
            f"{where}: {name} has the shape {values.shape}. Expected [tokens], at least one. Replay again."
        )
    _check_signs(name, values, sign, where)
    return {name: [values.tolist()]}


def chosen_tokens(answers: Answers, tokens: str) -> list[np.ndarray]:
    """Return the positions [m] of each completion's tokens that `tokens` names: completion or answer.

    Answers without a valid answer block have no tokens of their own: all tokens are read, as in sequence likelihood.
    """
    positions = {
        "answer": lambda: answers.of_tokens("answer_positions"),
        "completion": lambda: [np.arange(len(tokens)) for tokens in answers.of_tokens("token_log_probs")],
    }
    return positions[tokens]()


def of_samples(
    texts: Sequence[str], log_probs: Sequence[np.ndarray], classes: Sequence[int], *, where: str
) -> dict[str, Any]:
    """Return the statistics of K samples of one answer, as a batch of one.

    Args:
        texts: The K completions.
        log_probs: The log-probabilities in nats of each completion's tokens, stop token included.
        classes: For each completion the number of the class of equal answers that it is in; numbered from 0.
        where: The answer that errors name.

    Raises:
        ReaderError: There are fewer than two samples, the lengths differ, a completion has no token, or a
            log-probability is not finite or above 0.
    """
    n = len(texts)
    if n < 2 or len(log_probs) != n or len(classes) != n:
        raise ReaderError(
            f"{where}: {n} texts, {len(log_probs)} lists of log-probabilities and {len(classes)} classes of samples."
            " Expected one of each per sample, and at least two samples. Generate the view again."
        )
    if set(classes) != set(range(max(classes) + 1)):
        raise ReaderError(f"{where}: the classes of samples are {list(classes)}. Expected 0, 1, ... without a gap.")
    for tokens in log_probs:
        of_tokens("sample_log_likelihoods", tokens, sign=-1, where=where)
    members = [[i for i, own in enumerate(classes) if own == number] for number in range(max(classes) + 1)]
    return {
        "sample_texts": [list(texts)],
        "sample_log_likelihoods": [[tokens.tolist() for tokens in log_probs]],
        "sample_log_probs": [[float(np.sum(tokens)) for tokens in log_probs]],
        "sample_tokens": [[[0] * len(tokens) for tokens in log_probs]],  # only their number is read
        "semantic_classes_entail": {
            "sample_to_class": {0: dict(enumerate(classes))},
            "class_to_sample": {0: members},
        },
    }


def of_state(state: np.ndarray, width: int, *, where: str) -> dict[str, Any]:
    """Return the statistic of one hidden state [D], as a batch of one, for an estimator fitted on states [n, `width`].

    Raises:
        ReaderError: The state has another width, or a number in it is not finite.
    """
    if state.shape != (width,):
        raise ReaderError(f"{where}: the state has the shape {state.shape}. Expected ({width},), as in training.")
    _check_finite("the state", state, where)
    return {"embeddings_decoder": state[np.newaxis]}


def training_states(states: np.ndarray, *, where: str) -> np.ndarray:
    """Return the states [n, D] on which a distance is fitted, after a check.

    Raises:
        UnfittedError: There are fewer than two.
        ReaderError: A number is not finite.
    """
    if states.ndim != 2 or len(states) < 2:
        raise UnfittedError(f"{where}: states of the shape {states.shape}. Expected [n, D] with at least two answers.")
    _check_finite("the states", states, where)
    return states


def _check_signs(name: str, values: np.ndarray, sign: int, where: str) -> None:
    _check_finite(name, values, where)
    if (wrong := values * sign < 0).any():
        bound = "no more than 0" if sign < 0 else "no less than 0"
        raise ReaderError(f"{where}: {name} holds {values[wrong][0]}. Expected numbers in nats of {bound}.")


def _check_finite(what: str, values: np.ndarray, where: str) -> None:
    if not (finite := np.isfinite(values)).all():
        n, first = np.count_nonzero(~finite), values[~finite][0]
        raise ReaderError(f"{where}: {n} numbers of {what} are not finite, such as {first}. Replay again.")
