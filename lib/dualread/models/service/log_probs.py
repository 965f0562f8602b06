"""What the log-probabilities of a reply say: of words as its first token, and of the answer in it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dualread.models.replay.positions import Positions, locate
from dualread.models.service.replies import ServiceCompletion, Token


def word_log_probs(choice: ServiceCompletion, words: Sequence[str]) -> tuple[Mapping[str, float], bool] | None:
    """Return the log-probability of each word as the first token, and whether a bound stands for one of them.

    The probabilities of the listed spellings are added: four letter cases, with and without a leading space, as
    `models.generation.choices` counts those that are one token. For a word that is not listed, its largest possible
    log-probability is returned: that of the least probable token of the list, or that of all tokens which are not
    listed, whichever is less. The other words then get too little of the probability, never too much.

    Returns:
        None if none of the words is listed.
    """
    if not choice.tokens:
        return None
    first = choice.tokens[0]
    listed = dict(first.top) or {first.content.decode(errors="replace"): first.log_prob}
    log_probs: dict[str, float | None] = {}
    for word in words:
        spelled = dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))
        parts = [listed[form] for space in ("", " ") for text in spelled if (form := space + text) in listed]
        log_probs[word] = float(np.logaddexp.reduce(parts)) if parts else None
    if all(value is None for value in log_probs.values()):
        return None
    rest = 1.0 - sum(math.exp(value) for value in listed.values())
    bound = min(min(listed.values()), math.log(rest) if rest > 0 else 0.0)
    return {word: bound if value is None else value for word, value in log_probs.items()}, None in log_probs.values()


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
