"""The parts that backbones built from scratch share: a small byte-level BPE tokenizer, and the language model's sizes.

The tokenizer differs from that of a checkpoint in two ways, which keep the model small and its sequences short. Every
fixed piece of a prompt template is one token, because a model that only sees eight templates gains nothing from reading
their words; so is every tag of an answer. And every digit is a token.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

# Words include their leading space, every digit is separate, and line breaks end a run of punctuation.
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# vLLM looks up runs of one to four line breaks as tokens of a Gemma vocabulary; the roles are those of chat templates.
_TURNS = ["\n", "\n\n", "\n\n\n", "\n\n\n\n", "user", "assistant", "model"]
_VERDICTS = ["Yes", "No"]  # have to be single tokens, because their probabilities as the next token are compared


def new_tokenizer(
    texts: Iterable[str],
    pieces: Sequence[str],
    sizes: Mapping[str, int],
    *,
    special: Sequence[str],
    chat_template: str,
    **names: Any,
) -> "PreTrainedTokenizerFast":
    """Return a tokenizer that is trained on `texts` and pads on the left; each of `pieces` is one token.

    Of the sizes, it reads vocabulary (the learned tokens, control tokens among them) and max_positions. Control tokens
    (`special`) have the first ids; `names` are their roles, such as eos_token and pad_token.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(_WORDS), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=sizes["vocabulary"],
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([*texts, *_TURNS * 100, *_VERDICTS * 10_000], trainer)
    made.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in pieces])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, padding_side="left", model_max_length=sizes["max_positions"], **names
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def text_config(tokenizer: "PreTrainedTokenizerFast", sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the sizes and token ids in the configuration of the language model, for both architectures."""
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
    """Return a model whose weights are drawn with `seed`, and which stops at the tokenizer's end-of-turn token."""
    import torch

    torch.manual_seed(seed)  # transformers draws initial weights from the global generator; nothing else here uses it
    model = model_class(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model
