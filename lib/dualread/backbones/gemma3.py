"""Gemma 3 (MedGemma): Gemma3ForConditionalGeneration with its image processor, tokenizer and chat template.

Hidden states of real Gemma 3 checkpoints overflow float16: only float32 and bfloat16 are accepted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, ProcessorMixin

TOKEN_TYPES = "token_type_ids"

_SPECIAL = (
    "<pad>",
    "<eos>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
    "<image_soft_token>",
)

# What the checkpoint's own template renders for user and model turns with text and images, and nothing else.
_CHAT_TEMPLATE = """\
{{- bos_token -}}
{%- for message in messages -%}
{%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
{{- '<start_of_turn>' + role + '\n' -}}
{%- if message['content'] is string -%}{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{- '<start_of_image>' -}}
{%- elif part['type'] == 'text' -%}{{- part['text'] -}}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<end_of_turn>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}"""

# MedGemma 1.5 may open a thinking block with this token; it would eat the completion's budget.
_THINKING = "<unused94>"


def load_processor(checkpoint: Path, settings: Mapping[str, Any]) -> "ProcessorMixin":
    """Load the processor of `checkpoint`; Gemma 3 images have one fixed size, so `settings` changes nothing here."""
    del settings
    from transformers import AutoTokenizer, Gemma3ImageProcessorPil, Gemma3Processor

    tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
    images = Gemma3ImageProcessorPil.from_pretrained(checkpoint)
    kwargs, _ = Gemma3Processor.get_processor_dict(checkpoint)
    return Gemma3Processor(
        images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=kwargs.get("image_seq_length", 256)
    )


def load_model(checkpoint: Path, settings: Mapping[str, Any]) -> "PreTrainedModel":
    """Load the weights of `checkpoint` in evaluation mode.

    Raises:
        ConfigError: The dtype is float16.
    """
    from transformers import Gemma3ForConditionalGeneration
    from transformers.utils import logging

    logging.disable_progress_bar()  # a bar a checkpoint says nothing in a log
    if settings["dtype"] == "float16":
        raise ConfigError("gemma3: dtype float16 overflows in the hidden states; use float32 or bfloat16.")
    return Gemma3ForConditionalGeneration.from_pretrained(
        checkpoint, dtype=settings["dtype"], attn_implementation=settings["attention"]
    ).eval()


def create(
    corpus: Sequence[str], pieces: Sequence[str], sizes: Mapping[str, int], seed: int
) -> tuple["PreTrainedModel", "ProcessorMixin"]:
    """Build a small Gemma 3 from scratch; arguments as in `dualread.backbones.qwen3_vl.create`."""
    import torch
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3ImageProcessorPil,
        Gemma3Processor,
        PreTrainedTokenizerFast,
    )

    from dualread.backbones._tokenizer import train_tokenizer

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=train_tokenizer(corpus, pieces=pieces, special=_SPECIAL, vocab_size=sizes["vocabulary"]),
        eos_token="<end_of_turn>",
        pad_token="<pad>",
        bos_token="<bos>",
        padding_side="left",
        model_max_length=sizes["max_positions"],
        extra_special_tokens={
            "image_token": "<image_soft_token>",
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
        },
    )
    tokenizer.chat_template = _CHAT_TEMPLATE
    side = sizes["image_size"]
    images = Gemma3ImageProcessorPil(size={"height": side, "width": side}, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    n_image_tokens = (side // sizes["patch_size"] // 2) ** 2  # the projector pools 2 x 2 patches into one token
    token_ids = tokenizer.get_vocab()
    head = sizes["hidden_size"] // sizes["heads"]
    config = Gemma3Config(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": sizes["hidden_size"],
            "intermediate_size": sizes["feed_forward"],
            "num_hidden_layers": sizes["layers"],
            "num_attention_heads": sizes["heads"],
            "num_key_value_heads": sizes["key_value_heads"],
            "head_dim": head,
            "query_pre_attn_scalar": head,
            "max_position_embeddings": sizes["max_positions"],
            "sliding_window": 256,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "initializer_range": 0.05,
            "layer_types": ["full_attention" if i % 2 else "sliding_attention" for i in range(sizes["layers"])],
        },
        vision_config={
            "model_type": "siglip_vision_model",
            "hidden_size": sizes["vision_hidden_size"],
            "intermediate_size": 2 * sizes["vision_hidden_size"],
            "num_hidden_layers": sizes["vision_layers"],
            "num_attention_heads": sizes["vision_heads"],
            "image_size": side,
            "patch_size": sizes["patch_size"],
            "vision_use_head": False,
        },
        mm_tokens_per_image=n_image_tokens,
        boi_token_index=token_ids["<start_of_image>"],
        eoi_token_index=token_ids["<end_of_image>"],
        image_token_index=token_ids["<image_soft_token>"],
        initializer_range=0.05,
    )
    torch.manual_seed(seed)  # transformers initializes from the global generator; nothing else does
    model = Gemma3ForConditionalGeneration(config)
    # Left at zero by the class, the projection would hide the image from the language model for good.
    torch.nn.init.normal_(
        model.model.multi_modal_projector.mm_input_projection_weight, std=sizes["vision_hidden_size"] ** -0.5
    )
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    processor = Gemma3Processor(
        images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=n_image_tokens
    )
    return model, processor


def image_token_id(processor: Any) -> int:
    """Return the id of `<image_soft_token>` (the processor's own `image_token_id` is `<start_of_image>`)."""
    return processor.tokenizer.image_token_id


def forbidden_token_ids(processor: Any) -> list[int]:
    """Return the image control tokens and the token that would open a thinking block."""
    vocabulary = processor.tokenizer.get_vocab()
    names = ("<start_of_image>", "<end_of_image>", "<image_soft_token>", _THINKING)
    return [vocabulary[name] for name in names if name in vocabulary]


def share_images(model: Any, images: Sequence[Mapping[str, "Tensor"]], index: Sequence[int]) -> dict[str, Any]:
    """Run the vision tower once per image and deal its features to rows; see `qwen3_vl.share_images`."""
    import torch

    pixels = torch.cat([image["pixel_values"] for image in images]).to(model.dtype)
    features = model.model.get_image_features(pixels, return_dict=True)
    features.pooler_output = features.pooler_output[torch.tensor(index, device=pixels.device)]
    return {"mm_encoder_outputs": {"image": features}}
