"""The log-probabilities of words at the first token of a reply, from the most probable tokens that a service lists."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dualread.models.service.replies import ServiceCompletion


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
