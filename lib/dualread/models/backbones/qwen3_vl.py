"""Qwen3-VL: Qwen3VLForConditionalGeneration with its image processor, tokenizer and chat template.

The processor is assembled without its video processor. That one needs torchvision, which cannot be imported together
with a CPU build of torch. What is saved has the settings of both, so that transformers opens it where torchvision is.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.models.backbones.checkpoint import check_names, load, load_tokenizer
from dualread.specs.parts import Settings

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, ProcessorMixin

TOKEN_TYPES = "mm_token_type_ids"

SETTINGS = {
    "dtype": {"enum": ["float32", "bfloat16"]},
    "attention": {"enum": ["sdpa", "eager", "flash_attention_2"]},
    "min_pixels": {"type": "integer", "minimum": 1},
    "max_pixels": {"type": "integer", "minimum": 1},
    "max_prompt_tokens": {"type": "integer", "minimum": 1},
}

_IMAGE_TOKEN = "<|image_pad|>"
_SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    _IMAGE_TOKEN,
    "<|video_pad|>",
)

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


def load_processor(checkpoint: Path, settings: Settings) -> "ProcessorMixin":
    """Load the image processor and tokenizer of `checkpoint`; image sizes are those of `settings`, not the file's."""
    from transformers import Qwen2VLImageProcessorPil, Qwen3VLForConditionalGeneration

    tokenizer = load_tokenizer(Qwen3VLForConditionalGeneration, checkpoint, _IMAGE_TOKEN)
    images = Qwen2VLImageProcessorPil.from_pretrained(
        checkpoint, size={"shortest_edge": settings["min_pixels"], "longest_edge": settings["max_pixels"]}
    )
    return _processor(images, tokenizer)


def load_model(checkpoint: Path, settings: Settings) -> "PreTrainedModel":
    """Load the weights of `checkpoint` in `settings["dtype"]` with `settings["attention"]`, in evaluation mode.

    Raises:
        ArtifactError: The checkpoint does not hold exactly the weights of a Qwen3-VL.
    """
    from transformers import Qwen3VLForConditionalGeneration

    return load(Qwen3VLForConditionalGeneration, checkpoint, settings)


def check(checkpoint: Path) -> None:
    """Refuse a folder that is not a complete Qwen3-VL; no weights are read.

    Raises:
        ArtifactError: Files, tensors or the tokenizer are missing, damaged, or those of another model.
    """
    from transformers import Qwen3VLForConditionalGeneration

    check_names(Qwen3VLForConditionalGeneration, checkpoint)
    load_tokenizer(Qwen3VLForConditionalGeneration, checkpoint, _IMAGE_TOKEN)


def create(
    texts: Sequence[str], pieces: Sequence[str], sizes: Mapping[str, int], seed: int
) -> tuple["PreTrainedModel", "ProcessorMixin"]:
    """Build a small Qwen3-VL from scratch.

    Args:
        texts: Texts to train the tokenizer on.
        pieces: Fixed pieces of the prompts, one token each.
        sizes: vocabulary, hidden_size, layers, heads, key_value_heads, feed_forward, vision_hidden_size, vision_layers,
            vision_heads, patch_size, image_size (height and width in pixels), max_positions.
        seed: Seed of the initial weights.
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
    rotary = {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "mrope_section": [text["head_dim"] // 2 - 2 * section, section, section],
        "mrope_interleaved": True,
    }
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
        vision_start_token_id=token_ids["<|vision_start|>"],
        vision_end_token_id=token_ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )
    model = new_model(Qwen3VLForConditionalGeneration, config, tokenizer, seed)
    return model, _processor(images, tokenizer)


def image_token_id(processor: Any) -> int:
    """Return the id of `<|image_pad|>`."""
    return processor.image_token_id


def forbidden_token_ids(processor: Any) -> list[int]:
    """Return the vision control tokens: weak actors generate them, and the next forward pass would fail."""
    names = ("<|vision_start|>", "<|vision_end|>", _IMAGE_TOKEN, "<|video_pad|>")
    return [processor.tokenizer.convert_tokens_to_ids(name) for name in names]


def encode_images(model: Any, images: Sequence[Mapping[str, "Tensor"]]) -> Callable[[Sequence[int]], dict[str, Any]]:
    """Encode each image once for all the batches that show it.

    Args:
        model: A Qwen3VLForConditionalGeneration.
        images: Image inputs (pixel_values, image_grid_thw) of the distinct images.

    Returns:
        A function that takes the position in `images` of each row's image, and returns the image arguments of
        `model.model` for these rows.
    """
    import torch

    grids = [image["image_grid_thw"] for image in images]
    features = model.model.get_image_features(
        torch.cat([image["pixel_values"] for image in images]).to(model.dtype), torch.cat(grids)
    )

    def shown(index: Sequence[int]) -> dict[str, Any]:
        of_rows = type(features)(
            pooler_output=[features.pooler_output[i] for i in index],
            deepstack_features=[[layer[i] for i in index] for layer in features.deepstack_features],
        )
        # The model computes rotary positions from the image grid of each row.
        return {"mm_encoder_outputs": {"image": of_rows}, "image_grid_thw": torch.cat([grids[i] for i in index])}

    return shown


def position_offsets(model: Any, mask: "Tensor") -> "Tensor":
    """Return what to add to the column of a later token of each row to get its position [rows].

    Args:
        model: A Qwen3VLForConditionalGeneration whose last pass without a cache read these rows.
        mask: The attention mask of that pass [rows, columns].
    """
    # An image occupies fewer positions than it has tokens; the model stores the difference for each row.
    return model.model.rope_deltas[:, 0] - (mask == 0).sum(dim=1)


def attention_masks(model: Any, allowed: "Tensor", distance: "Tensor") -> "Tensor":
    """Return the attention mask of a pass in which only the pairs of tokens in `allowed` see each other.

    Args:
        model: A Qwen3VLForConditionalGeneration.
        allowed: Whether a token sees another one [rows, 1, tokens, columns].
        distance: By how many positions the other one comes before it [tokens, columns].
    """
    del model, distance
    return allowed


def _processor(images: Any, tokenizer: Any) -> "ProcessorMixin":
    import transformers
    from transformers.processing_utils import ProcessorMixin

    # Its name goes into the saved files, where transformers looks it up.
    class Qwen3VLProcessor(transformers.Qwen3VLProcessor):
        """The processor without a video processor; transformers infers the parts from the signature of __init__."""

        def __init__(
            self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None, **kwargs: Any
        ):
            self.image_token, self.video_token = _IMAGE_TOKEN, "<|video_pad|>"
            self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
            self.video_token_id = tokenizer.convert_tokens_to_ids(self.video_token)
            self.vision_start_token, self.vision_end_token = "<|vision_start|>", "<|vision_end|>"
            self.vision_start_token_id = tokenizer.convert_tokens_to_ids(self.vision_start_token)
            self.vision_end_token_id = tokenizer.convert_tokens_to_ids(self.vision_end_token)
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

        def save_pretrained(self, save_directory: Any, **kwargs: Any) -> Any:
            saved = super().save_pretrained(save_directory, **kwargs)
            images = self.image_processor.to_dict()
            shared = {name: images[name] for name in _OF_IMAGES_AND_VIDEOS}
            videos = {**shared, "video_processor_type": "Qwen3VLVideoProcessor", "processor_class": type(self).__name__}
            file = Path(save_directory, "video_preprocessor_config.json")
            file.write_text(json.dumps(videos, indent=2, sort_keys=True) + "\n")
            return saved

    return Qwen3VLProcessor(images, tokenizer, chat_template=tokenizer.chat_template)
