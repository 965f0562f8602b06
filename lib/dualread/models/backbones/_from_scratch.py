"""What backbones built from scratch share: a small byte-level BPE tokenizer, and the sizes of the language model.

Two things differ from a checkpoint's tokenizer, both to keep sequences short on two cores. Every fixed piece of a
prompt template is one token: a model that has only ever seen eight templates has nothing to read in their words. And
digits are single tokens, so that a stated confidence is two or three of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

# Words keep their leading space, digits stand alone, line breaks end a run of punctuation.
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def new_tokenizer(
    corpus: Iterable[str],
    pieces: Sequence[str],
    sizes: Mapping[str, int],
    *,
    special: Sequence[str],
    chat_template: str,
    **names: Any,
) -> "PreTrainedTokenizerFast":
    """Return a tokenizer learned from `corpus`, padded on the left, with `chat_template`.

    Args:
        corpus: Questions and completions to learn merges from.
        pieces: Fixed prompt pieces, one token each.
        sizes: vocabulary (learned tokens, special ones included), max_positions.
        special: Control tokens; they take the first ids.
        chat_template: Jinja template of the checkpoint's family.
        names: Which control token plays which part: eos_token, pad_token, ...
    """
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_train(corpus, pieces=pieces, special=special, vocab_size=sizes["vocabulary"]),
        padding_side="left",
        model_max_length=sizes["max_positions"],
        **names,
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def text_config(tokenizer: "PreTrainedTokenizerFast", sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return what the language models of both architectures are told about sizes and token ids."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": sizes["hidden_size"],
        "intermediate_size": sizes["feed_forward"],
        "num_hidden_layers": sizes["layers"],
        "num_attention_heads": sizes["heads"],
        "num_key_value_heads": sizes["key_value_heads"],
        "head_dim": sizes["hidden_size"] // sizes["heads"],
        "max_position_embeddings": sizes["max_positions"],
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "initializer_range": 0.05,
    }


def new_model(model_class: Any, config: Any, tokenizer: "PreTrainedTokenizerFast", seed: int) -> "PreTrainedModel":
    """Return a model with weights drawn from `seed` that stops at the tokenizer's end-of-turn token."""
    import torch

    torch.manual_seed(seed)  # transformers initializes from the global generator; nothing else does
    model = model_class(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def _train(corpus: Iterable[str], *, pieces: Sequence[str], special: Sequence[str], vocab_size: int) -> Any:
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
    verdicts = ["Yes", "No"]  # weighed against each other as first tokens
    tokenizer.train_from_iterator([*corpus, *[*line_breaks, *turns] * 100, *verdicts * 10_000], trainer)
    tokenizer.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in pieces])
    return tokenizer
