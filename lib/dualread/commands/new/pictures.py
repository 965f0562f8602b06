"""What a checkpoint's own processor makes of pictures: how many pixels, and how many image tokens."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.models.backbones._checkpoint_files import read_config
from dualread.models.backbones.encode import Encoder, pixels_of
from dualread.models.backbones.processor import load_processor

_SIDES = (64, 200, 336, 896, 2048)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What pictures of many sizes become.

    Attributes:
        pixels: The fewest and the most pixels of a picture.
        per_token: How many pixels there are to an image token, on average over the pictures.
    """

    pixels: tuple[int, int]
    per_token: int


def shown(checkpoint: Path) -> Shown:
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
            prompt = encoder.prompt("?", image=Image.new("RGB", (width, height)), row=f"{checkpoint}: a picture")
            pixels.append(pixels_of(prompt.image["pixel_values"]))
            tokens.append(prompt.token_ids.count(encoder.image_token_id))
    return Shown(pixels=(min(pixels), max(pixels)), per_token=max(1, round(sum(pixels) / sum(tokens))))
