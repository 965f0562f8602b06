"""Markup of chats and images that questions may keep from a training file, such as `<image>` or `<|im_start|>`.

A tokenizer makes control tokens of it, so that the model would see other turns and other images than those of a
question. The same rule holds wherever a question is read: whatever is a control token of the model, where one is at
hand, or markup of a known family of models, is refused. It stands by itself, because generation checks questions, too,
and must not depend on how answers are graded.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

# Markup of Qwen, InternVL, Phi, Llama 3 and others (`<|...|>`); LLaVA and others; Gemma; Llama 2 and Mistral; DeepSeek.
_KNOWN = re.compile(
    r"<\|[A-Za-z0-9_/ -]{1,40}\|>"
    r"|</?(?:image|img|video|audio|im_start|im_end|im_patch|s|bos|eos|pad|unk|mask|image_soft_token|start_of_turn"
    r"|end_of_turn|start_of_image|end_of_image|fake_token_around_image|end_of_utterance|IMG_CONTEXT|image_placeholder"
    r"|image_pad|vision_start|vision_end|unused\d+)>"
    r"|\[/?(?:INST|IMG|IMG_BREAK|IMG_END|SYSTEM_PROMPT)\]|<</?SYS>>|<\uff5c[^<>\uff5c]{1,40}\uff5c>"
)
_SHOWN = 80  # characters of a text in a message


def control_tokens(tokenizer: Any) -> list[str]:
    """Return the control tokens of a tokenizer of transformers, sorted."""
    return sorted(token.content for token in tokenizer.added_tokens_decoder.values() if token.special)


class Markup:
    """Finds the markup that is no part of a question."""

    def __init__(self, tokens: Collection[str] = ()) -> None:
        """Set the control tokens of the model; none where answers are given."""
        self._tokens = sorted(filter(None, tokens), key=len, reverse=True)
        # Some tokenizers have thousands, all of which begin with one of a few characters.
        first = sorted({re.escape(token[0]) for token in self._tokens})
        self._begins = re.compile("|".join(first))

    def first(self, text: str) -> str | None:
        """Return the first markup in a text; None if it has none."""
        known = _KNOWN.search(text)
        places = [(known.start(), known[0])] if known else []
        if self._tokens and self._begins.search(text):
            places += [(text.index(token), token) for token in self._tokens if token in text]
        return min(places, key=lambda place: place[0])[1] if places else None

    def problem(self, place: str, texts: Iterable[str]) -> str | None:
        """Return a sentence about the markup in the texts of a question at `place`; None if they have none."""
        for text in texts:
            if (control := self.first(text)) is not None:
                shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
                whose = "the model's" if control in self._tokens else "the"
                return (
                    f"{place}: the text {shown!r} contains {whose} control token {control!r}, which is no part of a"
                    " question. Remove it."
                )
        return None
