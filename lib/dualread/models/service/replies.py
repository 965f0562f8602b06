"""One reply of a service: the body of a chat completion, checked against what was asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dualread.errors import DualReadError

_MOST_TOKENS = 2**31  # what a table holds


class ReplyError(DualReadError):
    """A reply is not what was asked for; the message says why, in a few words without a full stop."""


@dataclass(frozen=True, kw_only=True)
class Token:
    """One token of a completion.

    Attributes:
        content: Its bytes; empty for a token that ends the turn.
        log_prob: Its log-probability in nats.
        top: The most probable tokens in its place, with their log-probabilities; empty if the service gives none.
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
    """What a service has replied to one request.

    Attributes:
        choices: The completions, in the order of their index.
        n_prompt_tokens: Length of the prompt, as the service counts it; 0 if it does not say.
    """

    choices: tuple[ServiceCompletion, ...]
    n_prompt_tokens: int


def reply_of(body: Any, *, n: int, log_probs: bool) -> ServiceReply:
    """Return the reply that the body of a chat completion holds.

    A refusal, and text that the service holds back (`content_filter`), is a completion without an answer.

    Args:
        body: The decoded JSON.
        n: Completions that were asked for.
        log_probs: Whether the log-probabilities of the tokens are needed.

    Raises:
        ReplyError: Something is missing, of another form, too many, or contradicts itself.
    """
    if not isinstance(body, Mapping) or not isinstance(choices := body.get("choices"), list):
        raise ReplyError("is no chat completion (it has no list `choices`)")
    if len(choices) != n:
        raise ReplyError(f"has {len(choices)} choices, expected {n}")
    indices = [choice.get("index") if isinstance(choice, Mapping) else None for choice in choices]
    if n > 1 and sorted(indices, key=repr) != sorted(range(n), key=repr):
        raise ReplyError(f"numbers its choices {indices}, expected 0 to {n - 1}")
    ordered = sorted(choices, key=lambda choice: choice["index"]) if n > 1 else choices
    usage = body.get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return ServiceReply(
        choices=tuple(_choice(choice, log_probs) for choice in ordered),
        n_prompt_tokens=counted if isinstance(counted, int) and 0 < counted < _MOST_TOKENS else 0,
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
    content = (choice.get("logprobs") or {}).get("content") if isinstance(choice.get("logprobs"), Mapping) else None
    tokens = _tokens(content, text) if isinstance(content, list) and content else None
    if log_probs and tokens is None and text:
        raise ReplyError("has no log-probabilities (logprobs.content); docs/given-answers.md says how to do without")
    return ServiceCompletion(text=text, finish_reason=str(reason or "stop"), tokens=tokens)


def _tokens(content: Sequence[Any], text: str) -> tuple[Token, ...]:
    try:
        tokens = [_token(entry) for entry in content]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReplyError(f"has log-probabilities of another form ({error!r})") from error
    expected = text.encode()
    # A service may list the token that ends the turn, whose text is not part of the message.
    if b"".join(token.content for token in tokens) != expected:
        tokens[-1] = Token(content=b"", log_prob=tokens[-1].log_prob, top=tokens[-1].top)
    if b"".join(token.content for token in tokens) != expected:
        raise ReplyError("has log-probabilities of another text than its message")
    return tuple(tokens)


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
