"""A small Qwen3-VL from scratch, with an image processor, tokenizer and chat template like those of released ones.

Its processor has no video processor (`processor`). What is saved has the settings of both, so that transformers opens
it where torchvision is.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.models.backbones.processor import without_other_media

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

_IMAGE_TOKEN = "<|image_pad|>"
_VISION = ("<|vision_start|>", "<|vision_end|>")
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *_VISION, _IMAGE_TOKEN, "<|video_pad|>")

_OF_IMAGES_AND_VIDEOS = ("patch_size", "merge_size", "temporal_patch_size", "size", "image_mean", "image_std")

# Renders user and assistant turns with text and images as the template of a released checkpoint does; nothing else.
_CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\n' -}}
{%- if message['content'] is string -%}{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- elif part['type'] == 'text' -%}{{- part['text'] -}}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"""


def create(
    texts: Sequence[str], pieces: Sequence[str], sizes: Mapping[str, int], seed: int
) -> tuple["PreTrainedModel", "ProcessorMixin"]:
    """Build a small Qwen3-VL from scratch; `seed` draws its weights.

    The tokenizer is trained on `texts`, and each of `pieces` is one token. Of the sizes, it reads vocabulary,
    hidden_size, layers, heads, key_value_heads, feed_forward, vision_hidden_size, vision_layers, vision_heads,
    patch_size, image_size (height and width in pixels), max_positions.
    """
    from transformers import Qwen2VLImageProcessorPil, Qwen3VLConfig, Qwen3VLForConditionalGeneration

    from dualread.models.backbones._from_scratch import new_model, new_tokenizer, text_config

    tokenizer = new_tokenizer(
        texts,
        pieces,
        sizes,
        special=_SPECIAL,
        chat_template=_CHAT_TEMPLATE,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(_SPECIAL),
    )
    pixels = sizes["image_size"] ** 2
    images = Qwen2VLImageProcessorPil(
        patch_size=sizes["patch_size"],
        merge_size=2,
        temporal_patch_size=2,
        size={"shortest_edge": pixels, "longest_edge": pixels},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    text = text_config(tokenizer, sizes)
    # Interleaved rotary sections for (time, height, width); they have to sum to half the width of a head.
    section = text["head_dim"] // 2 * 5 // 16
    sections = {"mrope_section": [text["head_dim"] // 2 - 2 * section, section, section], "mrope_interleaved": True}
    rotary = {"rope_type": "default", "rope_theta": 10000.0, **sections}
    token_ids = tokenizer.get_vocab()
    config = Qwen3VLConfig(
        text_config={**text, "rope_parameters": rotary, "tie_word_embeddings": True},
        vision_config={
            "depth": sizes["vision_layers"],
            "hidden_size": sizes["vision_hidden_size"],
            "intermediate_size": 2 * sizes["vision_hidden_size"],
            "num_heads": sizes["vision_heads"],
            "patch_size": sizes["patch_size"],
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": sizes["hidden_size"],
            "num_position_embeddings": (sizes["image_size"] // sizes["patch_size"]) ** 2,
            "deepstack_visual_indexes": [0, 1][: sizes["vision_layers"]],
            "initializer_range": 0.05,
        },
        image_token_id=token_ids[_IMAGE_TOKEN],
        video_token_id=token_ids["<|video_pad|>"],
        vision_start_token_id=token_ids[_VISION[0]],
        vision_end_token_id=token_ids[_VISION[1]],
        tie_word_embeddings=True,
    )
    model = new_model(Qwen3VLForConditionalGeneration, config, tokenizer, seed)
    return model, _processor(images, tokenizer)


def _processor(images: Any, tokenizer: Any) -> "ProcessorMixin":
    import transformers

    # Its name goes into the saved files, where transformers looks it up.
    class Qwen3VLProcessor(without_other_media(transformers.Qwen3VLProcessor)):
        """The processor without a video processor; it saves the settings of one."""

        def save_pretrained(self, save_directory: Any, **kwargs: Any) -> Any:
            saved = super().save_pretrained(save_directory, **kwargs)
            images = self.image_processor.to_dict()
            shared = {name: images[name] for name in _OF_IMAGES_AND_VIDEOS}
            videos = {**shared, "video_processor_type": "Qwen3VLVideoProcessor", "processor_class": type(self).__name__}
            file = Path(save_directory, "video_preprocessor_config.json")
            file.write_text(json.dumps(videos, indent=2, sort_keys=True) + "\n")
            return saved

    return Qwen3VLProcessor(images, tokenizer, chat_template=tokenizer.chat_template)
