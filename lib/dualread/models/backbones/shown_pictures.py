"""What a checkpoint's own processor makes of pictures: which limits it keeps to, and how many pixels and tokens."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.models.backbones._checkpoint_files import read_config, read_json, readable
from dualread.models.backbones.encode import Encoder, pixels_of
from dualread.models.backbones.processor import load_processor, takes_limits

OF_PROCESSORS = ("processor_config.json", "preprocessor_config.json")  # in the order in which transformers reads them
_LONGEST_SIDE = 8192  # what is below it is a side, not a number of pixels
_SIDES = (64, 200, 336, 896, 2048)


@dataclass(frozen=True, kw_only=True)
class PixelLimits:
    """Between which numbers of pixels a checkpoint's own image processor brings pictures.

    Attributes:
        pixels: The fewest and the most pixels of a picture.
        source: Where this is said, for people.
    """

    pixels: tuple[int, int]
    source: str


def own_limits(checkpoint: Path) -> PixelLimits | None:
    """Return the limits of a checkpoint's own image processor; None if it has no files, or keeps to no such limits.

    Raises:
        ArtifactError: The image processor cannot be read.
    """
    files = [checkpoint / name for name in OF_PROCESSORS if (checkpoint / name).is_file()]
    if not files:
        return None
    from transformers import AutoImageProcessor

    with readable(f"{checkpoint}: the image processor cannot be read", "one of transformers that needs no torchvision"):
        images = AutoImageProcessor.from_pretrained(checkpoint, backend="pil", trust_remote_code=False)
    size = getattr(images, "size", None) or {}
    low, high = (size.get(edge) for edge in ("shortest_edge", "longest_edge"))
    if not low or not high or (not takes_limits(images) and high <= _LONGEST_SIDE):
        return None
    sources, limits = [], ("size", "min_pixels", "max_pixels")
    for file in files:
        entries = read_json(file)
        section = entries.get("image_processor")
        section = section if isinstance(section, dict) else entries
        sources += [file.name] if any(section.get(name) is not None for name in limits) else []
    kind = type(images).__name__.removesuffix("Pil")
    return PixelLimits(
        pixels=(low, high), source=sources[0] if sources else f"the defaults of {kind}: {files[0].name} has none"
    )


@dataclass(frozen=True, kw_only=True)
class ShownPictures:
    """What pictures of many sizes become.

    Attributes:
        pixels: The fewest and the most pixels of a picture.
        per_token: How many pixels there are to an image token, on average over the pictures.
    """

    pixels: tuple[int, int]
    per_token: int


def shown(checkpoint: Path) -> ShownPictures:
    """Encode pictures from 64 x 64 to 2048 x 2048 pixels, tall and wide ones too.

    Raises:
        ArtifactError: The folder's processor cannot be loaded, or does not fit the model.
    """
    from PIL import Image

    config: Any = read_config(checkpoint)
    settings = {"max_prompt_tokens": 10**9}
    encoder = Encoder(load_processor(checkpoint, settings), config, settings)
    pixels, tokens = [], []
    for width in _SIDES:
        for height in _SIDES:
            prompt = encoder.prompt("?", images=[Image.new("RGB", (width, height))], row=f"{checkpoint}: a picture")
            pixels.append(pixels_of(prompt.image["pixel_values"]))
            tokens.append(prompt.token_ids.count(encoder.image_token_id))
    return ShownPictures(pixels=(min(pixels), max(pixels)), per_token=max(1, round(sum(pixels) / sum(tokens))))
