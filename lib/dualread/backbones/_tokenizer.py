"""A small byte-level BPE tokenizer for backbones that are built from scratch.

Two things differ from a checkpoint's tokenizer, both to keep sequences short on two cores. Every fixed piece of a
prompt template is one token: a model that has only ever seen eight templates has nothing to read in their words. And
digits are single tokens, so that a stated confidence is two or three of them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

# Words keep their leading space, digits stand alone, line breaks end a run of punctuation.
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def train_tokenizer(corpus: Iterable[str], *, pieces: Sequence[str], special: Sequence[str], vocab_size: int) -> Any:
    """Return a `tokenizers.Tokenizer` with `vocab_size` learned tokens, then one token per fixed prompt piece.

    Args:
        corpus: Questions and completions to learn merges from.
        pieces: Fixed strings that become one token each wherever they occur.
        special: Control tokens; they take the first ids.
        vocab_size: Learned tokens, special ones included.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # vLLM looks up runs of one to four line breaks as tokens of a Gemma vocabulary.
    line_breaks = ["\n" * n for n in (1, 2, 3, 4)]
    turns = ["user", "assistant", "model"]  # roles of the chat templates
    tokenizer.train_from_iterator([*corpus, *[*line_breaks, *turns] * 100], trainer)
    tokenizer.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in pieces])
    return tokenizer
