"""Gemma 3 (MedGemma): Gemma3ForConditionalGeneration with its image processor, tokenizer and chat template.

The hidden states of real Gemma 3 checkpoints overflow float16, so that only float32 and bfloat16 are accepted.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.errors import ConfigError
from dualread.models.backbones.checkpoint import check_names, load, load_tokenizer
from dualread.specs.parts import Settings

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, ProcessorMixin

TOKEN_TYPES = "token_type_ids"

SETTINGS_OF = "qwen3_vl"

_IMAGE_TOKEN = "<image_soft_token>"
_SPECIAL = (
    "<pad>",
    "<eos>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
    _IMAGE_TOKEN,
)

# Renders user and model turns with text and images as the template of a released checkpoint does; nothing else.
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

# MedGemma 1.5 can start a thinking block with this token, which would use up the tokens of the completion.
_THINKING = "<unused94>"


def load_processor(checkpoint: Path, settings: Settings) -> "ProcessorMixin":
    """Load the processor of `checkpoint`; `settings` is not used, because images of Gemma 3 have a fixed size."""
    del settings
    from transformers import Gemma3ForConditionalGeneration, Gemma3ImageProcessorPil, Gemma3Processor

    tokenizer = load_tokenizer(Gemma3ForConditionalGeneration, checkpoint, _IMAGE_TOKEN)
    images = Gemma3ImageProcessorPil.from_pretrained(checkpoint)
    kwargs, _ = Gemma3Processor.get_processor_dict(checkpoint)
    return Gemma3Processor(
        images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=kwargs.get("image_seq_length", 256)
    )


def load_model(checkpoint: Path, settings: Settings) -> "PreTrainedModel":
    """Load the weights of `checkpoint` in evaluation mode.

    Raises:
        ConfigError: The dtype is float16.
        ArtifactError: The checkpoint does not hold exactly the weights of a Gemma 3 with images.
    """
    from transformers import Gemma3ForConditionalGeneration

    if settings["dtype"] == "float16":
        raise ConfigError("gemma3: dtype is float16, in which the hidden states overflow. Use float32 or bfloat16.")
    return load(Gemma3ForConditionalGeneration, checkpoint, settings)


def check(checkpoint: Path) -> None:
    """Refuse a folder that is not a complete Gemma 3 with images; no weights are read.

    Raises:
        ArtifactError: Files, tensors or the tokenizer are missing, damaged, or those of another model.
    """
    from transformers import Gemma3ForConditionalGeneration

    check_names(Gemma3ForConditionalGeneration, checkpoint)
    load_tokenizer(Gemma3ForConditionalGeneration, checkpoint, _IMAGE_TOKEN)


def create(
    texts: Sequence[str], pieces: Sequence[str], sizes: Mapping[str, int], seed: int
) -> tuple["PreTrainedModel", "ProcessorMixin"]:
    """Build a small Gemma 3 from scratch; arguments as in `dualread.models.backbones.qwen3_vl.create`."""
    import torch
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3ImageProcessorPil,
        Gemma3Processor,
    )

    from dualread.models.backbones._from_scratch import new_model, new_tokenizer, text_config

    tokenizer = new_tokenizer(
        texts,
        pieces,
        sizes,
        special=_SPECIAL,
        chat_template=_CHAT_TEMPLATE,
        eos_token="<end_of_turn>",
        pad_token="<pad>",
        bos_token="<bos>",
        add_bos_token=True,  # as released ones do, although the chat template renders the token, too
        extra_special_tokens={
            "image_token": _IMAGE_TOKEN,
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
        },
    )
    side = sizes["image_size"]
    images = Gemma3ImageProcessorPil(size={"height": side, "width": side}, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    n_image_tokens = (side // sizes["patch_size"] // 2) ** 2  # the projector pools 2 x 2 patches into one token
    text = text_config(tokenizer, sizes)
    token_ids = tokenizer.get_vocab()
    config = Gemma3Config(
        text_config={
            **text,
            "query_pre_attn_scalar": text["head_dim"],
            "sliding_window": 256,
            "bos_token_id": tokenizer.bos_token_id,
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
        image_token_index=token_ids[_IMAGE_TOKEN],
        initializer_range=0.05,
    )
    model: Any = new_model(Gemma3ForConditionalGeneration, config, tokenizer, seed)
    # The class initializes the projection with zeros, with which the language model would never see the image.
    torch.nn.init.normal_(
        model.model.multi_modal_projector.mm_input_projection_weight, std=sizes["vision_hidden_size"] ** -0.5
    )
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
    names = ("<start_of_image>", "<end_of_image>", _IMAGE_TOKEN, _THINKING)
    return [vocabulary[name] for name in names if name in vocabulary]


def encode_images(model: Any, images: Sequence[Mapping[str, "Tensor"]]) -> Callable[[Sequence[int]], dict[str, Any]]:
    """Encode each image once for all the batches that show it; see `qwen3_vl.encode_images`."""
    import torch

    pixels = torch.cat([image["pixel_values"] for image in images]).to(model.dtype)
    features = model.model.get_image_features(pixels, return_dict=True)

    def shown(index: Sequence[int]) -> dict[str, Any]:
        of_rows = features.pooler_output[torch.tensor(index, device=pixels.device)]
        return {"mm_encoder_outputs": {"image": type(features)(pooler_output=of_rows)}}

    return shown


def position_offsets(model: Any, mask: "Tensor") -> "Tensor":
    """Return zeros [rows]: the model computes positions from the columns of the batch, padding included."""
    del model
    return mask.new_zeros(len(mask))


def attention_masks(model: Any, allowed: "Tensor", distance: "Tensor") -> dict[str, "Tensor"]:
    """Return the masks of layers with and without a sliding window; see `qwen3_vl.attention_masks`."""
    window = model.config.get_text_config().sliding_window
    return {"full_attention": allowed, "sliding_attention": allowed & (distance < window)}
