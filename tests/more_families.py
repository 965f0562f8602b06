"""Architectures and tokenizers that need something which those of `families` do not; one compact test reads each."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.families import CHAT, ENDS, NORM, TURNS, Create, Scale, processor_of, text_of, tokenizer_of, vision_of, write


def build(name: str, folder: Path) -> Path:
    """Write the checkpoint `name` of `MORE`."""
    return write(MORE[name], folder)


def sentencepiece(scale: Scale, special: tuple[str, ...]) -> Tokenizer:
    """Return a tokenizer like that of Llama 2: a space before every text, bytes for unknown characters, and BOS."""
    of_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    end = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(end)
    # No piece has a space or a line break inside, and every digit is one.
    words = [pre_tokenizers.Split("▁", "merged_with_next"), pre_tokenizers.Split("\n", "isolated")]
    made.pre_tokenizer = pre_tokenizers.Sequence([*words, pre_tokenizers.Digits(individual_digits=True)])
    size = scale.vocabulary + len(of_bytes)
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[*special, *of_bytes], show_progress=False)
    more = ["Yes No yes no 0 1 2 3 4 5 6 7 8 9", "\nYes\nNo\nyes\nno"] * 1000
    made.train_from_iterator([*scale.texts, *more], trainer)
    plain = json.loads(made.to_str())  # bytes are no special tokens
    plain["added_tokens"] = [token for token in plain["added_tokens"] if token["content"] not in of_bytes]
    made = Tokenizer.from_str(json.dumps(plain))
    made.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in scale.pieces])
    bos = [("<s>", made.token_to_id("<s>"))]
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=bos)
    return made


def _llava_next(scale: Scale) -> tuple[Any, Any]:
    """A window in all layers, which have no types; newlines among the image tokens; sentencepiece; no token pads."""
    special = ("<unk>", "<s>", "</s>", "<image>", "<|im_start|>", "<|im_end|>")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=sentencepiece(scale, special),
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        extra_special_tokens={"image_token": "<image>"},
    )
    tokenizer.chat_template = "{{- bos_token -}}" + TURNS.format(image="<image>\\n")
    tiles = [[32, 64], [64, 32], [64, 64]]
    config = transformers.LlavaNextConfig(
        text_config={"model_type": "mistral", **text_of(scale, tokenizer, sliding_window=24)},
        vision_config=vision_of(model_type="clip_vision_model", projection_dim=32),
        image_token_index=tokenizer.get_vocab()["<image>"],
        image_grid_pinpoints=tiles,
        tie_word_embeddings=True,
    )
    images = transformers.LlavaNextImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, image_grid_pinpoints=tiles, **NORM
    )
    more = {"patch_size": 8, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    model = transformers.LlavaNextForConditionalGeneration(config)
    return model, processor_of(transformers.LlavaNextProcessor, images, tokenizer, **more)


def _gemma4(scale: Scale) -> tuple[Any, Any]:
    """No sounds, though the class wants their processor; heads of two widths; layers that share keys and values."""
    images = {"image_token": "<|image|>", "boi_token": "<|image>", "eoi_token": "<image|>"}
    sounds = {"audio_token": "<|audio|>", "boa_token": "<|audio>", "eoa_token": "<audio|>"}
    special = ("<pad>", "<eos>", "<bos>", *CHAT, "<|video|>", *images.values(), *sounds.values())
    names: dict[str, Any] = {"eos_token": "<|im_end|>", "pad_token": "<pad>", "bos_token": "<bos>"}
    named = {**images, **sounds}
    tokenizer = tokenizer_of(
        scale, special, TURNS.format(image="<|image|>"), adds_bos=True, extra_special_tokens=named, **names
    )
    ids = tokenizer.get_vocab()
    text = text_of(scale, tokenizer, sliding_window=16, final_logit_softcapping=10.0)
    text |= {"layer_types": ["sliding_attention", "full_attention"] * (scale.layers // 2), "global_head_dim": 24}
    text |= {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": text["vocab_size"]}
    text |= {"use_bidirectional_attention": "vision", "num_kv_shared_layers": 2 * (scale.layers > 2)}
    tower = vision_of(num_hidden_layers=2, num_key_value_heads=2, head_dim=16, pooling_kernel_size=2)
    del tower["image_size"]  # images of any size
    config = transformers.Gemma4Config(
        text_config=text,
        vision_config={**tower, "position_embedding_size": 64},
        audio_config=None,
        image_token_id=ids["<|image|>"],
        boi_token_id=ids["<|image>"],
        eoi_token_id=ids["<image|>"],
        audio_token_id=ids["<|audio|>"],
        boa_token_id=ids["<|audio>"],
        eoa_token_index=ids["<audio|>"],
        video_token_id=ids["<|video|>"],
        tie_word_embeddings=True,
    )
    pixels = transformers.Gemma4ImageProcessorPil(patch_size=8, max_soft_tokens=70, pooling_kernel_size=2)
    absent: dict[str, Any] = {"video_processor": None, "feature_extractor": None, "image_seq_length": 70}
    model = transformers.Gemma4ForConditionalGeneration(config)
    return model, processor_of(transformers.Gemma4Processor, pixels, tokenizer, **absent)


def _ovis2(scale: Scale) -> tuple[Any, Any]:
    """Tokens around the image's own get embeddings only beside pixels; the processor makes lists unless asked."""
    control = ("<IMG_ATOM>", "<IMG_START>", "<IMG_GRID>", "<IMG_COL>", "<IMG_ROW>", "<IMG_END>")
    named = {"image_token": "<IMG_ATOM>"}
    template = TURNS.format(image="<image>\\n")
    tokenizer = tokenizer_of(scale, (*CHAT, *control, "<image>"), template, extra_special_tokens=named, **ENDS)
    ids = tokenizer.get_vocab()
    tower = vision_of(num_hidden_layers=2, vocab_size=24, hidden_stride=2, num_visual_indicator_tokens=5)
    text = text_of(scale, tokenizer)
    config = transformers.Ovis2Config(
        text_config={"model_type": "qwen2", **text},
        vision_config=tower,
        image_token_id=ids["<IMG_ATOM>"],
        visual_indicator_token_ids=[ids[token] for token in control[1:]],
        vocab_size=text["vocab_size"],
        hidden_size=scale.width,
        tie_word_embeddings=True,
    )
    images = transformers.Ovis2ImageProcessorPil(
        size={"height": 32, "width": 32}, crop_to_patches=True, min_patches=1, max_patches=4, **NORM
    )
    model = transformers.Ovis2ForConditionalGeneration(config)
    return model, processor_of(transformers.Ovis2Processor, images, tokenizer, image_seq_length=4)


def _janus(scale: Scale) -> tuple[Any, Any]:
    """Its `generate` also makes images, and passes on only some of its arguments."""
    named = {"image_token": "<image_placeholder>", "boi_token": "<begin_of_image>", "eoi_token": "<end_of_image>"}
    template = TURNS.format(image="<image_placeholder>\\n")
    tokenizer = tokenizer_of(scale, (*CHAT, *named.values()), template, extra_special_tokens=named, **ENDS)
    drawn = {"embed_dim": 8, "num_embeddings": 16, "latent_channels": 8, "base_channels": 32, "num_res_blocks": 1}
    drawn |= {"channel_multiplier": [1, 1], "num_patches": 4, "projection_dim": scale.width}
    config = transformers.JanusConfig(
        text_config={"model_type": "llama", **text_of(scale, tokenizer)},
        vision_config=vision_of(mlp_ratio=2, projection_dim=scale.width, num_image_tokens=16),
        vq_config={**drawn, "image_token_embed_dim": scale.width},
        image_token_id=tokenizer.get_vocab()["<image_placeholder>"],
        tie_word_embeddings=True,
    )
    images = transformers.JanusImageProcessorPil(size={"height": 32, "width": 32}, **NORM)
    model = transformers.JanusForConditionalGeneration(config)
    return model, processor_of(transformers.JanusProcessor, images, tokenizer, num_image_tokens=16)


MORE: Mapping[str, Create] = {"llava_next": _llava_next, "gemma4": _gemma4, "ovis2": _ovis2, "janus": _janus}
UNTRAINED = {"ovis2"}
