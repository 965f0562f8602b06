"""A small Gemma 3 from scratch, with an image processor, tokenizer and chat template like those of released ones."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dualread.models.backbones.processor import without_other_media

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

_IMAGE_TOKEN = "<image_soft_token>"
_TURN, _IMAGE = ("<start_of_turn>", "<end_of_turn>"), ("<start_of_image>", "<end_of_image>")
_SPECIAL = ("<pad>", "<eos>", "<bos>", *_TURN, *_IMAGE, _IMAGE_TOKEN)

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


def create(
    texts: Sequence[str], pieces: Sequence[str], sizes: Mapping[str, int], seed: int
) -> tuple["PreTrainedModel", "ProcessorMixin"]:
    """Build a small Gemma 3 from scratch; arguments as in `dualread.models.backbones.qwen3_vl.create`."""
    import torch
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3ImageProcessorPil, Gemma3Processor

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
        extra_special_tokens={"image_token": _IMAGE_TOKEN, "boi_token": _IMAGE[0], "eoi_token": _IMAGE[1]},
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
        boi_token_index=token_ids[_IMAGE[0]],
        eoi_token_index=token_ids[_IMAGE[1]],
        image_token_index=token_ids[_IMAGE_TOKEN],
        initializer_range=0.05,
    )
    model: Any = new_model(Gemma3ForConditionalGeneration, config, tokenizer, seed)
    # The class initializes the projection with zeros, with which the language model would never see the image.
    torch.nn.init.normal_(
        model.model.multi_modal_projector.mm_input_projection_weight, std=sizes["vision_hidden_size"] ** -0.5
    )
    processor = without_other_media(Gemma3Processor)(
        images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=n_image_tokens
    )
    return model, processor
