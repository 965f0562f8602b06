"""Look at a model: a checkpoint, whole or not, and how large (config.json, heads of its files), or one of a service."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.errors import ArtifactError, DualReadError, in_a_line
from dualread.models.backbones._checkpoint_files import opened, read_config, read_json
from dualread.models.backbones.encode import Encoder, pixels_of
from dualread.models.backbones.processor import load_images, load_processor, takes_limits

_ON_HUB = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
# Image sizes of the paper's study, from 64 to 1280 image tokens of 32 x 32 pixels: where a checkpoint says nothing.
_ANY_SIZE = (65536, 1310720)
_OF_PROCESSORS = ("processor_config.json", "preprocessor_config.json")  # in the order in which transformers reads them
_LONGEST_SIDE = 8192  # what is below it is a side, not a number of pixels
_SIDES = (64, 200, 336, 896, 2048)  # of pictures that are tried
_PROMPT_TOKENS = 4096  # the paper's limit, where images leave room for it
_TEXT_TOKENS = 1024  # beside the largest image
_LONGEST_NAME = 100  # characters
# How config.json and *.safetensors name types.
_TYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}
_DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class UserModel:
    """A checkpoint as a backbone of a study.

    Attributes:
        name: Its name in a study.
        label: Its name for people.
        entry: The entry of `backbones`, without its label.
        tokens: Its control tokens, which no question may contain; none of a service's are known.
        settings_from: Where its settings come from, in a sentence for the file.
        lines: What was found, for people.
        answers: The folder of its answers, if a service gives these; None for a checkpoint.
    """

    name: str
    label: str
    entry: Mapping[str, Any]
    tokens: Sequence[str]
    settings_from: str
    lines: Sequence[str]
    answers: str | None = None

    def before(self, file: Path) -> Sequence[str]:
        """Return the commands that come before Snakemake's, for the study in `file`."""
        if self.answers is None:
            return ()
        return (f"snakemake --cores 2 --configfile {file} -- questions", f"dualread ask {file}")


def look(place: str) -> UserModel:
    """Return what a checkpoint is: that in a folder, or owner/name[@revision] of the hub."""
    if Path(place).is_dir():
        source, weights, files = {"folder": place}, None, Path(place)
    elif repository := _ON_HUB.fullmatch(place):
        source, weights, files = _on_hub(*repository.groups())
    else:
        raise ArtifactError(f"{place}: no such folder. Expected a checkpoint's folder, or owner/name of the hub.")
    try:
        config = _completed(files)
        return _described(place, config, _weights(files) if weights is None else weights, files, source)
    except DualReadError:
        raise
    except Exception as error:  # whatever wrong values in config.json lead to, here and in transformers
        raise ArtifactError(
            f"{place}: its config.json cannot be used ({in_a_line(error)}). Expected that of a model which reads images"
            " and text. Copy the checkpoint again."
        ) from error


def _described(
    place: str, config: Mapping[str, Any], weights: Mapping[str, int], files: Path, source: Mapping[str, str]
) -> UserModel:
    """Return what a checkpoint is; `weights`: how many of its numbers have a type; `source`: that of a backbone."""
    label, parameters = _plain(Path(place.partition("@")[0]).name), sum(weights.values())
    dtype, dtype_from = _dtype(config, weights)
    size = size_of(place, config, parameters)
    pixels, pixels_from = _pixels(place, config, files)
    if pixels_from == _ONE_SIZE and any((Path(place) / name).is_file() for name in _OF_PROCESSORS):
        # Tiles, and tokens that stand for several patches, are not in config.json.
        pixels, per_token = _tried(Path(place))
        size["patches_per_token"] = max(1, round(per_token / config["vision_config"]["patch_size"] ** 2))
        size["pixels_per_token"] = per_token
    settings = {
        "dtype": dtype,
        "attention": "sdpa",
        **dict(zip(("min_pixels", "max_pixels"), pixels, strict=True)),
        "max_prompt_tokens": max(_PROMPT_TOKENS, -(-pixels[1] // size["pixels_per_token"]) + _TEXT_TOKENS),
    }
    return UserModel(
        name=_name(label),
        label=label,
        entry={"settings": settings, "source": source, "size": size},
        tokens=_control_tokens(files),
        settings_from=f"min_pixels and max_pixels: {pixels_from}. dtype: {dtype_from}.",
        lines=[
            f"{place}: {config['model_type']}, {parameters / 1e9:.3g} billion parameters,"
            f" {pixels[0]} to {pixels[1]} pixels of an image",
            f"{place}: pixels of an image: {pixels_from}; {dtype}: {dtype_from}",
        ],
    )


def _dtype(config: Mapping[str, Any], weights: Mapping[str, int]) -> tuple[str, str]:
    """Return the type of the weights in memory, and where it comes from; `weights`: how many numbers have a type."""
    types = [section["dtype"] for section in (config, config.get("text_config") or {}) if section.get("dtype")]
    stored = _TYPES.get(max(weights, key=lambda dtype: weights[dtype]), "") if weights else ""
    dtype = _plain(str(types[0])) if types else stored
    source = "config.json" if types else "its *.safetensors, as config.json names none"
    if dtype in _DTYPES:
        return dtype, source
    exactly = ", which float32 holds exactly" if dtype == "float16" else ""
    return "float32", f"{source} says {dtype or 'nothing'}{exactly}; bfloat16 takes half the memory"


def served(name: str, folder: str) -> UserModel:
    """Return the model that a service knows by `name`: nothing else is known of it.

    Requests are written to `folder`, and responses read there; it need not exist.
    """
    n_files = len(list(Path(folder, "responses").glob("*.jsonl")))
    there = f"{n_files} files of responses are there" if n_files else "no responses are there yet"
    label = _plain(name.rpartition("/")[2] or name)
    return UserModel(
        name=_name(label),
        label=label,
        entry={"source": {"service": name}},
        tokens=(),
        settings_from="",
        lines=[f"{name}: a service answers; {folder}: {there}"],
        answers=folder,
    )


def _plain(text: str) -> str:
    """Return a text of somebody else as it may stand in a comment and on a terminal: in one line, and not long."""
    return "".join(character if character.isprintable() else " " for character in text)[:_LONGEST_NAME]


def _name(label: str) -> str:
    """Return the name that a study may have for a model with this label."""
    return re.sub(r"[^a-z0-9._-]+", "-", label.lower()).strip("-._") or "model"


def _completed(files: Path) -> dict[str, Any]:
    """Return config.json with what transformers adds to it; that of LLaVA 1.5, for one, has no width."""
    completed = read_config(files).to_dict()
    vision = completed.get("vision_config") or {}
    for name in ("image_size", "patch_size"):  # the side of a square, which some write as two numbers
        if isinstance(vision.get(name), list | tuple):
            vision[name] = max(vision[name])
    return completed


def _weights(folder: Path) -> dict[str, int]:
    """Return how many numbers of each type the *.safetensors of a folder hold, from their heads."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ArtifactError(f"{folder}: no *.safetensors. Expected a checkpoint as save_pretrained writes it.")
    total: Counter[str] = Counter()
    for tensors in opened(files, "np"):  # torch would take seconds to import
        for tensor in map(tensors.get_slice, list(tensors.keys())):
            total[tensor.get_dtype()] += math.prod(tensor.get_shape())
    return total


def _on_hub(name: str, revision: str | None) -> tuple[dict[str, str], dict[str, int], Path]:
    """Return a model's source, the types of its weights, and a folder with config.json and its processor's files."""
    from huggingface_hub import HfApi, hf_hub_download

    try:
        info = HfApi().model_info(name, revision=revision)
        file = Path(hf_hub_download(name, "config.json", revision=info.sha))
        there = {file.rfilename for file in info.siblings or ()}
        for other in there & {*_OF_PROCESSORS, "tokenizer.json"}:
            hf_hub_download(name, other, revision=info.sha)
    except Exception as error:  # the hub raises errors of several packages
        raise ArtifactError(
            f"{name}: not a folder here, and the hub does not say what it is ({in_a_line(error)}). Check the name, the"
            " revision and the connection; or download the checkpoint and give its folder."
        ) from error
    if info.safetensors is None:
        raise ArtifactError(f"{name}: no *.safetensors on the hub. Convert the checkpoint, and give its folder.")
    return {"hub": name, "revision": str(info.sha)}, dict(info.safetensors.parameters), file.parent


def size_of(place: str, config: Mapping[str, Any], parameters: int) -> dict[str, Any]:
    """Return the entry `size` of a backbone, which only `dualread plan` reads."""
    text, vision = config.get("text_config") or config, config.get("vision_config") or {}
    width, heads = _number(place, text, "hidden_size"), _number(place, text, "num_attention_heads")
    head = text.get("head_dim") or width // heads
    seen = _number(place, vision, "embed_dim", "hidden_size")
    patch = _number(place, vision, "patch_size")
    if _takes_any_size(vision):
        merged = vision.get("spatial_merge_size", vision.get("pooling_kernel_size", 1)) ** 2
    else:
        patches = (_number(place, vision, "image_size") // patch) ** 2
        merged = max(patches // (config.get("mm_tokens_per_image") or patches), 1)
    return {
        "parameters": float(parameters),
        "hidden_size": width,
        "feed_forward": _number(place, text, "intermediate_size"),
        "layers": _number(place, text, "num_hidden_layers"),
        "attention_width": heads * head,
        "key_value_width": (text.get("num_key_value_heads") or heads) * head,
        "vocabulary": text.get("vocab_size") or _number(place, config, "vocab_size"),
        "pixels_per_token": patch**2 * merged,
        "patches_per_token": merged,
        "values_per_pixel": 3 * vision.get("temporal_patch_size", 1),
        "vision_width": seen,
        "vision_feed_forward": vision.get("intermediate_size") or int(seen * vision.get("mlp_ratio", 4)),
        "vision_layers": _number(place, vision, "depth", "num_hidden_layers"),
        "vision_rotary": "spatial_merge_size" in vision,
    }


def _control_tokens(folder: Path) -> list[str]:
    """Return the control tokens that tokenizer.json names; none without this file, which is looked at later."""
    if not (file := folder / "tokenizer.json").is_file():
        return []
    try:
        added = json.loads(file.read_text(encoding="utf-8")).get("added_tokens") or []
        return sorted(str(token["content"]) for token in added if token.get("special"))
    except (OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        raise ArtifactError(f"{file}: not a tokenizer ({in_a_line(error)}). Copy the checkpoint again.") from error


_ONE_SIZE = "the model resizes every image to one size"


def _pixels(place: str, config: Mapping[str, Any], files: Path) -> tuple[tuple[int, int], str]:
    """Return the limits of an image's size, and where they come from."""
    vision = config.get("vision_config") or {}
    if _takes_any_size(vision):
        if not (there := [files / name for name in _OF_PROCESSORS if (files / name).is_file()]):
            return _ANY_SIZE, (
                f"those of the paper's study, because there is no {' or '.join(_OF_PROCESSORS)}; set what the model was"
                " trained with"
            )
        images = load_images(files, {})
        size = getattr(images, "size", None) or {}
        low, high = (size.get(edge) for edge in ("shortest_edge", "longest_edge"))
        if not low or not high or (not takes_limits(images) and high <= _LONGEST_SIDE):
            return _ANY_SIZE, "those of the paper's study, for `dualread plan` alone: its image processor takes none"
        kind = type(images).__name__.removesuffix("Pil")
        defaults = f"the defaults of {kind}: {there[0].name} has none"
        return (low, high), next((file.name for file in there if _names_limits(read_json(file))), defaults)
    pixels = _number(place, vision, "image_size") ** 2
    return (pixels, pixels), _ONE_SIZE


def _names_limits(entries: Mapping[str, Any]) -> bool:
    """Return whether a processor's file, or its section about images, says how large images are."""
    section = entries.get("image_processor")
    section = section if isinstance(section, Mapping) else entries
    return any(section.get(name) is not None for name in ("size", "min_pixels", "max_pixels"))


def _tried(checkpoint: Path) -> tuple[tuple[int, int], int]:
    """Return what pictures of 64 x 64 to 2048 x 2048 pixels become: fewest and most pixels, and pixels per token."""
    from PIL import Image

    settings = {"max_prompt_tokens": 10**9}
    encoder = Encoder(load_processor(checkpoint, settings), read_config(checkpoint), settings)
    pixels, tokens = [], []
    for width in _SIDES:
        for height in _SIDES:
            prompt = encoder.prompt("?", images=[Image.new("RGB", (width, height))], row=f"{checkpoint}: a picture")
            pixels.append(pixels_of(prompt.image["pixel_values"]))
            tokens.append(prompt.token_ids.count(encoder.image_token_id))
    return (min(pixels), max(pixels)), max(1, round(sum(pixels) / sum(tokens)))


def _takes_any_size(vision: Mapping[str, Any]) -> bool:
    """Return whether images keep their size; a model whose do not says which one they all get."""
    return "spatial_merge_size" in vision or ("patch_size" in vision and "image_size" not in vision)


def _number(place: str, section: Mapping[str, Any], *names: str) -> int:
    for name in names:
        if isinstance(section.get(name), int):
            return section[name]
    raise ArtifactError(
        f"{place}: its config.json has no {' or '.join(names)}, which `dualread plan` needs. Expected the checkpoint of"
        " a model that reads images and text."
    )
