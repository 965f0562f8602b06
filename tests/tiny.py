"""A tiny, untrained checkpoint of each architecture, built once per test session, and a few images."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from dualread import plugins
from dualread.models import prompts
from dualread.models.backbones.checkpoint import Opened, open_checkpoint

FAMILIES = ("qwen3_vl", "gemma3")
MODEL = {"dtype": "float32", "attention": "sdpa", "min_pixels": 1024, "max_pixels": 1024, "max_prompt_tokens": 200}
ARCHITECTURE = {
    **{"vocabulary": 400, "hidden_size": 32, "layers": 4, "heads": 2, "key_value_heads": 1},
    **{"feed_forward": 48, "vision_hidden_size": 32, "vision_layers": 2, "vision_heads": 2, "patch_size": 8},
    **{"image_size": 32, "max_positions": 512},
}
TEXTS = [
    "What is the size of the lesion?",
    "Is this a CT scan?",
    "<reasoning>axial ct</reasoning>\n<answer>upper left</answer>\n<confidence>77</confidence>",
] * 20


@dataclass(frozen=True, kw_only=True)
class Tiny:
    """An untrained checkpoint on disk."""

    family: str
    checkpoint: Path

    def open(self) -> Opened:
        """Return the opened checkpoint."""
        return open_checkpoint(self.checkpoint, MODEL)

    def load(self):
        """Return (model, encoder)."""
        opened = self.open()
        return opened.model, opened.encoder


def build(family: str, folder: Path, **sizes: int) -> Tiny:
    create = plugins.load("architectures", family).create
    model, processor = create(TEXTS, prompts.fixed_pieces(prompts.names()), ARCHITECTURE | sizes, seed=3)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return Tiny(family=family, checkpoint=folder)


def image(seed: int) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 255, (32, 32, 3))
    return Image.fromarray(pixels.astype(np.uint8))


# Two steps of two prompts with two completions each.
GRPO = {
    "steps": 2,
    "prompts_per_step": 2,
    "group_size": 2,
    "completions_per_pass": 4,
    "max_completion_tokens": 8,
    "temperature": 1.0,
    "top_p": 1.0,
    "learning_rate": 1e-3,
    "betas": [0.9, 0.95],
    "weight_decay": 0.01,
    "warmup_fraction": 0.05,
    "clip_norm": 1.0,
    "clip_low": 0.2,
    "clip_high": 0.2,
    "kl_coefficient": 0.0,
    "may_learn_nothing": True,  # an untrained model answers nothing
}
