"""The choices that a view scores: words after a prompt, integers in place of a stated confidence, or options in place
of an answer.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.answers import character_spans, tokens_within
from dualread.grading.parse import text_after_thinking
from dualread.models.actor import AnsweringActor, Request
from dualread.schema import answers


@dataclass(frozen=True, kw_only=True)
class ChoicesAfterPrompt:
    """The choices that are scored after one prompt and the ids `prefix` of a completion.

    Each of the `variants` of a choice counts as this choice; their probabilities are added.
    """

    prefix: tuple[int, ...]
    variants: Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True, kw_only=True)
class ScoredChoices:
    """The log-probability of each choice in nats, over all its variants, and the length of its prompt in tokens."""

    log_probs: Mapping[str, float]
    n_prompt_tokens: int


def score_choices(
    actor: AnsweringActor,
    requests: Sequence[Request],
    committed: Sequence[Sequence[int]],
    wanted: answers.Choices,
    thinking_ends: str | None = None,
    named: Sequence[Mapping[str, str] | None] = (),
) -> list[ScoredChoices]:
    """Score the choices that a view asks for after each request, which has no prefix; see `choices_of`.

    `committed` are the ids of the completion that each request is about, and `named` the choices of each question.
    """
    choices = [
        choices_of(wanted, actor.encoder.tokenizer, ids, actor.encoder.stop, thinking_ends, of_question)
        for ids, of_question in zip(committed, named or [None] * len(committed), strict=True)
    ]
    after = [replace(request, prefix=encoded.prefix) for request, encoded in zip(requests, choices, strict=True)]
    continuations = [[ids for variants in encoded.variants.values() for ids in variants] for encoded in choices]
    scored = []
    for encoded, likelihoods in zip(choices, actor.loglikelihoods(after, continuations), strict=True):
        values = iter(likelihoods.values)  # of the variants of all choices, one after the other
        log_probs = {
            choice: float(np.logaddexp.reduce([next(values) for _ in ids])) for choice, ids in encoded.variants.items()
        }
        scored.append(ScoredChoices(log_probs=log_probs, n_prompt_tokens=len(likelihoods.prompt_token_ids)))
    return scored


def choices_of(
    wanted: answers.Choices,
    tokenizer: Any,
    completion: Sequence[int],
    stop: Collection[int],
    thinking_ends: str | None = None,
    named: Mapping[str, str] | None = None,
) -> ChoicesAfterPrompt:
    """Return the choices that a view asks for; `named` are those of the question, if the view asks for them.

    `completion` holds the ids of the committed completion, and `stop` those that end a turn; `thinking_ends` is what
    ends its thinking, None where completions do not think.
    """
    if wanted.integers is not None:
        integers = [str(number) for number in range(wanted.integers[0], wanted.integers[1] + 1)]
        named = dict(zip(integers, integers, strict=True))
    if named is not None:
        tag = "answer" if wanted.options else "confidence"
        return _in_block(tag, named, tokenizer, completion, stop, thinking_ends)
    return ChoicesAfterPrompt(
        prefix=(), variants={word: _single_tokens(tokenizer, word) for word in wanted.words or ()}
    )


def _single_tokens(tokenizer: Any, word: str) -> list[list[int]]:
    """Return the spellings of `word` that are one token: in four letter cases, with and without a leading space."""
    spelled = dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))
    encoded = [_inside(tokenizer, space + text) for space in ("", " ") for text in spelled]
    singles = [list(ids) for ids in dict.fromkeys(tuple(ids) for ids in encoded) if len(ids) == 1]
    if not singles:
        raise ConfigError(
            f"views: choices: words: {word!r} is not a single token of this vocabulary in any spelling, expected a word"
            " that is one. Choose another word."
        )
    return singles


def _in_block(
    tag: str,
    named: Mapping[str, str],
    tokenizer: Any,
    completion: Sequence[int],
    stop: Collection[int],
    thinking_ends: str | None = None,
) -> ChoicesAfterPrompt:
    """Return texts, by name, as what the block <tag> of `completion` could have held.

    Everything after `<tag>` is replaced by the text, with its first letter in either case, and the first token of
    `</tag>`. Without that token, the probability of 1 would include those of 10 and 100. If the completion has no
    `<tag>`, it is appended. The result is correct whether or not the vocabulary splits 100 into digits, and whether or
    not the last token of the tag holds further characters. See docs/choices.md, "Base".
    """

    def decode(ids: Sequence[int]) -> str:
        return tokenizer.decode(ids, skip_special_tokens=True)

    ids, opening = [token for token in completion if token not in stop], f"<{tag}>"
    text, spans = character_spans(ids, decode)
    at = text.find(opening, len(text) - len(text_after_thinking(text, thinking_ends) or ""))
    if at < 0:
        prefix, tag_end = (*ids, *_inside(tokenizer, opening)), ""
    else:
        start = at + len(opening)
        kept = sum(right <= start for _, right in spans)
        prefix, tag_end = tuple(ids[:kept]), text[spans[kept - 1][1] if kept else 0 : start]
    return ChoicesAfterPrompt(prefix=prefix, variants=_variants(tokenizer, tag_end, tuple(named.items()), f"</{tag}>"))


@lru_cache(maxsize=64)  # nearly all completions have the same `tag_end`
def _variants(
    tokenizer: Any, tag_end: str, named: Sequence[tuple[str, str]], closing: str
) -> Mapping[str, Sequence[Sequence[int]]]:
    """Return each text's ids up to the closing tag; `tag_end` ends the opening tag where it shares their token."""
    variants: dict[str, list[list[int]]] = {}
    for name, text in named:
        for spelled in dict.fromkeys((text, text[:1].upper() + text[1:], text[:1].lower() + text[1:])):
            ids = _inside(tokenizer, f"{tag_end}{spelled}{closing}")
            _, spans = character_spans(ids, lambda part: tokenizer.decode(part, skip_special_tokens=True))
            end = len(tag_end) + len(spelled)
            variants.setdefault(name, []).append(ids[: tokens_within(spans, end, end + len(closing))[0] + 1])
    return variants


def _inside(tokenizer: Any, text: str) -> list[int]:
    """Return the ids that `text` has after other text. Alone, many a tokenizer puts a space before it."""
    before, both, alone = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in ("\n", "\n" + text, text))
    return both[len(before) :] if before and both[: len(before)] == before else alone
