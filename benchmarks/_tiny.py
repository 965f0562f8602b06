"""Models and questions for the benchmarks: untrained tiny backbones of config.yaml, and questions about phantoms."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from dualread import plugins
from dualread.models import prompts
from dualread.models.backbones.checkpoint import Opened, open_checkpoint
from dualread.models.backbones.encode import Encoder
from dualread.seeding import generator
from dualread.training.corpora.phantom import Settings, open_corpus
from dualread.training.pretraining.exercises import EXERCISES

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS_AN_IMAGE = 8


@dataclass(frozen=True, kw_only=True)
class Row:
    """One question, and a completion of typical form and length."""

    name: str
    text: str
    image: Image.Image
    image_name: str
    completion: str


def rows(n: int) -> list[Row]:
    """Return `n` questions, eight per image as in the embedded study."""
    size = backbone_entry("qwen3_vl")["settings"]["min_pixels"] ** 0.5
    n_images = -(-n // QUESTIONS_AN_IMAGE)
    corpus = open_corpus(Settings(n_images=n_images, held_out=1, size=int(size)), None, 0)
    made = [
        Row(
            name=f"row {i}",
            text=(done := EXERCISES["shared"](item, generator("benchmark", i, k))).prompt,
            image=subject.views[0],
            image_name=str(i),
            completion=done.completion,
        )
        for i, subject in enumerate(corpus.training)
        for k, item in enumerate(subject.items[:QUESTIONS_AN_IMAGE])
    ]
    return made[:n]


def backbone_entry(family: str) -> dict[str, Any]:
    """Return the backbone of config.yaml that belongs to this family."""
    entries = yaml.safe_load((ROOT / "config.yaml").read_text())["backbones"].values()
    return next(entry for entry in entries if entry["source"]["pretrain"]["architecture"]["name"] == family)


def build(family: str, folder: Path, about: list[Row], **sizes: int) -> None:
    """Save an untrained checkpoint; `sizes` replace those of config.yaml."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    architecture = backbone_entry(family)["source"]["pretrain"]["architecture"] | sizes
    texts = [text for row in about for text in (row.text, row.completion)]
    create = plugins.load("architectures", family).create
    model, processor = create(texts, prompts.fixed_pieces(prompts.names()), architecture, seed=0)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def load(family: str, folder: Path) -> Opened:
    """Open a checkpoint in the way the replay does."""
    return open_checkpoint(folder, backbone_entry(family)["settings"])


def encode(encoder: Encoder, row: Row) -> tuple[Any, list[int]]:
    """Return the row's prompt and the ids of its completion, with the end of the turn."""
    prompt = encoder.prompt(row.text, images=[row.image], row=row.name)
    ids = encoder.tokenizer(row.completion, add_special_tokens=False)["input_ids"]
    return prompt, [*ids, encoder.tokenizer.eos_token_id]


def forget_peak() -> None:
    """Reset the peak that `peak_mb` reports (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """Return the peak resident memory of this process since `forget_peak`, in MB."""
    return _status("VmHWM")


def resident_mb() -> float:
    """Return the resident memory of this process, in MB."""
    return _status("VmRSS")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024 / 1e6
