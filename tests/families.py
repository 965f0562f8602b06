"""Tiny checkpoints of other architectures, with random weights, or with what a few steps of pretraining teach them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from dualread.models import prompts
from dualread.models.actor import Request
from dualread.models.backbones._from_scratch import new_tokenizer
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.backbones.processor import without_other_media
from dualread.schema.backbones import Pretraining
from dualread.schema.recorded import USUAL, Facts
from dualread.training.corpora import phantom
from dualread.training.pretraining import loop
from dualread.training.pretraining.exercises import TAGS
from tests.tiny import TEXTS, image

NORM: dict[str, Any] = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
SETTINGS = {"dtype": "float32", "attention": "sdpa", "max_prompt_tokens": 500}
TRAINING = Pretraining(
    steps=80,
    images_per_step=8,
    questions_per_image=1,
    learning_rate=0.01,
    warmup_steps=5,
    weight_decay=0.05,
    clip_norm=1.0,
    mixture={"shared": 1.0},
)
TURNS = (
    "{{%- for m in messages -%}}{{{{- '<|im_start|>' + m['role'] + '\\n' -}}}}{{%- if m['content'] is string -%}}"
    "{{{{- m['content'] -}}}}{{%- else -%}}{{%- for p in m['content'] -%}}{{%- if p['type'] == 'image' -%}}"
    "{{{{- '{image}' -}}}}{{%- elif p['type'] == 'text' -%}}{{{{- p['text'] -}}}}{{%- endif -%}}{{%- endfor -%}}"
    "{{%- endif -%}}{{{{- '<|im_end|>\\n' -}}}}{{%- endfor -%}}"
    "{{%- if add_generation_prompt -%}}{{{{- '<|im_start|>assistant\\n' -}}}}{{%- endif -%}}"
)
CHAT = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ENDS: dict[str, Any] = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}


Create = Callable[["Scale"], tuple[Any, Any]]  # a model and its processor


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What a tokenizer learns from, texts that are one token each, and the sizes of the language model."""

    texts: Sequence[str] = tuple(TEXTS)
    pieces: Sequence[str] = ()
    vocabulary: int = 400
    width: int = 32
    layers: int = 4
    heads: int = 2


def build(name: str, folder: Path) -> Path:
    """Write the checkpoint `name` of `FAMILIES`, whose weights are large enough that a dropped input shows."""
    return write({**FAMILIES, **REFUSED}[name], folder)


def write(create: Create, folder: Path) -> Path:
    """Write a checkpoint with large random weights."""
    torch.manual_seed(0)
    model, processor = create(Scale())
    with torch.no_grad():
        for weight_name, weight in model.named_parameters():
            if weight.dim() >= 2 and "norm" not in weight_name and "patch" not in weight_name:
                weight.normal_(0, 0.15)
    return _save(model, processor, folder)


def pretrain(create: Create, folder: Path, facts: Facts = USUAL) -> Path:
    """Write a checkpoint that was pretrained until some of its answers about phantoms are right."""
    torch.set_num_threads(1)
    corpus = phantom.open_corpus(phantom.Settings(n_images=50, held_out=1, size=64), None, 0)
    pieces = (*prompts.fixed_pieces(prompts.names()), *TAGS)
    torch.manual_seed(0)
    texts = loop.tokenizer_texts(corpus, 0)
    scale = Scale(texts=texts, pieces=pieces, vocabulary=640, width=96, layers=2, heads=6)
    model, processor = create(scale)
    opened = open_checkpoint(_save(model, processor, folder), SETTINGS, facts)
    loop.pretrain(opened.model, opened.encoder, corpus, TRAINING, seed=0)
    opened.model.save_pretrained(folder)
    return folder


def _save(model: Any, processor: Any, folder: Path) -> Path:
    tokenizer = processor.tokenizer
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def tokenizer_of(
    scale: Scale, special: Sequence[str], template: str | None, *, adds_bos: bool = False, **names: Any
) -> Any:
    sizes = {"vocabulary": scale.vocabulary, "max_positions": 2048}
    tokenizer = new_tokenizer(scale.texts, scale.pieces, sizes, special=special, chat_template=template or "", **names)
    if adds_bos:
        from tokenizers.processors import TemplateProcessing

        bos = tokenizer.bos_token
        processing = TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.bos_token_id)])
        tokenizer.backend_tokenizer.post_processor = processing
    tokenizer.chat_template = template
    return tokenizer


def text_of(scale: Scale, tokenizer: Any, **more: Any) -> dict[str, Any]:
    heads = {"num_attention_heads": scale.heads, "num_key_value_heads": scale.heads // 2, "head_dim": 16}
    sizes = {"hidden_size": scale.width, "intermediate_size": 3 * scale.width // 2, "num_hidden_layers": scale.layers}
    sizes |= {"max_position_embeddings": 2048, "initializer_range": 0.05}
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")}
    return {**heads, **sizes, **ids, "vocab_size": len(tokenizer) + 8, "tie_word_embeddings": True, **more}


def vision_of(**more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2}
    return {**sizes, "image_size": 32, "patch_size": 8, **more}


def processor_of(kind: Any, images: Any, tokenizer: Any, **more: Any) -> Any:
    return without_other_media(kind)(
        image_processor=images, tokenizer=tokenizer, chat_template=tokenizer.chat_template, **more
    )


def _qwen2_5_vl(scale: Scale) -> tuple[Any, Any]:
    kinds = (transformers.Qwen2_5_VLConfig, transformers.Qwen2_5_VLForConditionalGeneration)
    return _qwen(
        scale,
        (*kinds, transformers.Qwen2_5_VLProcessor),
        vision={"intermediate_size": 48, "window_size": 32, "fullatt_block_indexes": [1]},
    )


def _qwen(
    scale: Scale,
    kinds: tuple[type, type, type],
    *,
    vision: dict[str, Any],
    rotary: dict[str, Any] | None = None,
    text: dict[str, Any] | None = None,
) -> tuple[Any, Any]:
    """Return a model and its processor, given the classes of its config, of the model, and of the processor."""
    special = (*CHAT, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    image = "<|vision_start|><|image_pad|><|vision_end|>"
    tokenizer = tokenizer_of(scale, special, TURNS.format(image=image), **ENDS)
    ids = tokenizer.get_vocab()
    positions = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2], **(rotary or {})}
    tower = {"depth": 2, "hidden_size": 32, "out_hidden_size": scale.width, "num_heads": 2}
    tower |= {"patch_size": 8, "spatial_merge_size": 2, "temporal_patch_size": 2}
    config_class, model_class, processor_class = kinds
    config = config_class(
        text_config=text_of(scale, tokenizer, rope_parameters=positions, **(text or {})),
        vision_config={**tower, **vision},
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )
    size = {"shortest_edge": 1024, "longest_edge": 4096}
    images = transformers.Qwen2VLImageProcessorPil(patch_size=8, merge_size=2, temporal_patch_size=2, size=size, **NORM)
    return model_class(config), processor_of(processor_class, images, tokenizer)


def _internvl(scale: Scale) -> tuple[Any, Any]:
    named = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"}
    named["video_token"] = "<video>"
    template = TURNS.format(image="<IMG_CONTEXT>\\n")
    tokenizer = tokenizer_of(scale, (*CHAT, *named.values()), template, extra_special_tokens=named, **ENDS)
    config = transformers.InternVLConfig(
        text_config={"model_type": "qwen2", **text_of(scale, tokenizer)},
        vision_config=vision_of(image_size=[32, 32], patch_size=[8, 8], num_hidden_layers=2),
        image_token_id=tokenizer.get_vocab()["<IMG_CONTEXT>"],
        image_seq_length=4,
        downsample_ratio=0.5,
        tie_word_embeddings=True,
    )
    images = transformers.GotOcr2ImageProcessorPil(
        size={"height": 32, "width": 32}, crop_to_patches=True, min_patches=1, max_patches=4, **NORM
    )
    model = transformers.InternVLForConditionalGeneration(config)
    return model, processor_of(transformers.InternVLProcessor, images, tokenizer, image_seq_length=4)


def _llava(scale: Scale) -> tuple[Any, Any]:
    """BOS comes from the tokenizer alone, as in LLaVA 1.5."""
    special = ("<unk>", "<s>", "</s>", "<pad>", "<image>", "<|im_start|>", "<|im_end|>")
    names: dict[str, Any] = {"eos_token": "</s>", "pad_token": "<pad>", "bos_token": "<s>"}
    named = {"image_token": "<image>"}
    template = TURNS.format(image="<image>\\n")
    tokenizer = tokenizer_of(scale, special, template, adds_bos=True, extra_special_tokens=named, **names)
    config = transformers.LlavaConfig(
        text_config={"model_type": "llama", **text_of(scale, tokenizer)},
        vision_config=vision_of(model_type="clip_vision_model", projection_dim=32),
        image_token_index=tokenizer.get_vocab()["<image>"],
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
        tie_word_embeddings=True,
    )
    images = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, **NORM
    )
    of_processor = {"patch_size": 8, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    model = transformers.LlavaForConditionalGeneration(config)
    return model, processor_of(transformers.LlavaProcessor, images, tokenizer, **of_processor)


def _idefics3(scale: Scale) -> tuple[Any, Any]:
    """An image is split into tiles, whose number depends on its size."""
    tiles = [f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)]
    control = ("<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>")
    names: dict[str, Any] = {
        "eos_token": "<end_of_utterance>",
        "pad_token": "<|endoftext|>",
        "bos_token": "<|im_start|>",
    }
    template = TURNS.format(image="<image>")
    tokenizer = tokenizer_of(scale, (*CHAT, *control, *tiles), template, **names)
    more: dict[str, Any] = {"pad_token_id": tokenizer.pad_token_id}
    config = transformers.Idefics3Config(
        text_config={"model_type": "llama", **text_of(scale, tokenizer)},
        vision_config=vision_of(num_hidden_layers=2),
        image_token_id=tokenizer.get_vocab()["<image>"],
        scale_factor=2,
        tie_word_embeddings=True,
        **more,
    )
    images = transformers.Idefics3ImageProcessorPil(
        size={"longest_edge": 64}, max_image_size={"longest_edge": 32}, do_image_splitting=True, **NORM
    )
    model = transformers.Idefics3ForConditionalGeneration(config)
    return model, processor_of(transformers.Idefics3Processor, images, tokenizer, image_seq_len=4)


def _paligemma(scale: Scale) -> tuple[Any, Any]:
    """No chat template; prompts see themselves in both directions, and completions have token type 1."""
    special = ("<pad>", "<eos>", "<bos>", "<unk>", "<image>")
    names: dict[str, Any] = {"eos_token": "<eos>", "pad_token": "<pad>", "bos_token": "<bos>"}
    tokenizer = tokenizer_of(
        scale, special, None, adds_bos=True, extra_special_tokens={"image_token": "<image>"}, **names
    )
    images: Any = transformers.SiglipImageProcessorPil(size={"height": 32, "width": 32}, **NORM)
    images.image_seq_length = 16
    processor = processor_of(transformers.PaliGemmaProcessor, images, tokenizer)  # adds tokens for places in images
    config = transformers.PaliGemmaConfig(
        text_config={"model_type": "gemma", **text_of(scale, processor.tokenizer)},
        vision_config=vision_of(model_type="siglip_vision_model", vision_use_head=False),
        image_token_index=tokenizer.get_vocab()["<image>"],
        projection_dim=scale.width,
        hidden_size=scale.width,
        tie_word_embeddings=True,
    )
    return transformers.PaliGemmaForConditionalGeneration(config), processor


def _qwen3_5(scale: Scale) -> tuple[Any, Any]:
    """All layers but the last have linear attention, whose state is no keys and values."""
    linear: dict[str, Any] = {"linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2}
    linear |= {"linear_num_value_heads": 2, "partial_rotary_factor": 1.0}
    linear |= {"layer_types": ["linear_attention"] * (scale.layers - 1) + ["full_attention"]}
    kinds = (transformers.Qwen3_5Config, transformers.Qwen3_5ForConditionalGeneration, transformers.Qwen3VLProcessor)
    vision = {"intermediate_size": 48, "num_position_embeddings": 16}
    return _qwen(scale, kinds, vision=vision, rotary={"mrope_interleaved": True}, text=linear)


def _mllama(scale: Scale) -> tuple[Any, Any]:
    """Some layers read the image by cross attention; the one image token of a prompt has nothing of it."""
    special = ("<|begin_of_text|>", "<|image|>", *CHAT)
    names: dict[str, Any] = {**ENDS, "bos_token": "<|begin_of_text|>"}
    tokenizer = tokenizer_of(scale, special, TURNS.format(image="<|image|>"), **names)
    text = {**text_of(scale, tokenizer), "cross_attention_layers": [1]}
    rotary = {"rope_type": "default", "rope_theta": 10000.0}
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_global_layers": 1}
    vision |= {"attention_heads": 2, "vision_output_dim": 64, "image_size": 32, "patch_size": 8, "max_num_tiles": 4}
    config = transformers.MllamaConfig(
        text_config={**text, "rope_parameters": rotary},
        vision_config={**vision, "intermediate_layers_indices": [0]},
        image_token_index=tokenizer.get_vocab()["<|image|>"],
        tie_word_embeddings=True,
    )
    images = transformers.MllamaImageProcessorPil(size={"height": 32, "width": 32}, max_image_tiles=4, **NORM)
    return transformers.MllamaForConditionalGeneration(config), processor_of(
        transformers.MllamaProcessor, images, tokenizer
    )


def _of_queries(scale: Scale, kind: Any, template: str | None) -> tuple[Any, Any, Any]:
    """Return configuration, image processor and tokenizer of a model in which queries stand for the image."""
    special = ("<pad>", "</s>", "<s>", "<image>")
    names: dict[str, Any] = {"eos_token": "</s>", "pad_token": "<pad>", "bos_token": "<s>"}
    tokenizer = tokenizer_of(scale, special, template, **names)
    of_queries = {"vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = kind(
        vision_config=vision_of(),
        qformer_config={**of_queries, "intermediate_size": 48, "encoder_hidden_size": 32},
        text_config={"model_type": "llama", **text_of(scale, tokenizer)},
        num_query_tokens=4,
        image_token_index=tokenizer.get_vocab()["<image>"],
    )
    return config, transformers.BlipImageProcessorPil(size={"height": 32, "width": 32}, **NORM), tokenizer


def _instructblip(scale: Scale) -> tuple[Any, Any]:
    """Queries that read the question, too, stand for the image; their transformer has a tokenizer of its own."""
    config, images, tokenizer = _of_queries(scale, transformers.InstructBlipConfig, TURNS.format(image="<image>"))
    model = transformers.InstructBlipForConditionalGeneration(config)
    kind = transformers.InstructBlipProcessor
    return model, kind(images, tokenizer, tokenizer, num_query_tokens=4, chat_template=tokenizer.chat_template)


def _blip2(scale: Scale) -> tuple[Any, Any]:
    """Queries stand for the image; as released, it has no chat template."""
    config, images, tokenizer = _of_queries(scale, transformers.Blip2Config, None)
    model = transformers.Blip2ForConditionalGeneration(config)
    return model, processor_of(transformers.Blip2Processor, images, tokenizer, num_query_tokens=4)


FAMILIES: Mapping[str, Create] = {
    **{"qwen2_5_vl": _qwen2_5_vl, "internvl": _internvl, "llava": _llava, "idefics3": _idefics3},
    **{"paligemma": _paligemma, "qwen3_5": _qwen3_5},
}
REFUSED: Mapping[str, Create] = {"mllama": _mllama, "blip2": _blip2, "instructblip": _instructblip}


def requests() -> list[Request]:
    """Return four requests about three pictures of two sizes."""
    asked = [
        ("Is this a CT scan?", 0),
        ("What is the size of the lesion?", 0),
        ("Is this a CT scan?", 1),
        ("Where?", 2),
    ]
    shown = [image(seed).resize(size) for seed, size in ((0, (40, 52)), (1, (90, 36)), (2, (40, 52)))]
    return [
        Request(text=prompts.render("shared", question=text), images=[shown[k]], image_name=str(k), row=f"{i}")
        for i, (text, k) in enumerate(asked)
    ]
