"""The head of an actor that was trained with a state signal (`training/state_signal.py`), as a confidence method.

Two logistic regressions, which the training itself has fitted, on h_pre and on h_close. The score is the mean of their
log-odds, and its sigmoid the confidence; nothing is fitted anew. An actor without a head has no such reader.
"""

from pathlib import Path

import numpy as np

from dualread.artifacts.tensors import read_tensors
from dualread.errors import UnfittedError
from dualread.readers.base import Answers, FittedReader, Scores, Weights
from dualread.readers.calibrated import scores_from_log_odds
from dualread.readers.linear import affine

FEATURES: tuple[str, ...] = ("h_pre", "h_close")
HEAD_FILE = "state_head.safetensors"  # of an actor, beside its checkpoint


def weights_of(actor: Path | None) -> Weights:
    """Return the weights of the head in the folder of an actor; an UnfittedError if it has none."""
    if actor is None or not (path := actor / HEAD_FILE).is_file():
        raise UnfittedError(f"the actor has no {HEAD_FILE}: it was trained without such a head")
    return Weights(tensors=read_tensors(path))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the mean of both log-odds as score, its sigmoid as confidence."""
    weight, bias = (reader.weights.tensors[name] for name in ("weight", "bias"))
    both = [affine(answers.features(name), weight[[k]], bias[[k]])[:, 0] for k, name in enumerate(FEATURES)]
    log_odds = np.mean(both, axis=0)
    return scores_from_log_odds(log_odds, log_odds)
