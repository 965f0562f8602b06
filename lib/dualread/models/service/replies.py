"""One reply of a service: the body of a chat completion, checked against what was asked; and its log-probabilities."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualread.errors import DualReadError
from dualread.models.replay.positions import Positions, locate

_MOST_TOKENS = 2**31  # what a table holds


class ReplyError(DualReadError):
    """A reply is not what was asked for; the message says why, in a few words without a full stop."""


@dataclass(frozen=True, kw_only=True)
class Token:
    """One token: its bytes (none if it ends the turn), its log-probability in nats, and the most probable tokens in its
    place with theirs (`top`, empty if the service gives none).
    """

    content: bytes
    log_prob: float
    top: Sequence[tuple[str, float]]


@dataclass(frozen=True, kw_only=True)
class ServiceCompletion:
    """One completion; `tokens` is None if the service gives no log-probabilities."""

    text: str
    finish_reason: str
    tokens: tuple[Token, ...] | None


@dataclass(frozen=True, kw_only=True)
class ServiceReply:
    """The completions of one request, and the length of its prompt as the service counts it; 0 if it does not say."""

    choices: tuple[ServiceCompletion, ...]
    n_prompt_tokens: int


def reply_of(body: Any, *, n: int, log_probs: bool) -> ServiceReply:
    """Return the reply in the decoded `body` of a chat completion, its `n` completions in the order of their index.

    A refusal, and text that the service holds back (`content_filter`), is a completion without an answer. A ReplyError
    says what is missing (the `log_probs` of tokens, where they are needed), of another form, or contradicts itself.
    """
    if not isinstance(body, Mapping) or not isinstance(choices := body.get("choices"), list):
        raise ReplyError("is no chat completion (it has no list `choices`)")
    if len(choices) != n:
        raise ReplyError(f"has {len(choices)} choices, expected {n}")
    if n > 1:
        indices = [choice.get("index") if isinstance(choice, Mapping) else None for choice in choices]
        if sorted(indices, key=repr) != sorted(range(n), key=repr):
            raise ReplyError(f"numbers its choices {indices}, expected 0 to {n - 1}")
        choices = sorted(choices, key=lambda choice: choice["index"])
    usage = body.get("usage")
    n_prompt = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return ServiceReply(
        choices=tuple(_choice(choice, log_probs) for choice in choices),
        n_prompt_tokens=n_prompt if isinstance(n_prompt, int) and 0 < n_prompt < _MOST_TOKENS else 0,
    )


def _choice(choice: Any, log_probs: bool) -> ServiceCompletion:
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise ReplyError("has a choice without a message")
    reason, text = choice.get("finish_reason"), message.get("content")
    if text is None:
        text = message.get("refusal") or ("" if reason == "content_filter" else None)
    if not isinstance(text, str):
        raise ReplyError("has a message without text")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ReplyError("has a message that is no Unicode (it holds half a character)")
    listed = choice.get("logprobs")
    content = listed.get("content") if isinstance(listed, Mapping) else None
    tokens = _tokens(content, text) if isinstance(content, list) and content else None
    if log_probs and tokens is None and text:
        raise ReplyError("has no log-probabilities (logprobs.content); docs/given-answers.md says how to do without")
    return ServiceCompletion(text=text, finish_reason=str(reason or "stop"), tokens=tokens)


def _tokens(content: Sequence[Any], text: str) -> tuple[Token, ...]:
    try:
        tokens = [_token(entry) for entry in content]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReplyError(f"has log-probabilities of another form ({error!r})") from error
    *before, last = tokens
    # A service may list the token that ends the turn, whose text is not part of the message.
    for listed in (tokens, [*before, replace(last, content=b"")]):
        if b"".join(token.content for token in listed) == text.encode():
            return tuple(listed)
    raise ReplyError("has log-probabilities of another text than its message")


def _token(entry: Mapping[str, Any]) -> Token:
    spelled = entry.get("bytes")
    content = entry["token"].encode() if spelled is None else bytes(spelled)
    top = [(str(other["token"]), _log_prob(other["logprob"])) for other in entry.get("top_logprobs") or ()]
    return Token(content=content, log_prob=_log_prob(entry["logprob"]), top=tuple(top))


def _log_prob(value: Any) -> float:
    """Return a log-probability; services round, so that it may exceed 0 a little, and write -9999 for "very small"."""
    log_prob = float(value)
    if not math.isfinite(log_prob) or log_prob > 1e-3:
        raise ValueError(f"{log_prob} is no log-probability")
    return min(log_prob, 0.0)


def word_log_probs(choice: ServiceCompletion, words: Sequence[str]) -> tuple[Mapping[str, float], bool] | None:
    """Return the log-probability of each word as the first token, and whether a bound stands for one of them.

    The probabilities of the listed spellings are added: four letter cases, with and without a leading space, as
    `models.generation.choices` counts those that are one token. For a word that is not listed, its largest possible
    log-probability is returned: that of the least probable token of the list, or that of all tokens which are not
    listed, whichever is less. The others then get too little, never too much. None if no word is listed.
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
    """The log-probabilities of all tokens of a completion, in nats, float64 [n], and their mean over the answer's
    `positions`, float32 [1].
    """

    positions: Positions
    token_log_probs: np.ndarray
    answer_log_prob: np.ndarray


def likelihood_of(tokens: Sequence[Token], thinking_ends: str | None = None) -> Likelihood:
    """Return the likelihood of the answer in a completion of at least one token.

    Its tokens are those of a replay (`models.replay.positions`), found in the bytes of the tokens instead of their ids.
    """
    stop = {position for position, token in enumerate(tokens) if not token.content}

    def decode(positions: Sequence[int]) -> str:
        return b"".join(tokens[position].content for position in positions).decode(errors="replace")

    at = locate(range(len(tokens)), decode, stop, thinking_ends)
    log_probs = np.array([token.log_prob for token in tokens], dtype=np.float64)
    mean = log_probs[list(at.answer)].mean(keepdims=True).astype(np.float32)
    return Likelihood(positions=at, token_log_probs=log_probs, answer_log_prob=mean)
