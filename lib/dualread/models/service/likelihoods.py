"""The likelihood of a given answer: the mean log-probability of its tokens, as a replay computes it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dualread.models.replay.positions import Positions, locate
from dualread.models.service.replies import Token


@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """The likelihood of an answer.

    Attributes:
        positions: Its tokens in the completion.
        token_log_probs: Of all tokens of the completion, in nats, float64 [n].
        answer_log_prob: Mean over the answer's tokens, float32 [1].
    """

    positions: Positions
    token_log_probs: np.ndarray
    answer_log_prob: np.ndarray


def likelihood_of(tokens: Sequence[Token]) -> Likelihood:
    """Return the likelihood of the answer in a completion of at least one token.

    Its tokens are those of a replay (`models.replay.positions`), found in the bytes of the tokens instead of their ids.
    """
    stop = {position for position, token in enumerate(tokens) if not token.content}

    def decode(positions: Sequence[int]) -> str:
        return b"".join(tokens[position].content for position in positions).decode(errors="replace")

    at = locate(range(len(tokens)), decode, stop)
    log_probs = np.array([token.log_prob for token in tokens], dtype=np.float64)
    mean = log_probs[list(at.answer)].mean(keepdims=True).astype(np.float32)
    return Likelihood(positions=at, token_log_probs=log_probs, answer_log_prob=mean)
