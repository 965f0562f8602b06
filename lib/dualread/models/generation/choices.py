"""Choices that a view weighs: words behind a prompt, or integers in the place of a stated confidence.

A kind of choices is a function of this file that the config names: {"words": [...]} or {"integers": [low, high]}.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dualread.errors import ConfigError, did_you_mean
from dualread.grading.spans import character_spans, tokens_within

_OPEN, _CLOSE = "<confidence>", "</confidence>"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What is weighed behind one prompt.

    Attributes:
        prefix: Completion ids that stand behind the prompt already.
        variants: For each choice the id sequences that count as it; their probabilities are added.
    """

    prefix: tuple[int, ...]
    variants: Mapping[str, Sequence[Sequence[int]]]


def choices_of(
    wanted: Mapping[str, Sequence[Any]], tokenizer: Any, completion: Sequence[int], stop: Collection[int]
) -> Choices:
    """Return the choices that a view's config entry wants.

    Args:
        wanted: One key, `words` or `integers`, with its arguments.
        tokenizer: The checkpoint's.
        completion: Ids of the committed completion.
        stop: Ids that end a turn.

    Raises:
        ConfigError: The kind is unknown, or a word has no variant that is a single token.
    """
    [(kind, arguments)] = wanted.items()
    if kind == "words":
        return Choices(prefix=(), variants={word: _single_tokens(tokenizer, word) for word in arguments})
    if kind == "integers":
        return stated_integers(tokenizer, completion, stop, *arguments)
    meant = did_you_mean(kind, ("integers", "words"))
    raise ConfigError(f"views: choices: {kind!r} is unknown. Known: integers, words.{meant}")


def _single_tokens(tokenizer: Any, word: str) -> list[list[int]]:
    """Return the variants of `word` in letter case, with and without a space before it, that are one token."""
    spelled = dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))
    encoded = [
        tokenizer(space + text, add_special_tokens=False)["input_ids"] for space in ("", " ") for text in spelled
    ]
    found = [list(ids) for ids in dict.fromkeys(tuple(ids) for ids in encoded) if len(ids) == 1]
    if not found:
        raise ConfigError(
            f"views: choices: words: {word!r} is no single token of this vocabulary. Choose another word."
        )
    return found


def stated_integers(tokenizer: Any, completion: Sequence[int], stop: Collection[int], low: int, high: int) -> Choices:
    """Return every integer in [low, high] as the confidence that `completion` could have stated (PROTOCOL 2).

    What stands behind `<confidence>` is replaced by each integer and the first token of `</confidence>`, without which
    1 would have the probability of 1, 10 and 100 together. A completion without the tag gets it appended. Right
    whether a vocabulary splits 100 into digits or not, and whether or not the tag's last token holds more than the tag.
    """

    def decode(ids: Sequence[int]) -> str:
        return tokenizer.decode(ids, skip_special_tokens=True)

    ids = [token for token in completion if token not in stop]
    text, spans = character_spans(ids, decode)
    at = text.find(_OPEN)
    if at < 0:
        prefix, begun = (*ids, *tokenizer(_OPEN, add_special_tokens=False)["input_ids"]), ""
    else:
        start = at + len(_OPEN)
        kept = sum(right <= start for _, right in spans)
        prefix, begun = tuple(ids[:kept]), text[spans[kept - 1][1] if kept else 0 : start]
    return Choices(prefix=prefix, variants=_integers(tokenizer, begun, low, high))


@lru_cache(maxsize=16)  # the same for nearly all completions
def _integers(tokenizer: Any, begun: str, low: int, high: int) -> Mapping[str, Sequence[Sequence[int]]]:
    """Return the ids of each integer, behind the characters of a token that the tag has `begun`, and of its end."""
    variants = {}
    for number in map(str, range(low, high + 1)):
        ids = tokenizer(f"{begun}{number}{_CLOSE}", add_special_tokens=False)["input_ids"]
        _, spans = character_spans(ids, lambda part: tokenizer.decode(part, skip_special_tokens=True))
        end = len(begun) + len(number)
        variants[number] = [ids[: tokens_within(spans, end, end + len(_CLOSE))[0] + 1]]
    return variants
